import type { HistoryError } from '../../platform/history/port.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db, Tx } from '../../platform/postgres/db.ts';
import { backlogOf } from './sql.ts';
import type { SinkStatus, StorageMode } from './sql.ts';
import { lockOwned, longestBackOffMs, setState } from './sql/sink.ts';

/**
 * storage#sink: the state of an environment's sink, and what is reported when it changes. `createTurnEnd` makes the function that ends a turn: it stores how
 * the turn went, the state that follows from it, and when the next turn is due.
 */

const degradedSeconds = 5 * 60;
const failingSeconds = 60 * 60;

export interface SinkSigns {
  now: string;
  /** When the oldest change that is not in the customer's database was made; null if there is none. */
  oldest: string | null;
  /** Since when every try has failed; null if the last one succeeded. */
  since: string | null;
}

export type SinkNews =
  | { type: 'sink.degraded'; data: { lagSeconds: number } }
  | { type: 'sink.failing'; data: { errorClass: string; since: string } }
  | { type: 'sink.recovered'; data: { lagSeconds: number } };

/** Of times by the store's clock, as they are stored; `oldest` is null if nothing waits. */
export const lagSeconds = (oldest: string | null, now: string): number =>
  oldest === null ? 0 : Math.max(0, Math.round((Date.parse(now) - Date.parse(oldest)) / 100) / 10);

export function nextStatus(signs: SinkSigns): SinkStatus {
  if (lagSeconds(signs.since, signs.now) > failingSeconds) return 'failing';
  return lagSeconds(signs.oldest, signs.now) > degradedSeconds ? 'degraded' : 'healthy';
}

/** Each change of state is reported once: every worsening, but only the full recovery. */
export function news(
  before: SinkStatus,
  after: SinkStatus,
  signs: SinkSigns,
  errorClass: string,
): SinkNews | null {
  const lag = lagSeconds(signs.oldest, signs.now);
  if (before === after) return null;
  if (after === 'healthy') return { type: 'sink.recovered', data: { lagSeconds: lag } };
  if (after === 'failing') return { type: 'sink.failing', data: { errorClass, since: signs.since! } };
  return before === 'healthy' ? { type: 'sink.degraded', data: { lagSeconds: lag } } : null;
}

const firstBackOffMs = 1_000;

export interface TurnEndOptions {
  db: Db;
  logger: Logger;
  random: () => number;
  /** The name of this process in leases. */
  node: string;
  /** How many waiting records are logged as an alarming backlog. */
  alarmingBacklog: number;
  /** Tells webhooks and owners, in the transaction of the change. */
  tell(tx: Tx, env: number, news: SinkNews): Promise<void>;
  counted(what: 'written' | 'refused' | 'failed', count: number): void;
}

export function createTurnEnd(options: TurnEndOptions) {
  const { db, logger, node } = options;
  /** Environments whose backlog has been logged. */
  const alarmed = new Set<number>();

  function alarm(env: number, backlog: number): void {
    if (backlog < options.alarmingBacklog) return void alarmed.delete(env);
    if (alarmed.has(env)) return;
    alarmed.add(env);
    logger.error({ env, backlog }, 'the backlog of a history database is very long');
  }

  return async (
    { env, mode, progress }: { env: number; mode: StorageMode; progress: boolean },
    failure: HistoryError | null,
    pauseMs: number,
  ): Promise<void> => {
    const backlog = await db.tx(async (tx) => {
      const row = await lockOwned(tx, env, node);
      if (!row) return 0;
      const { backlog, oldest, now } = await backlogOf(tx, env, options.alarmingBacklog);
      const failures = failure ? row.failures + 1 : 0;
      const since = failure ? ((progress ? null : row.since) ?? now) : null;
      // A change that was under way when the environment left its database may have left a row that no sink will write.
      const signs = { now, oldest: mode === 'managed' ? null : oldest, since };
      const status = nextStatus(signs);
      const told = news(row.status, status, signs, failure?.errorClass ?? row.errorClass ?? 'failed');
      if (told) {
        // What was told must not be told again after a crash of the store.
        await tx.script('SET LOCAL synchronous_commit = on');
        await options.tell(tx, env, told);
      }
      const pause = failure
        ? Math.min(longestBackOffMs, firstBackOffMs * 2 ** Math.min(10, failures - 1)) *
          (0.5 + options.random() / 2)
        : pauseMs;
      const dueAt = new Date(Date.parse(now) + pause).toISOString();
      await setState(tx, env, { status, since, failures, dueAt, failure, now });
      if (failure) {
        options.counted('failed', 1);
        logger.warn(
          { env, errorClass: failure.errorClass, reason: failure.message, failures },
          'a history database could not be written',
        );
      }
      return backlog;
    });
    alarm(env, backlog);
  };
}
