import { Text, Tooltip } from '@mantine/core';
import { useEffect, useReducer } from 'react';
import type { ReactNode } from 'react';
import { serverNow } from '../api/clock.ts';
import { distance } from './moments.ts';
import { once } from './once.ts';

const local = once(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' }));
const timeOfDay = once(() => new Intl.DateTimeFormat(undefined, { timeStyle: 'short' }));

/** The local time of day. */
export const clock = (at: string): string => timeOfDay().format(Date.parse(at));

const day = once(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' }));
const hour = once(
  () =>
    new Intl.DateTimeFormat(undefined, {
      month: 'short',
      day: 'numeric',
      hour: 'numeric',
      minute: '2-digit',
      timeZone: 'UTC',
    }),
);

/** The name of a step of a report, in UTC. */
export const dayOrHour =
  (granularity: 'hour' | 'day') =>
  (at: string): string =>
    (granularity === 'day' ? day : hour)().format(Date.parse(at));

const toTheMs = once(
  () =>
    new Intl.DateTimeFormat(undefined, {
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      fractionalSecondDigits: 3,
      hourCycle: 'h23',
    } as const),
);
const shortDay = once(() => new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' }));

/** The time of day, with the day if it is not today. */
function exact(at: number): string {
  const today = shortDay().format(serverNow()) === shortDay().format(at);
  return `${today ? '' : `${shortDay().format(at)}, `}${toTheMs().format(at)}`;
}

const tickMs = 10_000;

/**
 * A moment: how long ago, and on hover or focus in local time and in UTC; `exact`: the time of day with milliseconds, where
 * the order matters; `full`: all of it at once.
 */
export function Time(props: {
  at: string | null | undefined;
  never?: string;
  exact?: boolean;
  full?: boolean;
}): ReactNode {
  const [, tick] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const timer = setInterval(tick, tickMs);
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
      {local().format(ms)} (local)
      <br />
      {at} (UTC)
    </>
  );
  if (props.full) return <time dateTime={at}>{both}</time>;
  return (
    <Tooltip label={both} events={{ hover: true, focus: true, touch: true }}>
      <time dateTime={at} tabIndex={0}>
        {props.exact ? exact(ms) : distance(ms, serverNow())}
      </time>
    </Tooltip>
  );
}
