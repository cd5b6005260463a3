import { Fragment, useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from 'react';
import type { KeyboardEvent, ReactNode, Ref } from 'react';
import type { ConversationListItem } from '@parley/client';

export interface LongListHandle {
  /** The focus goes to a row, which comes into the page for it. */
  focus(index: number): void;
}

export interface LongListProps {
  items: readonly ConversationListItem[];
  /** The index of the row to which the tab key goes, if it is in the page. */
  current: number;
  /** The title over a row that begins a section, or null. */
  titleOf: (index: number) => ReactNode;
  row: (item: ConversationListItem, tabStop: boolean) => ReactNode;
  onKeyDown: (event: KeyboardEvent<HTMLUListElement>) => void;
  handle: Ref<LongListHandle>;
}

/** What rows, titles and the gaps between them take, until they are measured. */
const usual = { row: 58, title: 32, gap: 2 };
/** Rows so far outside of what is seen are in the page, too. */
const marginPx = 600;
/** Less of scrolling renders nothing. */
const stepPx = 60;

/** What scrolls the list: the part itself, or a box around it; null: the page. */
function boxOf(list: HTMLElement): HTMLElement | null {
  for (let at: HTMLElement | null = list; at; at = at.parentElement)
    if (/auto|scroll/.test(getComputedStyle(at).overflowY)) return at;
  return null;
}

/** Which part of the list is seen, from its upper edge. */
function seenOf(list: HTMLElement, box: HTMLElement | null): { top: number; bottom: number } {
  const { top } = list.getBoundingClientRect();
  const view = box?.getBoundingClientRect() ?? { top: 0, bottom: innerHeight };
  return { top: view.top - top, bottom: view.bottom - top };
}

/** A list of hundreds of conversations: those near to what is seen are in the page, and the others are empty room. */
export default function LongList({ items, current, titleOf, row, onKeyDown, handle }: LongListProps) {
  const list = useRef<HTMLUListElement>(null);
  /** The row that gets the focus when it is in the page. */
  const wanted = useRef<number | null>(null);
  const [seen, setSeen] = useState({ top: 0, bottom: 1_000 });
  const [size, setSize] = useState(usual);
  const tops = [0];
  for (let i = 0; i < items.length; i++)
    tops.push(tops[i]! + size.row + size.gap + (titleOf(i) === null ? 0 : size.title + size.gap));
  /** The first row of which nothing is above this place. */
  const below = (y: number): number => {
    const at = tops.findIndex((top) => top >= y);
    return at < 0 ? items.length : at;
  };
  const from = Math.min(items.length, Math.max(0, below(seen.top - marginPx) - 1));
  const to = Math.min(items.length, below(seen.bottom + marginPx));

  useEffect(() => {
    const element = list.current!;
    const box = boxOf(element);
    const look = (): void => {
      const { top, bottom } = seenOf(element, box);
      const coarse = (y: number): number => Math.round(y / stepPx) * stepPx;
      const next = { top: coarse(top), bottom: coarse(bottom) };
      setSeen((was) => (was.top === next.top && was.bottom === next.bottom ? was : next));
    };
    look();
    const target = box ?? document;
    target.addEventListener('scroll', look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(box ?? document.documentElement);
    return () => {
      target.removeEventListener('scroll', look);
      observer.disconnect();
    };
  }, []);

  // All rows are as high as one of them, and so are all titles; they change with the width of the list alone.
  const measured = useRef({ width: -1, title: false });
  useLayoutEffect(() => {
    const element = list.current!;
    const width = element.clientWidth;
    const heightOf = (selector: string): number | undefined =>
      element.querySelector(`:scope > ${selector}`)?.getBoundingClientRect().height || undefined;
    const title = heightOf('.parley-section');
    const known = measured.current.width === width;
    if (known && (measured.current.title || title === undefined)) return;
    measured.current = { width, title: title !== undefined };
    setSize((was) => ({
      row: known ? was.row : (heightOf('[aria-posinset]') ?? was.row),
      title: title ?? was.title,
      gap: parseFloat(getComputedStyle(element).rowGap) || 0,
    }));
  });

  const rowAt = (index: number): HTMLElement | null =>
    list.current!.querySelector(`[aria-posinset="${index + 1}"] .parley-conversation`);
  const enter = (index: number): boolean => {
    const at = rowAt(index);
    at?.focus({ preventScroll: true });
    at?.scrollIntoView({ block: 'nearest' });
    return at !== null;
  };
  const focus = (index: number): void => {
    wanted.current = enter(index) ? null : index;
    if (wanted.current === null) return;
    const box = boxOf(list.current!);
    const { top, bottom } = seenOf(list.current!, box);
    (box ?? document.documentElement).scrollTop += tops[index]! - (top + bottom) / 2;
  };
  // Before the browser shows that the row which had the focus is gone: no key is lost in between.
  useLayoutEffect(() => {
    if (wanted.current !== null && enter(wanted.current)) wanted.current = null;
  });
  useImperativeHandle(handle, () => ({ focus }));

  const room = (height: number): ReactNode =>
    height > 0 ? <li aria-hidden="true" style={{ height: height - size.gap }} /> : null;
  const tabStop = current >= from && current < to ? current : from;
  return (
    <ul
      ref={list}
      data-from={from}
      onKeyDown={(event) => {
        wanted.current = null;
        if (event.key !== 'Home' && event.key !== 'End') return onKeyDown(event);
        event.preventDefault();
        focus(event.key === 'Home' ? 0 : items.length - 1);
      }}
    >
      {room(tops[from]!)}
      {items.slice(from, to).map((item, i) => {
        const at = from + i;
        return (
          <Fragment key={item.id}>
            {titleOf(at)}
            <li aria-setsize={items.length} aria-posinset={at + 1}>
              {row(item, at === tabStop)}
            </li>
          </Fragment>
        );
      })}
      {room(tops[items.length]! - tops[to]!)}
    </ul>
  );
}
