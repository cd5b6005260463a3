import type { ApiError } from '@parley/protocol';
import type { Session } from './session.ts';

/** Milliseconds for which a client that sends too much has to stay away, at least. */
const pauseMs = 10_000;

const reasonBytes = 123;

/** A close reason has at most 123 bytes. That of 4008 is JSON (socket#close-reason); the others contain the code and the message. */
const reasonOf = (error: ApiError): string =>
  error.retryAfterMs === null
    ? Buffer.from(`${error.code}: ${error.message}`)
        .subarray(0, reasonBytes)
        .toString()
        .replace(/\uFFFD+$/, '')
    : JSON.stringify({ code: error.code, retryAfterMs: error.retryAfterMs });

/** The error's own close code; null if the connection survives it. */
export function closeCodeOf({ row: { socket } }: ApiError): number | null {
  return typeof socket === 'object' && socket !== null ? socket.close : null;
}

/** Closes with the error's own close code; returns false if the error has none. */
export function closeFor(session: Session, error: ApiError): boolean {
  const code = closeCodeOf(error);
  if (code !== null) session.close(code, reasonOf(error));
  return code !== null;
}

/** A login that failed ends the connection whatever the error is, even one that a live socket would survive. */
export function closeForLogin(session: Session, error: ApiError): void {
  if (closeFor(session, error)) return;
  if (error.code === 'rate_limited') return sendAway(session, error.retryAfterMs!);
  // Neither the token nor the user is at fault, so the client comes again (1013).
  session.close(error.row.type === 'permission' ? 4003 : 1013, reasonOf(error));
}

/** Close 4008: the client sends more than allowed, and may come back after a pause. */
export function sendAway(session: Session, retryAfterMs = 0): void {
  session.close(
    4008,
    JSON.stringify({ code: 'rate_limited', retryAfterMs: Math.max(pauseMs, retryAfterMs) }),
  );
}
