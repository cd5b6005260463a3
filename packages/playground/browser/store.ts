import { useSyncExternalStore } from 'react';

/** A value with subscribers. */
export class Value<T> {
  #value: T;
  readonly #listeners = new Set<() => void>();
  constructor(value: T) {
    this.#value = value;
  }
  get = (): T => this.#value;
  set = (value: T): void => {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) listener();
  };
  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };
}

export const useValue = <T>(value: Value<T>): T => useSyncExternalStore(value.subscribe, value.get);

const queries = new Map<string, MediaQueryList>();
const queryOf = (text: string): MediaQueryList => {
  let query = queries.get(text);
  if (!query) queries.set(text, (query = matchMedia(text)));
  return query;
};

/** Whether the page fits a media query, for what CSS alone cannot decide. */
export function useMedia(text: string): boolean {
  const query = queryOf(text);
  return useSyncExternalStore(
    (changed) => {
      query.addEventListener('change', changed);
      return () => query.removeEventListener('change', changed);
    },
    () => query.matches,
  );
}
