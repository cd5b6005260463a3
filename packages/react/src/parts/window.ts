import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { RefObject } from 'react';
import type { ParleyError } from '@parley/client';
import type { MessagesView } from '../hooks/messages.ts';

/** Rows that are in the page at the end of a thread, and at most; older ones come and newer ones go in steps. */
const atEndRows = 60;
const maxRows = 100;
/** Few at a time: what renders between two frames must be short. */
const stepRows = 20;
/** So near to an edge more rows are wanted. */
const nearPx = 1_000;
const endPx = 24;
/** A quoted message is looked for in so many older pages. */
const maxSearch = 10;

export interface RowWindow {
  box: RefObject<HTMLDivElement | null>;
  /** The rows to render: `from` to before `to`. */
  from: number;
  to: number;
  atEnd: boolean;
  loadingOlder: boolean;
  /** Why older messages did not come. */
  failed: ParleyError | null;
  loadOlder(): void;
  onScroll(): void;
  scrollToEnd(): void;
  /** Brings a message into view, and older pages for it if need be. Resolves to its key, or null. */
  scrollTo(messageId: string): Promise<string | null>;
}

const useBrowserLayoutEffect = typeof document === 'undefined' ? useEffect : useLayoutEffect;
const rowOf = (box: HTMLElement, key: string): HTMLElement | null =>
  box.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);

/**
 * A bounded number of rows around what is seen. States: pinned (the end is seen, and stays seen whatever grows) --the
 * user scrolls up--> free (the first visible row stays where it is, whatever comes above or below) --at the end--> pinned.
 */
