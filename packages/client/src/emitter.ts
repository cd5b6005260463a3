export class Emitter<Events extends object> {
  #listeners = new Map<keyof Events, Set<(value: never) => void>>();
  on<K extends keyof Events>(name: K, fn: (value: Events[K]) => void): () => void {
    let set = this.#listeners.get(name);
    if (!set) this.#listeners.set(name, (set = new Set()));
    set.add(fn);
    return () => void set.delete(fn);
  }
  emit<K extends keyof Events>(name: K, value: Events[K]): void {
    for (const fn of [...(this.#listeners.get(name) ?? [])]) (fn as (value: Events[K]) => void)(value);
  }
}
