/** The interface that `useSyncExternalStore` and similar functions need: immutable snapshots and a subscription. */
export interface Store<T> {
  get(): T;
  subscribe(listener: () => void): () => void;
}

export class Value<T> implements Store<T> {
  #value: T;
  #listeners = new Set<() => void>();
  constructor(value: T) {
    this.#value = value;
  }
  get = (): T => this.#value;
  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };
  set(value: T): void {
    if (value === this.#value) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) listener();
  }
}

/** A snapshot that is computed on demand, after `touch()` said that it changed. */
export class Derived<T> implements Store<T> {
  #compute: () => T;
  #snapshot: { value: T } | null = null;
  #listeners = new Set<() => void>();
  constructor(compute: () => T) {
    this.#compute = compute;
  }
  get = (): T => (this.#snapshot ??= { value: this.#compute() }).value;
  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };
  invalidate(): void {
    this.#snapshot = null;
  }
  touch(): void {
    this.invalidate();
    for (const listener of [...this.#listeners]) listener();
  }
}

/** A store whose module is loaded by a subscription; until then it has its first value. */
export function lazyStore<T>(first: T, load: () => Promise<Store<T>>): Store<T> {
  let get = (): T => first;
  return {
    get: () => get(),
    subscribe: (listener) => {
      let ended: boolean;
      let end: (() => void) | undefined;
      void load().then((store) => {
        get = store.get;
        if (ended) return;
        end = store.subscribe(listener);
        listener();
      });
      return () => {
        ended = true;
        end?.();
      };
    },
  };
}
