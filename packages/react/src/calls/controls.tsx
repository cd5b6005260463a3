import { forwardRef, useEffect, useRef, useState } from 'react';
import type { ComponentPropsWithoutRef, KeyboardEvent, ReactNode } from 'react';
import type { CallHandle, MediaDevice } from '@parley/client/calls';
import { cx, moveFocus } from '../parts/tools.ts';
import { useCall, useCallStrings, useDevices } from './hooks.ts';
import { CallIcon } from './icons.tsx';

export interface CallControlsProps extends ComponentPropsWithoutRef<'div'> {
  call: CallHandle;
  /** More buttons before the one that ends the call. */
  extra?: ReactNode;
  onProblem?: (message: string) => void;
}

/** What one does in a call, for the buttons and for the keys. */
export function useCallActions(call: CallHandle, onProblem?: (message: string) => void) {
  const view = useCall(call);
  const me = view?.participants.find((p) => p.isLocal);
  const run = (work: Promise<unknown>): void =>
    void work.catch((e: unknown) => onProblem?.((e as Error).message));
  const [mic, camera, screen] = [me?.audioMuted === false, me?.videoMuted === false, me?.screenTrack != null];
  return {
    mic,
    camera,
    screen,
    me,
    toggleMic: () => run(mic ? call.mute() : call.unmute()),
    toggleCamera: () => run(call.setCamera(!camera)),
    toggleScreen: () => run(screen ? call.stopScreen() : call.shareScreen()),
    leave: () => run(call.leave()),
    run,
  };
}

export const CallControls = forwardRef<HTMLDivElement, CallControlsProps>(function CallControls(props, ref) {
  const { call, extra, onProblem, className, ...rest } = props;
  const strings = useCallStrings();
  const actions = useCallActions(call, onProblem);
  const { mics, cameras, speakers } = useDevices();
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>): void => {
    const all = [
      ...event.currentTarget.querySelectorAll<HTMLElement>(':scope > button, .parley-split > button'),
    ];
    if (all.includes(event.target as HTMLElement) && moveFocus(event, all, true)) event.preventDefault();
  };
  const idOf = (track: MediaStreamTrack | null | undefined): string | undefined =>
    track?.getSettings().deviceId;
  return (
    <div
      ref={ref}
      className={cx('parley-call-controls', className)}
      role="toolbar"
      aria-label={strings.controls}
      {...rest}
      onKeyDown={onKeyDown}
    >
      <Split
        menu={[
          {
            label: strings.microphone,
            devices: mics,
            chosen: idOf(actions.me?.audioTrack),
            choose: (id) => actions.run(call.setMicrophone(id)),
          },
          {
            label: strings.speaker,
            devices: speakers,
            chosen: undefined,
            choose: (id) => actions.run(call.setSpeaker(id)),
          },
        ]}
      >
        <Control
          icon={actions.mic ? 'mic' : 'micOff'}
          label={strings.microphone}
          on={actions.mic}
          onPress={actions.toggleMic}
        />
      </Split>
      <Split
        menu={[
          {
            label: strings.camera,
            devices: cameras,
            chosen: idOf(actions.me?.videoTrack),
            choose: (id) => actions.run(call.setCamera(true, id)),
          },
        ]}
      >
        <Control
          icon={actions.camera ? 'camera' : 'cameraOff'}
          label={strings.camera}
          on={actions.camera}
          onPress={actions.toggleCamera}
        />
      </Split>
      <Control
        icon="screen"
        label={strings.screen}
        on={actions.screen}
        plain
        onPress={actions.toggleScreen}
      />
      {extra}
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
    </div>
  );
});

interface ControlProps {
  icon: Parameters<typeof CallIcon>[0]['name'];
  label: string;
  on: boolean;
  /** Off is the usual state, and looks so. */
  plain?: boolean;
  onPress: () => void;
}
const Control = ({ icon, label, on, plain, onPress }: ControlProps) => (
  <button
    type="button"
    className="parley-control"
    data-off={(plain ? on : !on) || undefined}
    aria-pressed={on}
    aria-label={label}
    title={label}
    onClick={onPress}
  >
    <CallIcon name={icon} />
  </button>
);

interface Choice {
  label: string;
  devices: readonly MediaDevice[];
  chosen: string | undefined;
  choose: (id: string) => void;
}

/** A button with the choice of its devices. */
function Split({ menu, children }: { menu: readonly Choice[]; children: ReactNode }) {
  const strings = useCallStrings();
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLSpanElement>(null);
  const label = strings.chooseDevices(menu.map((choice) => choice.label).join(', '));
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
          {menu.map((choice) => (
            <fieldset key={choice.label}>
              <legend>{choice.label}</legend>
              {choice.devices.map((device, i) => (
                <label key={device.id}>
                  <input
                    type="radio"
                    name={choice.label}
                    defaultChecked={device.id === choice.chosen || (choice.chosen === undefined && i === 0)}
                    onChange={() => choice.choose(device.id)}
                  />
                  {device.label || strings.unnamedDevice(i + 1)}
                </label>
              ))}
            </fieldset>
          ))}
        </div>
      ) : null}
    </span>
  );
}
