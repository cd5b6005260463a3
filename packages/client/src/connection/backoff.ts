import { ParleyError } from '../errors.ts';

/** sdk#backoff and sdk#closes: what to do after a socket has closed. */

/** Full jitter: random(0, min(30 s, 0.5 s x 2^attempt)). */
export const backoff = (attempt: number, random: () => number): number =>
  Math.floor(random() * Math.min(30_000, 500 * 2 ** Math.min(attempt, 10)));

export type Next =
  | { final: true }
  /** `hard`: not even network-online may shorten the delay. `refresh`: connect with a new token. */
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
      const wait = closeReason(reason).retryAfterMs;
      return wait === undefined ? { final: false, delayMs } : { final: false, delayMs: wait, hard: true };
    }
    case 1012:
      return { final: false, delayMs: Math.floor(random() * 5_000) };
    default:
      return { final: false, delayMs };
  }
}

interface CloseReason {
  code?: string;
  message?: string;
  retryAfterMs?: number;
}

/** The close reason of the server: JSON with a code and the time to wait, or the code and a text. */
export function closeReason(reason: string): CloseReason {
  try {
    const { code, retryAfterMs } = JSON.parse(reason) as CloseReason;
    return { ...(code ? { code } : {}), ...(retryAfterMs! >= 0 ? { retryAfterMs } : {}) };
  } catch {
    const [, code, message] = /^([a-z_]+): (.*)$/.exec(reason) ?? [];
    return code ? { code, message } : {};
  }
}

const closeNames: Record<number, string> = {
  4001: 'token_invalid',
  4003: 'forbidden',
  4008: 'rate_limited',
  4009: 'too_many_connections',
  4400: 'invalid_frame',
};
/**
 * @param where the address.
 * @param why what else is known about the failure.
 */
export function closeError(code: number, reason: string, where: string, why: string): ParleyError {
  const told = closeReason(reason);
  return new ParleyError(
    told.code ?? closeNames[code] ?? 'network',
    told.message ?? `${where}: ${why || `closed with ${code} ${reason}`}`,
    told,
  );
}
