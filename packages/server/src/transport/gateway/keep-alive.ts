import { realtime } from '@parley/protocol';
import type { Clock } from '../../platform/clock.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';
import { pushFrame } from '../../realtime/wire.ts';

/** How many sockets that never logged in end in one turn of the event loop. */
const endedAtOnce = 20;

const heartbeat = pushFrame('hb', {});

/** socket#heartbeat, socket#token-expiring: heartbeats, silent clients, tokens that expire, and sockets that never log in. */
export function createKeepAlive(sessions: Sessions, clock: Clock) {
  /** Called when the session got its `hello`. */
  function begin(session: Session): void {
    session.nextHeartbeatTick = clock.monotonic() + realtime.heartbeatMs;
    announceExpiry(session, clock.now());
  }

  /** Called every second. */
  function tick(): void {
    const now = clock.now();
    const tick = clock.monotonic();
    endSilent();
    for (const session of sessions.loggedIn.values()) {
      if (tick - session.lastFrameTick >= realtime.livenessMs) session.end(1001);
      else if (now >= session.tokenExpiresAt) session.close(4001, 'token expired');
      else if (session.state === 'live') {
        announceExpiry(session, now);
        if (tick >= session.nextHeartbeatTick) {
          session.nextHeartbeatTick = tick + realtime.heartbeatMs;
          session.send(heartbeat);
        }
      }
    }
  }

  /**
   * Sockets that were opened together are due together. So that nobody waits for the end of thousands, some end in
   * each turn of the event loop.
   */
  function endSilent(): void {
    const tick = clock.monotonic();
    let ended = 0;
    for (const session of sessions.opened) {
      if (tick - session.openedTick < realtime.authTimeoutMs) break;
      if (!session.isOpen) continue;
      // A login that is being checked gets more time, because the store may be slow.
      if (session.state !== 'opened' && tick - session.openedTick <= realtime.livenessMs) continue;
      if (ended++ === endedAtOnce) return void setImmediate(() => endSilent());
      session.end(4001);
    }
  }

  function announceExpiry(session: Session, now: number): void {
    if (session.expiryAnnounced || session.tokenExpiresAt - now > realtime.tokenExpiringMs) return;
    session.expiryAnnounced = true;
    session.send(pushFrame('token_expiring', { expiresAt: new Date(session.tokenExpiresAt).toISOString() }));
  }

  return { begin, tick };
}

export type KeepAlive = ReturnType<typeof createKeepAlive>;
