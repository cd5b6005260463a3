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
export class ConnectionWatch {
  readonly #connection: pg.ClientConfig;
  readonly #pending = new Map<pg.PoolClient, Pending>();
  readonly #opened = new WeakMap<object, { at: number; pid: number }>();
  readonly #timers: Timers;
  readonly #onDead: (count: number) => void;
  readonly stop: () => void;
  #looking = false;
  #deadAt = -Infinity;

  constructor(connection: pg.ClientConfig, onDead: (count: number) => void, timers: Timers = systemTimers) {
    this.#connection = connection;
    this.#onDead = onDead;
    this.#timers = timers;
    this.stop = timers.every(lookMs, () => void this.look());
  }

  /** @param pid PostgreSQL's process, which a pooler in between does not tell by itself. */
  opened(client: object, pid: number): void {
    this.#opened.set(client, { at: this.#timers.monotonic(), pid });
  }

  /** True if other connections from the same time were found dead. */
  isSuspect(client: object): boolean {
    return (this.#opened.get(client)?.at ?? 0) < this.#deadAt;
  }

  async run<T>(client: pg.PoolClient, query: () => Promise<T>): Promise<T> {
    this.#pending.set(client, { since: this.#timers.monotonic(), suspect: false });
    try {
      return await query();
    } finally {
      this.#pending.delete(client);
    }
  }

  /** Runs once a second. */
  async look(): Promise<void> {
    if (this.#looking) return;
    const now = this.#timers.monotonic();
    const late = [...this.#pending].filter(([, { since }]) => now - since > patienceMs);
    if (late.length === 0) return;
    this.#looking = true;
    try {
      const working = await this.#working(late.map(([client]) => this.#processOf(client)));
      // If the query was answered meanwhile, it has no entry any more, or another one.
      const idle = late.filter(
        ([client, its]) => this.#pending.get(client) === its && !working.has(this.#processOf(client)),
      );
      const dead = idle.filter(([, its]) => its.suspect);
      for (const [, its] of idle) its.suspect = true;
      if (dead.length === 0) return;
      this.#deadAt = this.#timers.monotonic();
      for (const [client] of dead) streamOf(client).destroy();
      this.#onDead(dead.length);
    } catch {
      // A new connection does not work either, so nothing is known yet.
    } finally {
      this.#looking = false;
    }
  }

  #processOf(client: object): number {
    return this.#opened.get(client)?.pid ?? 0;
  }

  async #working(processes: readonly number[]): Promise<Set<number>> {
    const client = new pg.Client({
      ...this.#connection,
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
}

const streamOf = (client: pg.PoolClient): Duplex =>
  (client as unknown as { connection: { stream: Duplex } }).connection.stream;
