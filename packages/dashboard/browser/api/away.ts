import type { QueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';

/** Whether the service answers. Pages stay as they are while it does not; one request in a while finds out when it is back. */

const lookMs = 2_000;
const listeners = new Set<() => void>();
let away = false;
let timer: ReturnType<typeof setTimeout> | undefined;
let client: QueryClient | undefined;

function set(next: boolean): void {
  if (next === away) return;
  away = next;
  for (const listener of listeners) listener();
  clearTimeout(timer);
  if (away) timer = setTimeout(() => void look(), lookMs);
  else void client?.invalidateQueries();
}

async function look(): Promise<void> {
  const answer = await fetch('/healthz', { cache: 'no-store' }).catch(() => null);
  if (answer && !isAway(answer.status)) set(false);
  else if (away) timer = setTimeout(() => void look(), lookMs);
}

/** 0: no answer. The other statuses come from a proxy whose service is away, and from a service that is closing. */
export const isAway = (status: number): boolean => [0, 502, 503, 504].includes(status);

/** @param status of an answer; 0: there was none. */
export const noteAnswer = (status: number): void => set(isAway(status));

/** Whose queries are asked again once the service is back. */
export function refreshOnReturn(queries: QueryClient): void {
  client = queries;
}

export const useAway = (): boolean =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => away,
  );
