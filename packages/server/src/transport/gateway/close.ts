import type { ApiError } from '@parley/protocol';
import type { Session } from './session.ts';

/** How long a client that sends too much is sent away, at least. */
const pauseMs = 10_000;

const reasonBytes = 123;

/** A close reason holds at most 123 bytes; that of 4008 is JSON (SPEC 7), the others say the code and why. */
const reasonOf = (error: ApiError): string =>
  error.retryAfterMs === null
    ? Buffer.from(`${error.code}: ${error.message}`)
        .subarray(0, reasonBytes)
        .toString()
        .replace(/\uFFFD+$/, '')
    : JSON.stringify({ code: error.code, retryAfterMs: error.retryAfterMs });

/** Closes with the error's own code; false when it has none, because it is one of those that keep the connection. */
export function closeFor(session: Session, error: ApiError): boolean {
  const { socket } = error.row;
  if (typeof socket !== 'object' || socket === null) return false;
  session.close(socket.close, reasonOf(error));
  return true;
}

/** A login that failed ends the connection whatever the error is: also one that a live socket would survive. */
export function closeForLogin(session: Session, error: ApiError): void {
  if (closeFor(session, error)) return;
  if (error.code === 'rate_limited') return sendAway(session, error.retryAfterMs!);
  // Neither the token's fault nor the user's: the client comes again (1013).
  session.close(error.row.type === 'permission' ? 4003 : 1013, reasonOf(error));
}

/** Close 4008: the client sends more than it may, and comes back after a pause. */
export function sendAway(session: Session, retryAfterMs = 0): void {
  session.close(
    4008,
    JSON.stringify({ code: 'rate_limited', retryAfterMs: Math.max(pauseMs, retryAfterMs) }),
  );
}
