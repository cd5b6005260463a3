import { forwardRef, useState } from 'react';
import type { ComponentPropsWithoutRef } from 'react';
import type { CallHandle, JoinOptions } from '@parley/client/calls';
import { cx } from '../parts/tools.ts';
import { problemOf, useCalls, useCallStrings, useKnownCall, useLiveCall } from './hooks.ts';
import { CallIcon } from './icons.tsx';

export interface JoinCallProps extends Omit<ComponentPropsWithoutRef<'button'>, 'children' | 'onClick'> {
  conversationId: string;
  /** Which devices it begins with. */
  options?: JoinOptions;
  onJoined?: (call: CallHandle) => void;
}

/** A button that joins the call of a conversation: "Join, 3 are in". Nothing where none goes on, or it is here already. */
export const JoinCall = forwardRef<HTMLButtonElement, JoinCallProps>(function JoinCall(props, ref) {
  const { conversationId, options, onJoined, className, ...rest } = props;
  const calls = useCalls();
  const strings = useCallStrings();
  const live = useLiveCall(conversationId);
  const here = useKnownCall(live?.id);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const inCall = live?.participants.filter(({ state }) => state === 'joined' || state === 'joining').length;
  if (!live || (here && !busy) || !inCall) return null;
  const join = (): void => {
    if (busy) return;
    setBusy(true);
    setProblem(null);
    calls
      .join(live.id, options)
      .then(onJoined, (e: unknown) => setProblem(problemOf(e, strings, strings.microphone)))
      .finally(() => setBusy(false));
  };
  return (
    <>
      <button
        ref={ref}
        type="button"
        aria-busy={busy}
        {...rest}
        className={cx('parley-join', className)}
        onClick={join}
      >
        <CallIcon name={live.kind === 'video' ? 'camera' : 'phone'} size={16} />
        {strings.joinCall(inCall)}
      </button>
      {problem === null ? null : (
        <span className="parley-problem" role="alert">
          {problem}
        </span>
      )}
    </>
  );
});
