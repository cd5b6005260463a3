import { forwardRef, Fragment, useEffect, useRef, useState } from 'react';
import type { ComponentPropsWithoutRef, KeyboardEvent, ReactNode } from 'react';
import type { CallHandle } from '@parley/client/calls';
import { cx, moveFocus } from '../parts/tools.ts';
import { DevicePicker } from './device-picker.tsx';
import type { DeviceKind, DevicePickerProps } from './device-picker.tsx';
import { problemOf, useCall, useCallStrings } from './hooks.ts';
import { CallIcon } from './icons.tsx';

export type ControlName = 'mic' | 'camera' | 'screen' | 'extra' | 'leave';
const usualOrder: readonly ControlName[] = ['mic', 'camera', 'screen', 'extra', 'leave'];

export interface CallControlsProps extends ComponentPropsWithoutRef<'div'> {
  call: CallHandle;
  /** More buttons; before the one that ends the call, unless `show` says otherwise. */
  extra?: ReactNode;
  /** Which controls there are, and in which order. */
  show?: readonly ControlName[];
  onProblem?: (message: string) => void;
}

/** What one does in a call, for the buttons and for the keys. */
export function useCallActions(call: CallHandle, onProblem?: (message: string) => void) {
  const view = useCall(call);
  const strings = useCallStrings();
  const me = view?.participants.find((p) => p.isLocal);
  /** What the browser is asked for, which may take until the user has answered. */
  const [pending, setPending] = useState<string | null>(null);
  const run = (work: Promise<unknown>, device?: string): void => {
    setPending(device ?? null);
    work
      .catch((e: unknown) => onProblem?.(problemOf(e, strings, device)))
      .finally(() => setPending((was) => (was === device ? null : was)));
  };
  const [mic, camera, screen] = [me?.audioMuted === false, me?.videoMuted === false, me?.screenTrack != null];
  return {
    mic,
    camera,
    screen,
    me,
    pending,
    toggleMic: () => run(mic ? call.mute() : call.unmute(), strings.microphone),
    toggleCamera: () => run(call.setCamera(!camera), strings.camera),
    toggleScreen: () => run(screen ? call.stopScreen() : call.shareScreen(), strings.screen),
    leave: () => run(call.leave()),
    run,
  };
}

export const CallControls = forwardRef<HTMLDivElement, CallControlsProps>(function CallControls(props, ref) {
  const { call, extra, show = usualOrder, onProblem, className, ...rest } = props;
  const strings = useCallStrings();
  const actions = useCallActions(call, onProblem);
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>): void => {
    const all = [
      ...event.currentTarget.querySelectorAll<HTMLElement>(':scope > button, .parley-split > button'),
    ];
    if (all.includes(event.target as HTMLElement) && moveFocus(event, all, true)) event.preventDefault();
  };
  const picker = {
    chosen: {
      mic: actions.me?.audioTrack?.getSettings().deviceId,
      camera: actions.me?.videoTrack?.getSettings().deviceId,
    },
    onChoose: (kind: DeviceKind, id: string): void =>
      actions.run(
        kind === 'mic'
          ? call.setMicrophone(id)
          : kind === 'camera'
            ? call.setCamera(true, id)
            : call.setSpeaker(id),
      ),
  };
  const controls: Record<ControlName, ReactNode> = {
    mic: (
      <Split kinds={['mic', 'speaker']} {...picker}>
        <Control
          icon={actions.mic ? 'mic' : 'micOff'}
          label={strings.microphone}
          on={actions.mic}
          pending={actions.pending === strings.microphone}
          onPress={actions.toggleMic}
        />
      </Split>
    ),
    camera: (
      <Split kinds={['camera']} {...picker}>
        <Control
          icon={actions.camera ? 'camera' : 'cameraOff'}
          label={strings.camera}
          on={actions.camera}
          pending={actions.pending === strings.camera}
          onPress={actions.toggleCamera}
        />
      </Split>
    ),
    screen: (
      <Control
        icon="screen"
        label={strings.screen}
        on={actions.screen}
        plain
        pending={actions.pending === strings.screen}
        onPress={actions.toggleScreen}
      />
    ),
    extra,
    leave: (
      <button
        type="button"
        className="parley-control"
        data-kind="end"
        aria-label={strings.leave}
        title={strings.leave}
        onClick={actions.leave}
      >
        <CallIcon name="end" />
      </button>
    ),
  };
  return (
    <div
      ref={ref}
      className={cx('parley-call-controls', className)}
      role="toolbar"
      aria-label={strings.controls}
      {...rest}
      onKeyDown={onKeyDown}
    >
      {show.map((name) => (
        <Fragment key={name}>{controls[name]}</Fragment>
      ))}
    </div>
  );
});

interface ControlProps {
  icon: Parameters<typeof CallIcon>[0]['name'];
  label: string;
  on: boolean;
  /** Off is the usual state, and looks so. */
  plain?: boolean;
  /** The browser has not answered yet. */
  pending?: boolean;
  onPress: () => void;
}
export const Control = ({ icon, label, on, plain, pending, onPress }: ControlProps) => (
  <button
    type="button"
    className="parley-control"
    data-off={(plain ? on : !on) || undefined}
    aria-pressed={on}
    aria-busy={pending || undefined}
    aria-label={label}
    title={label}
    onClick={onPress}
  >
    <CallIcon name={icon} />
  </button>
);

const labels = { mic: 'microphone', camera: 'camera', speaker: 'speaker' } as const;

/** A button with the choice of its devices. */
function Split({ children, ...picker }: DevicePickerProps & { children: ReactNode }) {
  const strings = useCallStrings();
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLSpanElement>(null);
  const label = strings.chooseDevices(picker.kinds.map((kind) => strings[labels[kind]]).join(', '));
  useEffect(() => {
    if (open) box.current?.querySelector<HTMLElement>('[role=dialog] input')?.focus();
  }, [open]);
  const close = (): void => {
    setOpen(false);
    box.current?.querySelector<HTMLElement>('[aria-haspopup]')?.focus();
  };
  return (
    <span ref={box} className="parley-split">
      {children}
      <button
        type="button"
        className="parley-control"
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-label={label}
        title={label}
        onClick={() => (open ? close() : setOpen(true))}
      >
        <CallIcon name="more" size={16} />
      </button>
      {open ? (
        <div
          className="parley-devices"
          role="dialog"
          aria-label={label}
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return;
            event.stopPropagation();
            close();
          }}
        >
          <DevicePicker {...picker} />
        </div>
      ) : null}
    </span>
  );
}
