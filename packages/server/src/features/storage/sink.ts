import { HistoryError } from '../../platform/history/port.ts';
import type { History } from '../../platform/history/port.ts';
import type { Clock, Timers } from '../../platform/clock.ts';
import type { Vault } from '../../platform/secrets.ts';
import { confirmLog } from './sql/confirm.ts';
import { isDisconnected } from './connections.ts';
import type { Connections } from './connections.ts';
import { begun, runCopy } from './copy.ts';
import { eraseUsers } from './erasures.ts';
import { keepLease, LeaseLost } from './lease.ts';
import type { Lease } from './lease.ts';
import { prune } from './prune.ts';
import { recordsOf } from './records.ts';
import type { Placed } from './records.ts';
import { slotsOf } from './sql.ts';
import type { SlotRow } from './sql.ts';
import { owesErasures } from './sql/erasures.ts';
import { claimSink, dueSinks, readLog } from './sql/sink.ts';
import type { ClaimedSink, LogRow } from './sql/sink.ts';
import { createTurnEnd } from './state.ts';
import type { TurnEndOptions } from './state.ts';
import { thawWanted } from './thaw.ts';
import { createWriter, pump } from './write.ts';
import type { Refused } from './write.ts';

/**
 * The sink of one environment: whatever its log names is written to the customer's database in its present state, and
 * leaves the log when the database has confirmed it. Only one process at a time does it, by a lease on the
 * environment's row (lease.ts). Something may be written twice, but takes effect once, because the database compares revisions.
 */

/** Milliseconds after which a turn ends, so that other environments of the process have theirs; it continues at once. */
const turnMs = 5_000;
/** Milliseconds of a turn that a copy gets before changes are written again, because people wait for those. */
const sliceMs = 1_000;

/** What a turn leaves: more to do now; something to look at again soon; or nothing, and then changes collect for a while. */
type Next = 'more' | 'later' | 'idle';
const pauses: Record<Next, number> = { more: 0, later: 250, idle: 200 };

export interface SinkOptions extends TurnEndOptions {
  /** For durations: all times of the sink are by the store's clock. */
  clock: Pick<Clock, 'monotonic'>;
  timers: Timers;
  connections: Connections;
  vault: Vault;
  retentionMs(env: number): Promise<number>;
}

export type Sink = ReturnType<typeof createSink>;

/** What a turn starts with, and what it finds out. */
interface Turn extends ClaimedSink {
  id: string;
  lease: Lease;
  /** True if something was written. */
  progress: boolean;
  until: number;
}

export function createSink(options: SinkOptions) {
  const { db, connections, clock, logger, node } = options;
  const writer = createWriter(options);
  const endTurn = createTurnEnd(options);
  const copying = { db, node, clock, logger, writer };

  /** Takes the lease for a while; undefined if another process has it. */
  async function claim(env: { no: number; id: string }): Promise<Turn | undefined> {
    const asked = clock.monotonic();
    const row = await claimSink(db, env.no, node);
    if (!row) return undefined;
    const lease = keepLease(options, env.no, asked);
    return { ...row, id: env.id, lease, progress: false, until: clock.monotonic() + turnMs };
  }

  /** Runs one turn, if no other process has it. Returns true if there is more to do now. */
  async function turn(env: { no: number; id: string }): Promise<boolean> {
    const mine = await claim(env);
    if (!mine) return false;
    let next: Next = 'idle';
    let failure: HistoryError | null = null;
    try {
      try {
        next = await work(mine);
      } catch (error) {
        if (!(error instanceof HistoryError)) throw error;
        failure = error;
        if (isDisconnected(error)) {
          if (mine.active) connections.drop(env.no, mine.active);
          if (mine.previous) connections.drop(env.no, mine.previous);
        }
      }
      await endTurn(mine, failure, pauses[next]);
    } catch (error) {
      if (!(error instanceof LeaseLost)) throw error;
      logger.warn({ env: env.no }, error.message);
      return false;
    } finally {
      await mine.lease.release();
    }
    return next === 'more' && failure === null;
  }

  const late = (mine: Turn): boolean => clock.monotonic() > mine.until;

  async function work(mine: Turn): Promise<Next> {
    const env = { no: mine.env, id: mine.id };
    const slots = await slotsOf(db, mine.env);
    const open = async (slot: SlotRow) => mine.lease.guard(await connections.open(env, slot));
    const openNamed = async (name: Turn['active']) => {
      const slot = slots.find((s) => s.slot === name);
      return slot ? open(slot) : null;
    };
    const used = mine.mode === 'managed' ? [] : [mine.active, mine.previous];
    const owed = mine.erasures && (await eraseUsers(options, mine.env, slots, used, open));
    if (mine.mode === 'managed') return 'idle';
    const history = (await openNamed(mine.active))!;
    if (owed) {
      // Changes name nobody who was erased, so they are written all the same; whatever else uses the database waits.
      await drain(mine, history);
      throw owed;
    }
    const previous = await openNamed(mine.previous);
    const both = [history, ...(previous ? [previous] : [])];
    if (mine.wanted) await thawWanted(db, mine.env, both);
    if (!(await drain(mine, history))) return 'more';
    for (let { copy } = mine; copy;) {
      if (!(await begun(db, mine.env, copy))) return 'later';
      // Nothing is copied into or out of a database that still names a user who was erased.
      if (await owesErasures(db, mine.env, used)) return 'later';
      const until = Math.min(mine.until, clock.monotonic() + sliceMs);
      const onDone = () => void (mine.progress = true);
      copy = await runCopy(copying, { env: mine.env, until, history, previous, onDone }, copy);
      if (!(await drain(mine, history))) return 'more';
    }
    while (mine.prune) {
      if (late(mine)) return 'more';
      mine.prune = await prune(options, mine.env);
      if (!(await drain(mine, history))) return 'more';
    }
    return 'idle';
  }

  interface LogBatch {
    rows: LogRow[];
    placed: Placed[];
    /** Whether more may follow. */
    full: boolean;
  }

  /** Writes the log. Returns true if it is empty, false if the turn is over. */
  async function drain(mine: Turn, history: History): Promise<boolean> {
    const { env } = mine;
    let whole = true;
    await pump<LogBatch, Refused>(
      {
        async read(after) {
          if (after && !after.full) return null;
          if (late(mine)) {
            whole = false;
            return null;
          }
          const size = writer.sizeOf(env);
          // A row that commits late with a lower number is found when the log is read from the start again.
          const rows = await readLog(db, env, after?.rows.at(-1)!.no ?? 0, size);
          if (rows.length === 0) return null;
          return { rows, placed: await recordsOf(db, env, rows), full: rows.length === size };
        },
        write: ({ placed }) => writer.write(env, history, placed),
        confirm({ rows, placed }, refused) {
          mine.progress = true;
          return confirmLog(
            db,
            { env, node, placed, refused },
            rows.map((r) => r.no),
          );
        },
      },
      // The same record may be in two batches.
      1,
    );
    return whole;
  }

  /** Those have something to do, and no process works on them. */
  const due = (limit: number) => dueSinks(db, limit);
  return { due, turn };
}
