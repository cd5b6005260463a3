import { Text, Tooltip } from '@mantine/core';
import { useEffect, useState } from 'react';
import type { ReactNode } from 'react';

const local = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' });

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

/** A moment: how long ago, and on hover or focus in local time and in UTC. */
export function Time({ at, never = 'never' }: { at: string | null | undefined; never?: string }): ReactNode {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  if (!at)
    return (
      <Text span inherit c="dimmed">
        {never}
      </Text>
    );
  const ms = Date.parse(at);
  return (
    <Tooltip
      label={
        <>
          {local.format(ms)} (local)
          <br />
          {at} (UTC)
        </>
      }
      events={{ hover: true, focus: true, touch: true }}
    >
      <time dateTime={at} tabIndex={0}>
        {ago(ms, now)}
      </time>
    </Tooltip>
  );
}
