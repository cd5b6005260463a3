import { Text } from '@mantine/core';
import { useEffect, useReducer } from 'react';
import type { ReactNode } from 'react';
import { serverNow } from '../api/clock.ts';
import { distance } from './moments.ts';
import { once } from './once.ts';

const local = once(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' }));

/** The local time of day. By hand, as all of the first page: the browser's formatters take 80 ms of a slow machine to begin with. */
export function clock(at: string): string {
  const moment = new Date(at);
  const two = (part: number): string => String(part).padStart(2, '0');
  return `${two(moment.getHours())}:${two(moment.getMinutes())}`;
}

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
  if (props.full)
    return (
      <time dateTime={at} className="lines">
        {inBoth(at)}
      </time>
    );
  return (
    <time dateTime={at} tabIndex={0} data-tip>
      {props.exact ? exact(ms) : distance(ms, serverNow())}
    </time>
  );
}

const inBoth = (at: string): string => `${local().format(Date.parse(at))} (local)\n${at} (UTC)`;

/** One tip for all moments, on top of everything: of the one that has the pointer or the focus. */
export function showTips(): void {
  const tip = document.createElement('div');
  tip.id = 'tip';
  tip.className = 'tip lines';
  tip.role = 'tooltip';
  tip.popover = 'manual';
  document.body.append(tip);
  let of: HTMLTimeElement | null = null;
  const hide = (): void => {
    of?.removeAttribute('aria-describedby');
    of = null;
    tip.hidePopover();
  };
  const show = ({ target }: Event): void => {
    const over = target instanceof Element ? target.closest<HTMLTimeElement>('time[data-tip]') : null;
    if (over === of) return;
    hide();
    if (!over) return;
    of = over;
    tip.textContent = inBoth(over.dateTime);
    over.setAttribute('aria-describedby', tip.id);
    tip.showPopover();
    place();
  };
  const place = (): void => {
    if (!of) return;
    const { left, top, bottom } = of.getBoundingClientRect();
    const { offsetWidth, offsetHeight } = tip;
    const below = bottom + offsetHeight + 6 < innerHeight;
    tip.style.insetInlineStart = `${Math.max(4, Math.min(left, innerWidth - offsetWidth - 4))}px`;
    tip.style.top = `${below ? bottom + 6 : top - offsetHeight - 6}px`;
  };
  for (const event of ['pointerover', 'focusin']) addEventListener(event, show);
  addEventListener('focusout', hide);
  addEventListener('scroll', place, true);
  addEventListener('keydown', ({ key }) => key === 'Escape' && hide());
}
