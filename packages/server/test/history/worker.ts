import { createSink } from '../../src/features/storage/sink.ts';
import type { Sink, SinkOptions } from '../../src/features/storage/sink.ts';
import type { SlotName, SlotRow } from '../../src/features/storage/sql.ts';
import type { History } from '../../src/platform/history/port.ts';
import { createLogger } from '../../src/platform/logging.ts';
import type { Db, Queryable } from '../../src/platform/postgres/db.ts';
import { StandingTime } from '../support/time.ts';

/** A moment of a worker: before a statement of its own store (`tx`: it holds locks), or around a call to a customer's database. */
export type Moment =
  { at: 'query' | 'tx'; sql: string } | { at: 'begin' } | { at: 'write' | 'written' | 'read' | 'erase' };

export interface Worker {
  time: StandingTime;
  turn: Sink['turn'];
}

/** A process with a sink whose every step can be watched, held up or failed by `on`. */
export function createWorker(options: {
  db: Db;
  vault: SinkOptions['vault'];
  node: string;
  /** The customer's databases by slot. */
  databases: Partial<Record<SlotName, History>>;
  on?: (moment: Moment) => Promise<void>;
}): Worker {
  const { on = () => Promise.resolve() } = options;
  const time = new StandingTime();
  const watched = <Q extends Queryable>(queryable: Q, at: 'query' | 'tx'): Q => ({
    ...queryable,
    query: async <R extends object>(sql: string, values?: unknown[]): Promise<R[]> => {
      await on({ at, sql });
      return queryable.query<R>(sql, values);
    },
  });
  const db: Db = {
    query: (sql, values) => watched({ query: (s, v) => options.db.query(s, v) }, 'query').query(sql, values),
    tx: async (run) => {
      await on({ at: 'begin' });
      return options.db.tx((tx) =>
        run(
          watched(
            {
              query: (s, v) => tx.query(s, v),
              script: (s) => tx.script(s),
              afterCommit: (fn) => tx.afterCommit(fn),
              onUnconfirmed: (fn) => tx.onUnconfirmed(fn),
            },
            'tx',
          ),
        ),
      );
    },
  };
  const engine = (history: History): History => ({
    ...history,
    write: async (records, how) => {
      await on({ at: 'write' });
      await history.write(records, how);
      await on({ at: 'written' });
    },
    read: async (range) => {
      await on({ at: 'read' });
      return history.read(range);
    },
    erase: async (erasure) => {
      await on({ at: 'erase' });
      await history.erase(erasure);
    },
  });
  const sink = createSink({
    db,
    clock: time,
    timers: time.timers,
    logger: createLogger('silent'),
    random: () => 0,
    node: options.node,
    vault: options.vault,
    alarmingBacklog: 1_000_000,
    tell: () => Promise.resolve(),
    counted: () => undefined,
    connections: {
      open: (_env: unknown, slot: SlotRow) => Promise.resolve(engine(options.databases[slot.slot]!)),
      drop: () => undefined,
    } as never,
    retentionMs: () => Promise.resolve(86_400_000),
  });
  return { time, turn: sink.turn };
}
