import { forwardRef, useEffect, useRef, useState } from 'react';
import type { ComponentPropsWithoutRef, ForwardedRef, KeyboardEvent } from 'react';
import type { CallHandle, JoinOptions } from '@parley/client/calls';
import { useParley } from '../hooks/context.ts';
import { useName } from '../hooks/people.ts';
import { UserAvatar } from '../parts/avatar.tsx';
import { cx, useFrame } from '../parts/tools.ts';
import { useCall, useCallStrings, useIncomingCall } from './hooks.ts';
import { CallIcon } from './icons.tsx';

export interface IncomingCallProps extends Omit<ComponentPropsWithoutRef<'div'>, 'children'> {
  /** Called when this device has answered. */
  onAnswered?: (call: CallHandle) => void;
  /** The address of a sound that is repeated while it rings. Browsers play it only after the user did something. */
  ringtone?: string;
}

/** A card for the call that rings; nothing while none does. */
export const IncomingCall = forwardRef<HTMLDivElement, IncomingCallProps>(function IncomingCall(props, ref) {
  const call = useIncomingCall();
  const { announcer } = useParley();
  const { endedBecause } = useCallStrings();
  // A card that goes because of another device says why.
  useEffect(
    () => () => {
      const why = call?.get().endedHere;
      if (why && endedBecause[why]) announcer.say(endedBecause[why]);
    },
    [call, announcer, endedBecause],
  );
  return call ? <Card key={call.id} call={call} forwarded={ref} {...props} /> : null;
});

type CardProps = IncomingCallProps & { call: CallHandle; forwarded: ForwardedRef<HTMLDivElement> };

function Card({ call, forwarded, onAnswered, ringtone, className, ...rest }: CardProps) {
  const strings = useCallStrings();
  const view = useCall(call)!;
  const name = useName(view.call.createdBy);
  const [small, setSmall] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const card = useRef<HTMLDivElement | null>(null);
  // The card and not a button: whoever types while it rings answers nothing by accident.
  useEffect(() => card.current?.focus(), []);
  const answer = (options: JoinOptions): void => {
    call.accept(options).then(
      () => onAnswered?.(call),
      (e: unknown) => setProblem((e as Error).message),
    );
  };
  const decline = (): void => void call.decline().catch((e: unknown) => setProblem((e as Error).message));
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>): void => {
    if (event.key === 'Escape') setSmall(!small);
    else if (event.key === 'Enter' && event.target === event.currentTarget) answer({});
    else return;
    event.preventDefault();
  };
  const video = view.kind === 'video';
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
      {problem === null ? null : (
        <p className="parley-problem" role="alert">
          {problem}
        </p>
      )}
      <div className="parley-answers">
        <button type="button" data-kind="decline" onClick={decline}>
          <CallIcon name="end" size={17} />
          {strings.decline}
        </button>
        {video ? (
          <button type="button" data-kind="voice" onClick={() => answer({ camera: false })}>
            <CallIcon name="phone" size={16} />
            {strings.voice}
          </button>
        ) : null}
        <button type="button" data-kind="answer" onClick={() => answer({})}>
          <CallIcon name={video ? 'camera' : 'phone'} size={17} />
          {strings.answer}
        </button>
      </div>
    </div>
  );
}
