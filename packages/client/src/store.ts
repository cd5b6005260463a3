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

type Stored<M> = M extends () => Promise<infer S extends Store<unknown>> ? S : never;

/** Something whose module is loaded at its first use. */
export class Lazy<F extends object> {
  /** Set once it is loaded. */
  it?: F;
  #load: () => Promise<F>;
  #loading?: Promise<F> | undefined;
  constructor(load: () => Promise<F>) {
    this.#load = load;
  }
  bind(): Promise<F> {
    return (this.#loading ??= this.#load().then(
      (it) => (this.it = it),
      (e) => {
        this.#loading = undefined;
        throw e;
      },
    ));
  }
  /** Gives the target methods of these names, divided by spaces, which load it. */
  lend<T extends object>(target: T, names: string): T {
    for (const name of names.split(' '))
      (target as Record<string, unknown>)[name] = async (...args: unknown[]) =>
        ((await this.bind()) as Record<string, (...args: unknown[]) => unknown>)[name]!(...args);
    return target;
  }
  /**
   * The store that its method of this name gives, with methods of these names: whoever looks loads it, and sees the first
   * value until then.
   */
  store<K extends keyof F>(name: K, first: ReturnType<Stored<F[K]>['get']>, names?: string): Stored<F[K]> {
    const lazy = new Lazy(
      async () =>
        (await (this.bind() as Promise<Record<K, () => unknown>>))[name]() as Promise<Store<unknown>>,
    );
    const store: Store<unknown> = {
      get: () => {
        if (lazy.it) return lazy.it.get();
        lazy.bind().catch(() => {}); // The next look tries again.
        return first;
      },
      subscribe: (listener) => {
        let end: (() => void) | undefined;
        let ended = false;
        lazy.bind().then(
          (loaded) => {
            if (ended) return;
            end = loaded.subscribe(listener);
            listener();
          },
          () => {},
        );
        return () => {
          ended = true;
          end?.();
        };
      },
    };
    return (names ? lazy.lend(store, names) : store) as Stored<F[K]>;
  }
}
