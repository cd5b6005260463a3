import type { Duplex } from 'node:stream';
import pg from 'pg';
import { systemTimers } from '../clock.ts';
import type { Timers } from '../clock.ts';

/** A query without an answer for this many milliseconds is checked. */
const patienceMs = 3_000;
const lookMs = 1_000;
/** Milliseconds for the check itself, which uses a new connection. */
const answerMs = 2_000;

interface Pending {
  since: number;
  /** True if PostgreSQL said that it is not working on the query. */
  suspect: boolean;
}

/**
 * Finds connections that died silently, as after a failover: the query never gets an answer, and PostgreSQL does not
 * know it. For a slow query, PostgreSQL is asked over a new connection whether it is working on it. If it is not,
 * twice in a row, the connection is destroyed. Connections opened before that moment are suspect too, and are no
 * longer used.
 */
export type ConnectionWatch = ReturnType<typeof watchConnections>;

export function watchConnections(
  connection: pg.ClientConfig,
  onDead: (count: number) => void,
  timers: Timers = systemTimers,
) {
  const pending = new Map<pg.PoolClient, Pending>();
  const opened = new WeakMap<object, { at: number; pid: number }>();
  let looking = false;
  let deadAt = -Infinity;
  const processOf = (client: object): number => opened.get(client)?.pid ?? 0;

  async function working(processes: readonly number[]): Promise<Set<number>> {
    const client = new pg.Client({
      ...connection,
      connectionTimeoutMillis: answerMs,
      query_timeout: answerMs,
      application_name: 'parley watch',
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      const { rows } = await client.query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity WHERE pid = ANY($1) AND state NOT LIKE 'idle%'`,
        [processes],
      );
      return new Set(rows.map(({ pid }) => pid));
    } finally {
      client.end().catch(() => undefined);
    }
  }

  /** Runs once a second. */
  async function look(): Promise<void> {
    if (looking) return;
    const now = timers.monotonic();
    const late = [...pending].filter(([, { since }]) => now - since > patienceMs);
    if (late.length === 0) return;
    looking = true;
    try {
      const busy = await working(late.map(([client]) => processOf(client)));
      // If the query was answered meanwhile, it has no entry any more, or another one.
      const idle = late.filter(
        ([client, its]) => pending.get(client) === its && !busy.has(processOf(client)),
      );
      const dead = idle.filter(([, its]) => its.suspect);
      for (const [, its] of idle) its.suspect = true;
      if (dead.length === 0) return;
      deadAt = timers.monotonic();
      for (const [client] of dead) streamOf(client).destroy();
      onDead(dead.length);
    } catch {
      // A new connection does not work either, so nothing is known yet.
    } finally {
      looking = false;
    }
  }

  return {
    look,
    stop: timers.every(lookMs, () => void look()),
    /** @param pid PostgreSQL's process, which a pooler in between does not tell by itself. */
    opened(client: object, pid: number): void {
      opened.set(client, { at: timers.monotonic(), pid });
    },
    /** True if other connections from the same time were found dead. */
    isSuspect: (client: object): boolean => (opened.get(client)?.at ?? 0) < deadAt,
    async run<T>(client: pg.PoolClient, query: () => Promise<T>): Promise<T> {
      pending.set(client, { since: timers.monotonic(), suspect: false });
      try {
        return await query();
      } finally {
        pending.delete(client);
      }
    },
  };
}

const streamOf = (client: pg.PoolClient): Duplex =>
  (client as unknown as { connection: { stream: Duplex } }).connection.stream;
