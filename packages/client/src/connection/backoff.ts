/** SPEC 4, reconnect backoff, and SPEC 7, close codes: what to do after a socket is gone. */

/** Full jitter: random(0, min(30 s, 0.5 s x 2^attempt)). */
export const backoff = (attempt: number, random: () => number): number =>
  Math.floor(random() * Math.min(30_000, 500 * 2 ** Math.min(attempt, 10)));

export type Next =
  | { final: true }
  /** `hard`: not even network-online may shorten it. `refresh`: with a new token. */
  | { final: false; delayMs: number; hard?: boolean; refresh?: boolean };

export function afterClose(
  code: number,
  reason: string,
  { attempt, authFailures, random }: { attempt: number; authFailures: number; random: () => number },
): Next {
  const delayMs = backoff(attempt, random);
  switch (code) {
    case 4001:
      return authFailures > 1 ? { final: true } : { final: false, delayMs, refresh: true };
    case 4003:
    case 4009:
      return { final: true };
    case 4008: {
      const wait = retryAfter(reason);
      return wait === null ? { final: false, delayMs } : { final: false, delayMs: wait, hard: true };
    }
    case 1012:
      return { final: false, delayMs: Math.floor(random() * 5_000) };
    default:
      return { final: false, delayMs };
  }
}

function retryAfter(reason: string): number | null {
  try {
    const { retryAfterMs } = JSON.parse(reason) as { retryAfterMs?: unknown };
    return typeof retryAfterMs === 'number' && retryAfterMs >= 0 ? retryAfterMs : null;
  } catch {
    return null;
  }
}
