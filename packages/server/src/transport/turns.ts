import { ApiError, costOf } from '@parley/protocol';
import type { OperationName } from '@parley/protocol';
import { Turns } from '../platform/turns.ts';

/** Operations run when their environment's turn comes; REST and the socket share the turns. */
export interface OperationTurns {
  /** @param lane the environment's number or, if the call concerns none, the caller's key. */
  of(lane: number | string, name: OperationName, input: unknown): { turn: Turn; briefly: Turn };
  readonly waiting: number;
}
type Turn = <T>(work: () => Promise<T>) => Promise<T>;

/** Connections of the pool that are kept for work without turns: credentials, batches, checks of sessions. */
const keptConnections = 2;
const waitMs = 10_000;
/**
 * Reports take long. More at once would end no sooner, and the other requests of the environment would wait behind
 * them; so few come to their turn at a time, and few wait for that.
 */
const reading: ReadonlySet<OperationName> = new Set(['analytics.get', 'usage.get']);
const reportsAtOnce = 2;
const reportsWaiting = 16;
const reportsRetryMs = 2_000;

/**
 * @param pool how many connections the pool of operations has.
 * @param pressure from 0 to 1: how little time the process has left (platform/pressure.ts).
 */
export function createTurns(pool: number, pressure: () => number = () => 0): OperationTurns {
  const slots = Math.max(1, pool - keptConnections);
  const turns = new Turns({
    slots,
    // A quarter of the slots is always left for other lanes. `cost` bounds how much expensive work of one lane runs
    // at once. Under full pressure a lane has a quarter of both: two cheap operations or one expensive operation at a
    // time. More at once would end no sooner, and would make everybody wait.
    lane: {
      slots: Math.max(1, Math.floor(slots * 0.75)),
      cost: slots,
      pressure: () => 0.75 * pressure(),
      waiting: 500,
    },
    waiting: 5_000,
    waitMs,
    refuse: () =>
      new ApiError('service_unavailable', {
        message: 'Too many concurrent requests in this environment. Retry later.',
      }),
  });
  const reports = new Turns({
    // A report uses two connections: those of many environments together leave most of the pool to others.
    slots: Math.max(reportsAtOnce, Math.floor(slots / 3)),
    lane: { slots: reportsAtOnce, cost: Infinity, waiting: reportsWaiting },
    waiting: 5_000,
    waitMs,
    refuse: () =>
      new ApiError('rate_limited', {
        message: `At most ${reportsAtOnce} reports of an environment run at once, and ${reportsWaiting} wait: ask again later.`,
        retryAfterMs: reportsRetryMs,
      }),
  });
  return {
    of(lane, name, input) {
      const cost = costOf(name, input);
      const turn: Turn = (work) => (cost === 0 ? work() : turns.run(lane, cost, work));
      return {
        turn: reading.has(name) ? (work) => reports.run(lane, 1, () => turn(work)) : turn,
        briefly: (work) => turns.run(lane, 1, work),
      };
    },
    get waiting() {
      return turns.waiting;
    },
  };
}
