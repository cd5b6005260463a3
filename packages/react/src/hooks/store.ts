import { useRef, useSyncExternalStore } from 'react';

interface Readable<T> {
  get(): T;
  subscribe(listener: () => void): () => void;
}

export const nothing = (): (() => void) => () => undefined;

/** A store of the client. The server, and the first render after it, see `initial`: the two must be the same. */
export const useStore = <T>(store: Readable<T>, initial: T): T =>
  useSyncExternalStore(store.subscribe, store.get, () => initial);

/** Returns the earlier value as long as `same` says that nothing changed, so that dependent components do not render. */
export function useStable<T>(same: (a: T, b: T) => boolean): (next: T) => T {
  const last = useRef<{ value: T } | null>(null);
  return (next) => {
    if (!last.current || !same(last.current.value, next)) last.current = { value: next };
    return last.current.value;
  };
}

export function shallowEqual(a: object, b: object): boolean {
  if (a === b) return true;
  const [x, y] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const keys = Object.keys(x);
  return keys.length === Object.keys(y).length && keys.every((key) => Object.is(x[key], y[key]));
}

const yes = (): boolean => true;
const no = (): boolean => false;
/** False on the server and in the render that takes its page over. */
export const useHydrated = (): boolean => useSyncExternalStore(nothing, yes, no);
