import { useParley } from '../hooks/context.ts';
import type { Strings } from '../strings.ts';
import { useHydrated } from '../hooks/store.ts';

const formats = new Map<string, Intl.DateTimeFormat>();
const maxFormats = 100;

export function formatDate(
  at: number,
  locale: string | undefined,
  options: Intl.DateTimeFormatOptions,
): string {
  const key = `${locale} ${JSON.stringify(options)}`;
  let format = formats.get(key);
  if (!format) {
    if (formats.size >= maxFormats) formats.clear();
    formats.set(key, (format = new Intl.DateTimeFormat(locale, options)));
  }
  return format.format(at);
}

const clock: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit' };

export const dayOf = (at: number): string => {
  const date = new Date(at);
  return `${date.getFullYear()}-${date.getMonth()}-${date.getDate()}`;
};
const dayMs = 86_400_000;

/** Today, Yesterday, a weekday of the last week, or a date. */
export function dayName(at: number, now: number, locale: string | undefined, strings: Strings): string {
  if (dayOf(at) === dayOf(now)) return strings.today;
  if (dayOf(at) === dayOf(now - dayMs)) return strings.yesterday;
  if (now - at < 6 * dayMs && at < now) return formatDate(at, locale, { weekday: 'long' });
  const year = new Date(at).getFullYear() === new Date(now).getFullYear();
  return formatDate(at, locale, { day: 'numeric', month: 'short', ...(year ? {} : { year: 'numeric' }) });
}

/** A time of day, or with `day` the day where it is not today. The server writes UTC, the browser its own zone. */
export function Time({ at, day = false }: { at: string; day?: boolean }) {
  const { locale, now, strings } = useParley();
  const hydrated = useHydrated();
  const ms = Date.parse(at);
  if (Number.isNaN(ms)) return null;
  const text = !hydrated
    ? formatDate(ms, locale ?? 'en', { ...clock, timeZone: 'UTC' })
    : day && dayOf(ms) !== dayOf(now())
      ? dayName(ms, now(), locale, strings)
      : formatDate(ms, locale, clock);
  return <time dateTime={at}>{text}</time>;
}

export const timeOf = (at: string, locale: string | undefined): string =>
  formatDate(Date.parse(at), locale, clock);
