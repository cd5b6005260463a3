import type { Storage } from './storage.ts';

const leaseMs = 30_000;
const pollMs = 500;

/**
 * For browsers; all tabs of an origin share it. The lock is a Web Lock or, if the browser has none, a lease record
 * that is renewed while held and is free again 30 s after its tab died.
 */
export function indexedDbStorage(name = 'parley'): Storage {
  let opened: Promise<IDBDatabase> | null = null;
  const open = () =>
    (opened ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore('records');
      request.onsuccess = () => {
        request.result.onversionchange = () => {
          request.result.close();
          opened = null;
        };
        resolve(request.result);
      };
      request.onerror = () => {
        opened = null;
        reject(request.error ?? new Error('IndexedDB'));
      };
    }));
  const run = async <T>(
    mode: IDBTransactionMode,
    fn: (store: IDBObjectStore) => IDBRequest<T>,
  ): Promise<T> => {
    const transaction = (await open()).transaction('records', mode);
    const request = fn(transaction.objectStore('records'));
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = transaction.onabort = () => reject(transaction.error ?? new Error('IndexedDB'));
    });
  };
  const range = (prefix: string) => IDBKeyRange.bound(prefix, `${prefix}\uffff`);

  /** Takes or renews the lease in one transaction; returns false if another tab holds it. */
  const lease = async (key: string, owner: string): Promise<boolean> => {
    let mine = false;
    await run('readwrite', (store) => {
      const request = store.get(key) as IDBRequest<{ owner: string; until: number } | undefined>;
      request.onsuccess = () => {
        mine = !request.result || request.result.owner === owner || request.result.until < Date.now();
        if (mine) store.put({ owner, until: Date.now() + leaseMs }, key);
      };
      return request;
    });
    return mine;
  };
  const leased = async (lockName: string, fn: () => Promise<void>) => {
    const key = `lease/${lockName}`;
    const owner = `${Math.random()}`;
    while (!(await lease(key, owner))) await new Promise((resolve) => setTimeout(resolve, pollMs));
    const renew = setInterval(() => void lease(key, owner).catch(() => {}), leaseMs / 3);
    try {
      await fn();
    } finally {
      clearInterval(renew);
      await run('readwrite', (store) => store.delete(key)).catch(() => {});
    }
  };

  return {
    list: (prefix) => run<unknown[]>('readonly', (store) => store.getAll(range(prefix))),
    set: async (key, value) => void (await run('readwrite', (store) => store.put(value, key))),
    delete: async (key) => void (await run('readwrite', (store) => store.delete(key))),
    lock: async (lockName, fn) => {
      if (typeof navigator !== 'undefined' && navigator.locks) {
        await navigator.locks.request(`${name}/${lockName}`, fn);
      } else await leased(lockName, fn);
    },
  };
}
