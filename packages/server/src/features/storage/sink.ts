import type { Clock } from '../../platform/clock.ts';
import { HistoryError } from '../../platform/history/port.ts';
import type { Erasure, History } from '../../platform/history/port.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db, Tx } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import { erasedContext } from '../webhooks/signature.ts';
import { isGone } from './cold.ts';
import type { Connections } from './connections.ts';
import { copyStep } from './copy.ts';
import { prune } from './prune.ts';
import { recordsOf } from './records.ts';
import type { LogRow, Placed } from './records.ts';
import { backlogOf, setMode, slotsOf, storageOf } from './sql.ts';
import type { Copy, SinkStatus, StorageRow } from './sql.ts';
import { news, nextStatus } from './state.ts';
import type { SinkNews } from './state.ts';
import { thawMessages } from './thaw.ts';
import { createWriter, mostRows } from './write.ts';

/**
 * The sink of one environment: whatever its log names is written to the customer's database as it now is, and leaves the log when
 * the database has confirmed it. One process at a time does it, by a lease on the environment's row. Writing may happen twice, its
 * effect happens once: the database compares revisions.
 */

/** A batch of a slow database is at least so long. */
const leastRows = 10;
/** A turn ends after so long, so that others of the process have theirs; it goes on at once. */
const turnMs = 5_000;
/** Longer than a turn and the slowest exchange after its end. */
const leaseSeconds = 60;
const firstBackOffMs = 1_000;
const longestBackOffMs = 60_000;
/** A backlog that somebody should look at. */
const alarmingBacklog = 1_000_000;

/** What a turn leaves: more to do now, something to look at again soon, or nothing. */
type Next = 'more' | 'later' | 'idle';
const laterMs = 250;

export interface SinkOptions {
  db: Db;
  connections: Connections;
  vault: Vault;
  clock: Clock;
  logger: Logger;
  random: () => number;
  /** This process, in leases. */
  node: string;
  retentionMs(env: number): Promise<number>;
  /** In the transaction of the change: webhooks and owners are told. */
  tell(tx: Tx, env: number, news: SinkNews): Promise<void>;
  counted(what: 'written' | 'refused' | 'failed', count: number): void;
}

export interface Sink {
  /** Environments that have something to do and nobody who does it. */
  due(limit: number): Promise<{ no: number; id: string }[]>;
  /** One turn, if nobody else has it. True: there is more to do now. */
  turn(env: { no: number; id: string }): Promise<boolean>;
}

