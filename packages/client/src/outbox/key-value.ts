import type { Storage } from './storage.ts';

/** React Native's AsyncStorage, or a browser's localStorage. */
export interface KeyValue {
  getItem(key: string): Promise<string | null> | string | null;
  setItem(key: string, value: string): Promise<unknown> | void;
}

/** All records in one value, which is rewritten for each change. Only for one app at a time, because it has no lock. */
export function keyValueStorage(store: KeyValue, name = 'parley-outbox'): Storage {
  let records: Promise<Record<string, unknown>> | null = null;
  let writing: Promise<unknown> = Promise.resolve();
  const read = () =>
    (records ??= (async () => {
      try {
        return JSON.parse((await store.getItem(name)) ?? '{}') as Record<string, unknown>;
      } catch {
        return {};
      }
    })());
  const change = async (fn: (all: Record<string, unknown>) => void) => {
    const all = await read();
    fn(all);
    const run = writing.then(() => store.setItem(name, JSON.stringify(all)));
    writing = run.catch(() => {});
    await run;
  };
  return {
    list: async (prefix) =>
      Object.entries(await read())
        .filter(([key]) => key.startsWith(prefix))
        .map(([, value]) => structuredCloneJson(value)),
    set: (key, value) => change((all) => void (all[key] = value)),
    delete: (key) => change((all) => void delete all[key]),
  };
}

const structuredCloneJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value)) as unknown;
