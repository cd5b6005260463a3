/** What an error of PostgreSQL means, by its SQLSTATE. An error that was translated for the caller has the original as its cause. */
function stateOf(error: unknown): string {
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)) return code;
  return cause === undefined || cause === null ? '' : stateOf(cause);
}

/** Classes 22 (data) and 23 (constraints): a row cannot be stored, now or later. */
export const isBadRow = (error: unknown): boolean => /^2[23]/.test(stateOf(error));

/** A lock was not to be had in time, or two transactions waited for each other. */
export const isLockedOut = (error: unknown): boolean => ['55P03', '40P01'].includes(stateOf(error));
