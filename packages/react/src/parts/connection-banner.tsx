import { forwardRef, useEffect, useRef, useState } from 'react';
import type { ComponentPropsWithoutRef, ReactNode } from 'react';
import { useConnection } from '../hooks/connection.ts';
import { useStrings } from '../hooks/context.ts';
import { useWaiting } from '../hooks/messages.ts';
import { Icon } from './icon.tsx';
import { cx } from './tools.ts';

export interface ConnectionBannerProps extends ComponentPropsWithoutRef<'div'> {
  /** Whose waiting messages are counted. */
  conversationId?: string;
  /** How long it must last before it is shown, in milliseconds. */
  delay?: number;
  /** Shows a state in another way; gets what usually stands there, which is nothing while it is quiet. */
  renderState?: ((state: BannerState, usual: ReactNode) => ReactNode) | undefined;
}
export type BannerState = 'quiet' | 'lost' | 'back' | 'refused';

const backMs = 3_000;

/** States: quiet --lost for `delay`--> lost --connected--> back --3 s--> quiet; any --failed--> refused. */
export const ConnectionBanner = forwardRef<HTMLDivElement, ConnectionBannerProps>(
  function ConnectionBanner(props, ref) {
    const { conversationId, delay = 1_500, renderState, className, ...rest } = props;
    const strings = useStrings();
    const { state, retry } = useConnection();
    const waiting = useWaiting(conversationId);
    const [shown, setShown] = useState<BannerState>('quiet');
    const before = useRef(false);
    useEffect(() => {
      if (state === 'connected') {
        before.current = true;
        setShown((was) => (was === 'lost' ? 'back' : was));
      } else if (state === 'reconnecting') {
        const timer = setTimeout(() => setShown('lost'), delay);
        return () => clearTimeout(timer);
      }
      return undefined;
    }, [state, delay]);
    useEffect(() => {
      if (shown !== 'back') return;
      const timer = setTimeout(() => setShown('quiet'), backMs);
      return () => clearTimeout(timer);
    }, [shown]);

    const failed = state === 'failed';
    const now = failed ? 'refused' : state === 'idle' && shown === 'lost' ? 'quiet' : shown;
    const again = (
      <button type="button" onClick={retry}>
        {strings.tryNow}
      </button>
    );
    const usual =
      now === 'lost' ? (
        <>
          <Icon name="offline" size={15} />
          {before.current ? strings.reconnecting : strings.connecting}
          {waiting > 0 ? <span>{strings.waitingHere(waiting)}</span> : null}
          {again}
        </>
      ) : now === 'back' ? (
        <>
          <Icon name="check" size={15} />
          {strings.backOnline}
        </>
      ) : now === 'refused' ? (
        <>
          <Icon name="close" size={15} />
          {strings.refused}
          {again}
        </>
      ) : null;
    return (
      <div
        ref={ref}
        className={cx('parley-connection', className)}
        data-state={now}
        role={failed ? 'alert' : 'status'}
        {...rest}
      >
        {renderState ? renderState(now, usual) : usual}
      </div>
    );
  },
);
