import { Text, Tooltip } from '@mantine/core';
import { useEffect, useState } from 'react';
import type { ReactNode } from 'react';

const local = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' });
const timeOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });

/** The local time of day. */
export const clock = (at: string): string => timeOfDay.format(Date.parse(at));

const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' });
const hour = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
  timeZone: 'UTC',
});

/** The name of a step of a report, in UTC. */
export const dayOrHour =
  (granularity: 'hour' | 'day') =>
  (at: string): string =>
    (granularity === 'day' ? day : hour).format(Date.parse(at));

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

function ago(at: number, now: number): string {
  const seconds = Math.round((at - now) / 1_000);
  const [unit, size] = units.find(([, s]) => Math.abs(seconds) >= s) ?? units.at(-1)!;
  return relative.format(Math.round(seconds / size), unit);
}

/** A moment: how long ago, and on hover or focus in local time and in UTC; `full`: all of it at once. */
export function Time(props: { at: string | null | undefined; never?: string; full?: boolean }): ReactNode {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  const { at } = props;
  if (!at)
    return (
      <Text span inherit c="dimmed">
        {props.never ?? 'never'}
      </Text>
    );
  const ms = Date.parse(at);
  const both = (
    <>
      {local.format(ms)} (local)
      <br />
      {at} (UTC)
    </>
  );
  if (props.full) return <time dateTime={at}>{both}</time>;
  return (
    <Tooltip label={both} events={{ hover: true, focus: true, touch: true }}>
      <time dateTime={at} tabIndex={0}>
        {ago(ms, now)}
      </time>
    </Tooltip>
  );
}