export function createSink(options: SinkOptions): Sink {
  const { db, connections, vault, clock, logger, random, node } = options;
  /** Rows that a batch may have, where a database was too slow for as many. */
  const sizes = new Map<number, number>();
  /** Environments of which something was written in the turn under way. */
  const progress = new Set<number>();
  const now = () => new Date(clock.now()).toISOString();
  const writeAll = createWriter(options);

  const due: Sink['due'] = (limit) =>
    db.query<{ no: number; id: string }>(
      `SELECT e.no, e.id FROM storage s JOIN environments e ON e.no = s.env
       WHERE (s.mode <> 'managed' OR (SELECT true FROM sink_erasures x WHERE x.env = s.env LIMIT 1)) AND s.active IS NOT NULL AND s.owned_until < clock_timestamp() AND s.due_at <= $1 AND (
         s.copy IS NOT NULL OR s.status <> 'healthy' OR (SELECT true FROM sink_log l WHERE l.env = s.env LIMIT 1)
         OR (SELECT true FROM sink_erasures x WHERE x.env = s.env LIMIT 1)
         OR (SELECT true FROM sink_conversations c WHERE c.env = s.env AND c.want_seq IS NOT NULL LIMIT 1)
         OR (SELECT true FROM sink_conversations c WHERE c.env = s.env AND c.oldest_at < $1::timestamptz - interval '24 hours'
           AND s.pruned_at < $1::timestamptz - interval '1 minute' LIMIT 1))
       ORDER BY s.due_at LIMIT $2`,
      [now(), limit],
    );

  /** Mine for a while; undefined where somebody else has it. */
  async function claim(env: number): Promise<boolean> {
    const rows = await db.query(
      `UPDATE storage SET owner = $2, owned_until = clock_timestamp() + interval '${leaseSeconds} seconds'
       WHERE env = $1 AND (owned_until < clock_timestamp() OR owner = $2) RETURNING 1`,
      [env, node],
    );
    return rows.length > 0;
  }

  /** In a transaction of what was confirmed: whoever lost the lease confirms nothing. */
  async function stillMine(tx: Tx, env: number): Promise<boolean> {
    const rows = await tx.query('SELECT 1 FROM storage WHERE env = $1 AND owner = $2 FOR NO KEY UPDATE', [
      env,
      node,
    ]);
    return rows.length > 0;
  }

  const turn: Sink['turn'] = async (env) => {
    if (!(await claim(env.no))) return false;
    let next: Next = 'idle';
    let failure: HistoryError | null = null;
    progress.delete(env.no);
    try {
      const storage = await storageOf(db, env.no);
      if (storage.active === null) return false;
      const until = clock.monotonic() + turnMs;
      try {
        next = await work(env, storage, until);
      } catch (error) {
        if (!(error instanceof HistoryError)) throw error;
        failure = error;
        if (isGone(error)) {
          connections.drop(env.no, storage.active);
          if (storage.previous) connections.drop(env.no, storage.previous);
        }
        if (error.errorClass === 'timeout')
          sizes.set(env.no, Math.max(leastRows, Math.floor((sizes.get(env.no) ?? mostRows) / 2)));
      }
      await settle(env.no, failure, next === 'later' ? laterMs : 0);
    } finally {
      await db.query(`UPDATE storage SET owned_until = '-infinity' WHERE env = $1 AND owner = $2`, [
        env.no,
        node,
      ]);
    }
    return next === 'more' && failure === null;
  };

  async function work(env: { no: number; id: string }, storage: StorageRow, until: number): Promise<Next> {
    const slots = await slotsOf(db, env.no);
    const open = async (name: typeof storage.active) => {
      const slot = slots.find((s) => s.slot === name);
      return slot ? connections.open(env, slot) : null;
    };
    const history = (await open(storage.active))!;
    const previous = await open(storage.previous);
    await erasures(env.no, [history, ...(previous ? [previous] : [])]);
    // History came home while an erasure waited: that is all that is left to do there.
    if (storage.mode === 'managed') return 'idle';
    await wanted(env.no, [history, ...(previous ? [previous] : [])]);
    for (let more = true; more;) {
      if (clock.monotonic() > until) return 'more';
      more = await drain(env.no, history);
    }
    let copy = storage.copy;
    while (copy) {
      if (clock.monotonic() > until) return 'more';
      const step = await copied(env.no, copy, history, previous);
      if (step === 'wait') return 'later';
      copy = step;
      // Changes go before what is copied: their lag is what people wait for.
      while (await drain(env.no, history)) if (clock.monotonic() > until) return 'more';
    }
    if ((await storageOf(db, env.no)).mode === 'byo_db') await prune(options, env.no);
    return 'idle';
  }

  /** One batch of the log. True: there may be more. */
  async function drain(env: number, history: History): Promise<boolean> {
    const size = sizes.get(env) ?? mostRows;
    const rows = await db.query<LogRow>(
      'SELECT no, conv, seq, message, at FROM sink_log WHERE env = $1 ORDER BY no LIMIT $2',
      [env, size],
    );
    if (rows.length === 0) return false;
    const placed = await recordsOf(db, env, rows);
    const refused = await writeAll(env, history, placed, false);
    await db.tx(async (tx) => {
      if (!(await stillMine(tx, env))) return;
      await confirm(tx, env, placed, refused);
      await tx.query('DELETE FROM sink_log WHERE env = $1 AND no = ANY($2)', [env, rows.map((r) => r.no)]);
    });
    sizes.set(env, Math.min(mostRows, size * 2));
    progress.add(env);
    return rows.length === size;
  }

  /** What was written may leave when its time comes; what was refused stays until it is accepted. */
  async function confirm(
    tx: Tx,
    env: number,
    placed: readonly Placed[],
    refused: ReadonlyMap<Placed, string>,
  ): Promise<void> {
    const accepted = placed.filter((p) => !refused.has(p));
    await tx.query(
      `DELETE FROM sink_refused r USING unnest($2::bigint[], $3::bigint[]) x(conv, message)
       WHERE r.env = $1 AND r.conv = x.conv AND r.message = x.message`,
      [env, accepted.map((p) => p.conv), accepted.map((p) => p.message)],
    );
    if (refused.size > 0)
      await tx.query(
        `INSERT INTO sink_refused (env, conv, message, error, at) SELECT DISTINCT ON (x.conv, x.message) $1, x.conv, x.message, x.error, $5
       FROM unnest($2::bigint[], $3::bigint[], $4::text[]) x(conv, message, error)
       ON CONFLICT (env, conv, message) DO UPDATE SET error = excluded.error, at = excluded.at`,
        [
          env,
          [...refused.keys()].map((p) => p.conv),
          [...refused.keys()].map((p) => p.message),
          [...refused.values()],
          now(),
        ],
      );
    const messages = placed.filter((p) => p.record.kind === 'message');
    await tx.query(
      `INSERT INTO sink_conversations AS s (env, conv, oldest_at)
       SELECT $1, x.conv, min(x.at) FROM unnest($2::bigint[], $3::timestamptz[]) x(conv, at) GROUP BY x.conv
       ON CONFLICT (env, conv) DO UPDATE SET oldest_at = least(s.oldest_at, excluded.oldest_at)`,
      [env, messages.map((p) => p.conv), messages.map((p) => (p.record as { createdAt: string }).createdAt)],
    );
  }

  async function erasures(env: number, histories: readonly History[]): Promise<void> {
    const rows = await db.query<{
      no: number;
      subject: Buffer;
      replacement: string;
      messages: Erasure['messages'];
    }>('SELECT no, subject, replacement, messages FROM sink_erasures WHERE env = $1 ORDER BY no LIMIT 100', [
      env,
    ]);
    for (const { no, subject, replacement, messages } of rows) {
      const userId = vault.open(subject, erasedContext(env)).toString();
      for (const history of histories) await history.erase({ userId, replacement, messages });
      await db.query('DELETE FROM sink_erasures WHERE no = $1 AND env = $2', [no, env]);
    }
  }

  /** Messages that are needed here again. */
  async function wanted(env: number, histories: readonly History[]): Promise<void> {
    const rows = await db.query<{ conv: number; id: string; seq: number }>(
      `SELECT s.conv, c.id, s.want_seq AS seq FROM sink_conversations s JOIN conversations c ON c.env = s.env AND c.no = s.conv
       WHERE s.env = $1 AND s.want_seq IS NOT NULL LIMIT 100`,
      [env],
    );
    for (const { conv, id, seq } of rows)
      for (const history of histories) {
        const { data } = await history.read({
          conversationId: id,
          before: seq + 1,
          after: seq - 1,
          limit: 1,
        });
        await db.tx(async (tx) => {
          await tx.query('SELECT 1 FROM conversations WHERE env = $1 AND no = $2 FOR NO KEY UPDATE', [
            env,
            conv,
          ]);
          await thawMessages(tx, env, conv, data);
          await tx.query(
            'UPDATE sink_conversations SET want_seq = NULL WHERE env = $1 AND conv = $2 AND want_seq = $3',
            [env, conv, seq],
          );
        });
        if (data.length > 0) break;
      }
  }

  async function copied(
    env: number,
    copy: Copy,
    history: History,
    previous: History | null,
  ): Promise<Copy | null | 'wait'> {
    const ready = await begun(env, copy);
    if (ready === 'wait') return ready;
    let written: Placed[] = [];
    let refused: Map<Placed, string> = new Map();
    const write = async (records: Placed[], rewrite: boolean) => {
      written = records;
      refused = await writeAll(env, history, records, rewrite);
    };
    const next = await copyStep({ db, env, write, history, previous }, ready);
    return db.tx(async (tx) => {
      const [row] = await tx.query<{ copy: Copy | null }>(
        'SELECT copy FROM storage WHERE env = $1 AND owner = $2 FOR UPDATE',
        [env, node],
      );
      // Cancelled or begun anew meanwhile, or not mine any more.
      if (!row?.copy || row.copy.startedAt !== copy.startedAt) return null;
      await confirm(tx, env, ready.kind === 'move' ? [] : written, refused);
      if (next === null && ready.kind === 'return') {
        await tx.query('DELETE FROM sink_log WHERE env = $1', [env]);
        await tx.query('DELETE FROM sink_conversations WHERE env = $1', [env]);
        await tx.query('UPDATE storage SET has_cold = false WHERE env = $1', [env]);
        await setMode(tx, env, { mode: 'managed', copy: null });
      } else
        await tx.query(
          'UPDATE storage SET copy = $2, previous = CASE WHEN $3 THEN NULL ELSE previous END WHERE env = $1',
          [env, next && JSON.stringify(next), ready.kind === 'move' && next?.kind !== 'move'],
        );
      return next;
    });
  }

  /** A change whose transaction began before the sink listened is in no log: what is copied begins when they have all ended. */
  async function begun(env: number, copy: Copy): Promise<Copy | 'wait'> {
    if (copy.kind !== 'fill' || copy.done > 0) return copy;
    if (copy.seenAt === undefined) {
      const [row] = await db.query<{ at: string }>(
        "SELECT clock_timestamp()::timestamptz(3) + interval '1 millisecond' AS at",
      );
      const seen = { ...copy, seenAt: row!.at };
      await db.query(`UPDATE storage SET copy = $2 WHERE env = $1 AND copy ->> 'startedAt' = $3`, [
        env,
        JSON.stringify(seen),
        copy.startedAt,
      ]);
      return 'wait';
    }
    const older = await db.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start <= $1::timestamptz LIMIT 1`,
      [copy.seenAt],
    );
    return older.length > 0 ? 'wait' : copy;
  }

  /** How it went, and what follows from it for the state. */
  async function settle(env: number, failure: HistoryError | null, pauseMs: number): Promise<void> {
    await db.tx(async (tx) => {
      if (!(await stillMine(tx, env))) return;
      const [row] = await tx.query<{
        status: SinkStatus;
        since: string | null;
        failures: number;
        errorClass: string | null;
      }>('SELECT status, since, failures, error_class AS "errorClass" FROM storage WHERE env = $1', [env]);
      const { backlog, oldest } = await backlogOf(tx, env);
      const failures = failure ? row!.failures + 1 : 0;
      const since = failure ? ((progress.has(env) ? null : row!.since) ?? now()) : null;
      const signs = {
        now: clock.now(),
        oldest: oldest === null ? null : Date.parse(oldest),
        failingSince: since === null ? null : Date.parse(since),
      };
      const status = nextStatus(signs);
      const told = news(row!.status, status, signs, failure?.errorClass ?? row!.errorClass ?? 'failed');
      if (told) await options.tell(tx, env, told);
      const pause = failure
        ? Math.min(longestBackOffMs, firstBackOffMs * 2 ** Math.min(10, failures - 1)) * (0.5 + random() / 2)
        : pauseMs;
      await tx.query(
        `UPDATE storage SET status = $2, since = $3, failures = $4, due_at = $5, error = $6, error_class = $7,
           last_success_at = CASE WHEN $8 THEN last_success_at ELSE $9::timestamptz END WHERE env = $1`,
        [
          ...[
            env,
            status,
            since,
            failures,
            new Date(clock.now() + pause).toISOString(),
            failure?.message ?? null,
          ],
          ...[failure?.errorClass ?? null, failure !== null, now()],
        ],
      );
      if (failure) {
        options.counted('failed', 1);
        logger.warn(
          { env, errorClass: failure.errorClass, reason: failure.message, failures },
          'a history database could not be written',
        );
      }
      if (backlog >= alarmingBacklog)
        logger.error({ env, backlog }, 'the backlog of a history database is very long');
    });
  }

  return { due, turn };
}
