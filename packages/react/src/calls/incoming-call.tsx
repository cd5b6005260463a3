import { forwardRef, useEffect, useRef, useState } from 'react';
import type {
  ComponentPropsWithoutRef,
  ForwardedRef,
  KeyboardEvent,
  MutableRefObject,
  ReactNode,
} from 'react';
import type { CallHandle, JoinOptions } from '@parley/client/calls';
import { useParley } from '../hooks/context.ts';
import { useName } from '../hooks/people.ts';
import { UserAvatar } from '../parts/avatar.tsx';
import { cx, useFrame } from '../parts/tools.ts';
import { useCall, useCallStrings, useIncomingCall } from './hooks.ts';
import { CallIcon } from './icons.tsx';

export interface IncomingButton {
  id: 'decline' | 'voice' | 'answer' | (string & {});
  label: ReactNode;
  onPress: () => void;
}

export interface IncomingCallProps extends Omit<ComponentPropsWithoutRef<'div'>, 'children'> {
  /** Called when this device has answered. */
  onAnswered?: (call: CallHandle) => void;
  /** The address of a sound that is repeated while it rings. Browsers play it only after the user did something. */
  ringtone?: string;
  /** Where the card is: in its place in the page, or over the page at its upper or lower edge. */
  placement?: 'inline' | 'top' | 'bottom' | 'top-end' | 'bottom-end';
  /** Changes the buttons. */
  buttons?: (usual: readonly IncomingButton[], call: CallHandle) => readonly IncomingButton[];
}

/** So long the card says why it goes, in milliseconds. */
const goneMs = 4_000;

/** A card for the call that rings; nothing while none does. */
export const IncomingCall = forwardRef<HTMLDivElement, IncomingCallProps>(function IncomingCall(props, ref) {
  const call = useIncomingCall();
  const { announcer } = useParley();
  const { endedBecause } = useCallStrings();
  const [gone, setGone] = useState<string | null>(null);
  /** The call that was declined here: the service tells this device, too, that one of the user's did. */
  const declined = useRef<string | null>(null);
  const frame = useFrame();
  // A card that goes because of another device, or because nobody answered, says so.
  useEffect(
    () => () => {
      const why = call?.id === declined.current ? null : call?.get().endedHere;
      const word = why ? endedBecause[why] : undefined;
      if (!word) return;
      announcer.say(word);
      setGone(word);
    },
    [call, announcer, endedBecause],
  );
  useEffect(() => {
    if (gone === null) return undefined;
    const timer = setTimeout(() => setGone(null), goneMs);
    return () => clearTimeout(timer);
  }, [gone]);
  if (call) return <Card key={call.id} call={call} declined={declined} forwarded={ref} {...props} />;
  if (gone === null) return null;
  const { onAnswered: _, ringtone: __, buttons: ___, placement, className, ...rest } = props;
  return (
    <div
      {...frame}
      {...rest}
      className={cx('parley-incoming', className)}
      data-placement={placement}
      data-gone=""
    >
      {gone}
    </div>
  );
});

type CardProps = IncomingCallProps & {
  declined: MutableRefObject<string | null>;
  call: CallHandle;
  forwarded: ForwardedRef<HTMLDivElement>;
};

function Card({
  call,
  declined,
  forwarded,
  onAnswered,
  ringtone,
  placement,
  buttons,
  className,
  ...rest
}: CardProps) {
  const strings = useCallStrings();
  const view = useCall(call)!;
  const name = useName(view.call.createdBy);
  const current = useCall();
  const [small, setSmall] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const card = useRef<HTMLDivElement | null>(null);
  // The card gets the focus, not a button, so that a key press while it rings answers nothing by accident.
  useEffect(() => card.current?.focus(), []);
  const answer = (options: JoinOptions): void => {
    call.accept(options).then(
      () => onAnswered?.(call),
      (e: unknown) => setProblem((e as Error).message),
    );
  };
  const decline = (): void => {
    declined.current = call.id;
    call.decline().catch((e: unknown) => {
      declined.current = null;
      setProblem((e as Error).message);
    });
  };
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>): void => {
    if (event.key === 'Escape') setSmall(!small);
    else if (event.key === 'Enter' && event.target === event.currentTarget) answer({});
    else return;
    event.preventDefault();
  };
  const video = view.kind === 'video';
  const label = (icon: 'end' | 'phone' | 'camera', text: string): ReactNode => (
    <>
      <CallIcon name={icon} size={17} />
      {text}
    </>
  );
  const usual: IncomingButton[] = [
    { id: 'decline', label: label('end', strings.decline), onPress: decline },
    ...(video
      ? [{ id: 'voice', label: label('phone', strings.voice), onPress: () => answer({ camera: false }) }]
      : []),
    { id: 'answer', label: label(video ? 'camera' : 'phone', strings.answer), onPress: () => answer({}) },
  ];
  return (
    <div
      ref={(element) => {
        card.current = element;
        if (typeof forwarded === 'function') forwarded(element);
        else if (forwarded) forwarded.current = element;
      }}
      className={cx('parley-incoming', className)}
      role="alertdialog"
      aria-label={strings.incoming(name)}
      tabIndex={-1}
      data-small={small || undefined}
      data-placement={placement}
      {...useFrame()}
      {...rest}
      onKeyDown={onKeyDown}
    >
      {ringtone === undefined ? null : <audio src={ringtone} loop autoPlay />}
      <div className="parley-caller">
        <span className="parley-ringing">
          <UserAvatar userId={view.call.createdBy} size={small ? 36 : 64} />
        </span>
        <div>
          <b>{name}</b>
          <span>
            <CallIcon name={video ? 'camera' : 'phone'} size={15} />
            {video ? strings.callsWithVideo : strings.callsWithVoice}
          </span>
        </div>
      </div>
      {current ? <p className="parley-note">{strings.leavesOther}</p> : null}
      {problem === null ? null : (
        <p className="parley-problem" role="alert">
          {problem}
        </p>
      )}
      <div className="parley-answers">
        {(buttons?.(usual, call) ?? usual).map((one) => (
          <button key={one.id} type="button" data-kind={one.id} onClick={one.onPress}>
            {one.label}
          </button>
        ))}
      </div>
    </div>
  );
}
