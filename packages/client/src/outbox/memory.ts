import type { Storage } from './storage.ts';

/** Keeps unsent messages as long as the object exists; two clients may share it like two tabs do. */
export function memoryStorage(): Storage {
  const records = new Map<string, string>();
  const locks = new Map<string, Promise<void>>();
  return {
    list: async (prefix) =>
      [...records].filter(([key]) => key.startsWith(prefix)).map(([, value]) => JSON.parse(value) as unknown),
    set: async (key, value) => void records.set(key, JSON.stringify(value)),
    delete: async (key) => void records.delete(key),
    lock: (name, fn) => {
      const run = (locks.get(name) ?? Promise.resolve()).then(fn);
      const settled = run.catch(() => {});
      locks.set(name, settled);
      void settled.then(() => locks.get(name) === settled && locks.delete(name));
      return run;
    },
  };
}
