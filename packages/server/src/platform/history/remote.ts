import { systemTimers } from '../clock.ts';
import type { Clock, Timers } from '../clock.ts';
import type { Logger } from '../logging.ts';
import { Turns } from '../flow/turns.ts';
import { answerBytes } from './messages.ts';
import type { Ask, Settings } from './messages.ts';
import { HistoryError, QueueFull } from './port.ts';
import type { History, HistoryPage, HistoryReport, MessageRecord, Migrated } from './port.ts';
import { startHistoryProcess } from './process.ts';
import type { HistoryProcess, OnFault } from './process.ts';
import { emptyReport } from './shared.ts';
import { parseSource, parseTarget } from './target.ts';
import type { HistorySource } from './target.ts';

/**
 * Customers' databases by way of a separate process (process.ts), because a driver reads what a stranger's server
 * sends. The process starts with the first use and ends when it is no longer used. One that failed is replaced, and open
 * histories are opened again in the new one.
 */

/** Whose database it is. */
export interface Tenant {
  no: number;
  id: string;
}

export interface RemoteHistories {
  /** Throws TargetError if the URL is invalid, HistoryError if the database cannot be reached. */
  open(source: HistorySource, tenant: Tenant, onFault: OnFault): Promise<History>;
  /** Uses an admin's URL, which is not stored anywhere. */
  migrate(source: HistorySource, tenant: Tenant, onFault: OnFault): Promise<Migrated>;
  close(): Promise<void>;
}

const waitMs = 5_000;
/** Milliseconds before a process that ended is replaced; more, if that one ends at once too. */
const firstPauseMs = 100;
const longestPauseMs = 2_000;
/** A request costs one more for so many bytes of its answer. */
const bytesPerCost = 4 * 1024 * 1024;

export function createRemoteHistories(options: {
  settings: Settings;
  clock: Pick<Clock, 'now'>;
  logger: Logger;
  /** Of beats and deadlines: always the real ones but in tests. */
  timers?: Timers;
}): RemoteHistories {
  const { timers = systemTimers } = options;
  // Places are given by environment, so that a slow database does not take those of others.
  const turns = new Turns({
    slots: 4_096,
    lane: { slots: 32, cost: 64, waiting: 200 },
    waiting: 10_000,
    waitMs,
    refuse: () => new QueueFull(),
  });
  let lastHistory = 0;
  let current: HistoryProcess | null = null;
  let closed = false;
  /** How many processes in a row ended early. */
  let early = 0;

  function running(): HistoryProcess {
    if (closed) throw new HistoryError('unreachable', undefined, 'the service stops');
    if (current && !current.isOver()) return current;
    early = current?.endedEarly() ? early + 1 : 0;
    const pauseMs = early === 0 ? 0 : Math.min(longestPauseMs, firstPauseMs * 2 ** early);
    return (current = startHistoryProcess({ ...options, timers, pauseMs }));
  }

  const taken = <T>(tenant: Tenant, ask: Ask, work: () => Promise<unknown>): Promise<T> =>
    turns.run(tenant.no, Math.ceil(answerBytes(ask) / bytesPerCost), work) as Promise<T>;

  return {
    async open(source, tenant, onFault) {
      const { engine } = parseSource(source);
      interface Place {
        process: HistoryProcess;
        history: number;
        info: Promise<{ writesAtOnce: number }>;
      }
      let place: Place | undefined;
      let ended = false;
      /** In the present process; if that is another one than before, it is opened there. */
      function placed(): Place {
        if (ended) throw new HistoryError('unreachable', undefined);
        if (place && !place.process.isOver()) return place;
        const process = running();
        const history = ++lastHistory;
        process.owners.set(history, { env: tenant.no, onFault, warned: false });
        const ask: Ask = { op: 'open', source, tenant: tenant.no, env: tenant.id };
        const info = taken<Awaited<Place['info']>>(tenant, ask, () => process.call(history, ask));
        const mine = (place = { process, history, info });
        info.catch(() => {
          process.owners.delete(history);
          if (place === mine) place = undefined;
        });
        return mine;
      }
      async function call<T>(ask: Ask): Promise<T> {
        const { process, history, info } = placed();
        await info;
        return taken<T>(tenant, ask, () => process.call(history, ask));
      }
      const { writesAtOnce } = await placed().info;
      return {
        writesAtOnce,
        write: (records, { rewrite = false } = {}) => call({ op: 'write', records, rewrite }),
        test: () =>
          call<HistoryReport>({ op: 'test' }).catch((error: unknown) => ({
            ...emptyReport(engine),
            errors: [(error as Error).message],
          })),
        read: (range) => call<HistoryPage>({ op: 'read', range }),
        get: (id) => call<MessageRecord | null>({ op: 'get', id }),
        erase: (erasure) => call({ op: 'erase', erasure }),
        async close() {
          ended = true;
          if (!place || place.process.isOver()) return;
          const { process, history } = place;
          await process.call(history, { op: 'close' }).catch(() => undefined);
          process.owners.delete(history);
        },
      };
    },
    async migrate(source, tenant, onFault) {
      parseTarget(source.url, source);
      const process = running();
      const history = ++lastHistory;
      const ask: Ask = { op: 'migrate', source, tenant: tenant.no, env: tenant.id };
      process.owners.set(history, { env: tenant.no, onFault, warned: false });
      try {
        return await taken(tenant, ask, () => process.call(history, ask));
      } finally {
        process.owners.delete(history);
      }
    },
    async close() {
      closed = true;
      await current?.stop();
    },
  };
}