export function useRowWindow(messages: MessagesView): RowWindow {
  const { items, hasOlder, hasNewer } = messages;
  const box = useRef<HTMLDivElement>(null);
  const pinned = useRef(true);
  const anchor = useRef<{ key: string; top: number } | null>(null);
  const size = useRef({ height: 0, content: 0 });
  const target = useRef<string | null>(null);
  const loading = useRef(false);
  const [atEnd, setAtEnd] = useState(true);
  const [loadingOlder, setLoadingOlder] = useState(false);
  const [failed, setFailed] = useState<ParleyError | null>(null);
  /** Keys of the first and the last row; null: as many as there are at the end, and to the end. */
  const [range, setRange] = useState<{ from: string | null; to: string | null }>({ from: null, to: null });

  const indexOf = (key: string): number => items.findIndex((item) => item.key === key);
  let to = range.to === null ? items.length : indexOf(range.to) + 1 || items.length;
  let from = range.from === null ? -1 : indexOf(range.from);
  if (from < 0) from = Math.max(0, to - atEndRows);
  else to = Math.min(to, from + maxRows);

  const latest = useRef({ messages, from, to });
  useBrowserLayoutEffect(() => void (latest.current = { messages, from, to }));

  const pin = useCallback((end: boolean) => {
    if (pinned.current === end) return;
    pinned.current = end;
    setAtEnd(end);
    const { messages: now, from: first, to: last } = latest.current;
    // What is read must not move while new messages come: the first row is held.
    const held = (index: number): string | null => now.items[index]?.key ?? null;
    setRange(
      end
        ? { from: null, to: null }
        : { from: held(first), to: last < now.items.length ? held(last - 1) : null },
    );
  }, []);

  const place = useCallback(() => {
    const element = box.current;
    if (!element) return;
    if (target.current !== null) {
      const row = rowOf(element, target.current);
      if (row) {
        target.current = null;
        element.scrollTop = row.offsetTop - Math.max(0, element.clientHeight - row.offsetHeight) / 2;
        anchor.current = { key: row.dataset['key']!, top: row.offsetTop - element.scrollTop };
      }
    } else if (pinned.current) element.scrollTop = element.scrollHeight;
    else if (anchor.current) {
      const row = rowOf(element, anchor.current.key);
      const moved = row ? row.offsetTop - element.scrollTop - anchor.current.top : 0;
      if (Math.abs(moved) >= 1) element.scrollTop += moved;
    }
    size.current = { height: element.clientHeight, content: element.scrollHeight };
  }, []);

  const older = useCallback(() => {
    if (loading.current) return;
    loading.current = true;
    setLoadingOlder(true);
    setFailed(null);
    latest.current.messages
      .loadOlder()
      .catch(setFailed) // The next scroll tries again.
      .finally(() => {
        loading.current = false;
        setLoadingOlder(false);
      });
  }, []);

  /** Rows before and after what is seen, where the edge is near. */
  const fill = useCallback(() => {
    const element = box.current;
    if (!element) return;
    const { messages: now, from: first, to: last } = latest.current;
    const all = now.items;
    if (element.scrollTop < nearPx) {
      if (first > 0 && !pinned.current) {
        const start = Math.max(0, first - stepRows);
        const end = Math.min(last, start + maxRows);
        setRange({ from: all[start]!.key, to: end < all.length ? all[end - 1]!.key : null });
        return;
      }
      if (first === 0 && now.hasOlder && (!pinned.current || element.scrollHeight <= element.clientHeight))
        older();
    }
    if (element.scrollHeight - element.scrollTop - element.clientHeight < nearPx && !pinned.current) {
      if (last < all.length) {
        const end = Math.min(all.length, last + stepRows);
        const start = Math.max(first, end - maxRows);
        setRange({ from: all[start]!.key, to: end < all.length ? all[end - 1]!.key : null });
      } else if (now.hasNewer) now.loadNewer().catch(() => undefined);
    }
  }, [older]);

  const onScroll = useCallback(() => {
    const element = box.current;
    if (!element) return;
    const { messages: now, to: last } = latest.current;
    const resized =
      element.clientHeight !== size.current.height || element.scrollHeight !== size.current.content;
    // The composer grew or a picture came: not the user.
    if (resized && pinned.current) return place();
    const left = element.scrollHeight - element.scrollTop - element.clientHeight;
    const end = left < endPx && last >= now.items.length && !now.hasNewer;
    if (!end) {
      for (const row of element.querySelectorAll<HTMLElement>('[data-key]')) {
        if (row.offsetTop + row.offsetHeight <= element.scrollTop) continue;
        anchor.current = { key: row.dataset['key']!, top: row.offsetTop - element.scrollTop };
        break;
      }
    }
    pin(end);
    fill();
  }, [fill, pin, place]);

  useBrowserLayoutEffect(place, [items, from, to, place]);
  useEffect(fill, [items, from, to, hasOlder, hasNewer, fill]);
  useEffect(() => {
    const element = box.current;
    if (!element || typeof ResizeObserver === 'undefined') return;
    const observer = new ResizeObserver(place);
    observer.observe(element);
    for (const child of element.children) observer.observe(child);
    return () => observer.disconnect();
  }, [place]);

  const scrollToEnd = useCallback(() => {
    target.current = null;
    const settle = (): void => {
      pin(true);
      place();
    };
    const { messages: now } = latest.current;
    if (now.hasNewer) now.jumpToLatest().then(settle, () => undefined);
    else settle();
  }, [pin, place]);

  const scrollTo = useCallback(
    async (messageId: string) => {
      const find = (): number => latest.current.messages.items.findIndex((item) => item.id === messageId);
      for (let page = 0; find() < 0 && latest.current.messages.hasOlder && page < maxSearch; page++) {
        const { messages: now } = latest.current;
        await now.loadOlder().catch(() => undefined);
        // The window follows when React has rendered it.
        await new Promise((resolve) => setTimeout(resolve));
      }
      const at = find();
      if (at < 0) return null;
      const all = latest.current.messages.items;
      const { key } = all[at]!;
      pin(false);
      target.current = key;
      const start = Math.max(0, at - maxRows / 2);
      const end = Math.min(all.length, start + maxRows);
      setRange({ from: all[start]!.key, to: end < all.length ? all[end - 1]!.key : null });
      place();
      return key;
    },
    [pin, place],
  );

  return { box, from, to, atEnd, loadingOlder, failed, loadOlder: older, onScroll, scrollToEnd, scrollTo };
}
