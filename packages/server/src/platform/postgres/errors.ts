/** The SQLSTATE of a PostgreSQL error. An error that was translated for the caller has the original as its cause. */
function stateOf(error: unknown): string {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)) return code;
  return cause === undefined || cause === null ? '' : stateOf(cause);
}

/** Classes 22 (data) and 23 (constraints): a row cannot be stored, now or later. */
export const isBadRow = (error: unknown): boolean => /^2[23]/.test(stateOf(error));

/** A lock could not be had in time, or two transactions waited for each other. */
export const isLockedOut = (error: unknown): boolean => ['55P03', '40P01'].includes(stateOf(error));

/** The disk of PostgreSQL has no room left, for tables or for its log. */
export const isDiskFull = (error: unknown): boolean => stateOf(error) === '53100';

const networkErrors = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);
/** Errors that pg itself makes have no code. */
const lostConnection =
  /Connection terminated|Query read timeout|timeout expired|timeout exceeded when trying to connect|Client has encountered a connection error|Cannot use a pool after calling end|not queryable/;

/**
 * SQLSTATE classes 08 (connection), 40 (transaction rollback, such as deadlocks), 53 (insufficient resources) and 57
 * (operator intervention: shutdowns, cancelled statements); and lock and transaction time-outs of other classes.
 */
const passingStates = /^(08...|40...|53...|57...|55P03|25P03|25P04)$/;

/** The store cannot be reached, is shutting down, or lacked time or room: the caller may try again. */
export const isUnavailable = (error: unknown): boolean =>
  isUnanswered(error) || passingStates.test(stateOf(error));

/** The connection was lost or the server is going down: it is unknown whether a running commit has happened. */
export function isUnanswered(error: unknown): boolean {
  const { code, message, cause } = error as { code?: unknown; message?: unknown; cause?: unknown };
  if (cause !== undefined && cause !== null) return isUnanswered(cause);
  if (typeof code === 'string') return networkErrors.has(code) || /^(08...|57P0.)$/.test(code);
  return typeof message === 'string' && lostConnection.test(message);
}
