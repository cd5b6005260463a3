import { hostname } from 'node:os';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logging.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { beatMs, closeLost, closeOthers, removeNode, renewNode, saveSessions } from './sql.ts';
import type { SessionRow } from './sql.ts';

const flushMs = 1_000;
const batch = 2_000;

/**
 * Records the sockets that this node has and had. Changes are collected and written once a second. While PostgreSQL
 * is unreachable, a bounded number waits. If more are lost, all recorded sockets that this node does not have are
 * closed afterwards.
 */
export function createSocketHistory(options: {
  db: Queryable;
  clock: Clock;
  logger: Logger;
  node: string;
  version: string;
  roles: readonly string[];
  /** Ids of the sessions that are open on this node. */
  open: () => Iterable<string>;
  maxWaiting?: number;
}) {
  const { db, clock, logger, node, version, roles, maxWaiting = 20_000 } = options;
  /** Rows by session id: a socket that opens and closes within a second is one row. */
  let waiting = new Map<string, SessionRow>();
  let lost = false;

  function add(row: SessionRow): void {
    if (waiting.size < maxWaiting || waiting.has(row.id)) waiting.set(row.id, row);
    else lost = true;
  }

  async function flush(): Promise<void> {
    while (waiting.size > 0) {
      const rows = [...waiting.values()].slice(0, batch);
      for (const { id } of rows) waiting.delete(id);
      try {
        await saveSessions(db, rows);
      } catch (error) {
        const later = waiting;
        waiting = new Map();
        for (const row of [...rows, ...later.values()]) add(row);
        throw error;
      }
    }
    if (!lost) return;
    lost = false;
    await closeOthers(db, node, [...options.open()]).catch((error: unknown) => {
      lost = true;
      throw error;
    });
  }

  const self = { id: node, host: hostname(), version, roles, startedAt: new Date(clock.now()) };
  const writer = createPeriodic(flushMs, logger, 'history of sockets', flush);
  const beat = createPeriodic(beatMs, logger, 'sign of life', async () => void (await renewNode(db, self)));
  return {
    opened: (session: Omit<SessionRow, 'node' | 'closedAt' | 'closeCode'>): void =>
      add({ ...session, node, closedAt: null, closeCode: null }),
    closed: (session: Omit<SessionRow, 'node' | 'closedAt'>): void =>
      add({ ...session, node, closedAt: clock.now() }),
    flush,
    start: (): void => {
      beat.start();
      writer.start();
    },
    stop: async (): Promise<void> => {
      await Promise.all([beat.stop(), writer.stop()]);
      await flush();
      await removeNode(db, node);
    },
  };
}

export type SocketHistory = ReturnType<typeof createSocketHistory>;

/** Runs on workers: closes the sockets of nodes that stopped without saying so. */
export const createLostSweep = (db: Queryable, logger: Logger) =>
  createPeriodic(30_000, logger, 'sockets of lost nodes', async () => {
    for (let i = 0; i < 100 && (await closeLost(db)) > 0; i++);
  });
