import { realtime } from '@parley/protocol';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';
import { pushFrame } from '../../realtime/wire.ts';

/** Milliseconds that a close handshake may take at the end of a drain. */
const closingMs = 2_000;

/** socket#goaway: clients get about 30 s to leave, then sockets close with 1012, then the connections are cut. */
export async function drain(
  sessions: Sessions,
  goaway: (session: Session) => void,
  ms: number,
): Promise<void> {
  for (const session of sessions.loggedIn.values()) goaway(session);
  for (const session of sessions.opened) session.close(1012);
  await sessions.emptied(ms);
  for (const session of sessions.loggedIn.values()) session.close(1012);
  await sessions.emptied(closingMs);
  for (const session of sessions.all) session.ws.terminate();
}

/** Each client is told to come back at a random time, so that not all come at once. */
export function sendGoaway(session: Session, random: () => number): void {
  session.send(pushFrame('goaway', { reconnectAfterMs: Math.floor(random() * realtime.goawayMaxMs) }));
}
