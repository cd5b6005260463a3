/** The service's clock, read from the dates of its answers. The browser's clock may be wrong by an hour. */

/** Answers name whole seconds, and take a while to come. */
const toleratedMs = 5_000;
let aheadMs = 0;

/** @param date of an answer's header. */
export function noteServerDate(date: string | null): void {
  const at = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(at)) return;
  const ahead = at - Date.now();
  aheadMs = Math.abs(ahead) > toleratedMs ? ahead : 0;
}

export const serverNow = (): number => Date.now() + aheadMs;
