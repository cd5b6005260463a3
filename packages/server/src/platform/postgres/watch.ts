import type { Duplex } from 'node:stream';
import pg from 'pg';

/** A query without an answer for so long is looked into. */
const patienceMs = 3_000;
const lookMs = 1_000;
/** For the look itself: it is asked over a new connection. */
const answerMs = 2_000;

interface Pending {
  since: number;
  /** PostgreSQL said that it is not working on it. */
  suspect: boolean;
}

/**
 * Finds connections that died without a word, as after a failover: the query is on its way for ever, and PostgreSQL knows nothing of
 * it. A query that takes long is asked after over a new connection; one that is not being worked on, twice in a row, has its
 * connection destroyed. Connections opened before that moment are suspects too and are not used any more.
 */
export class ConnectionWatch {
  readonly #connection: pg.ClientConfig;
  readonly #pending = new Map<pg.PoolClient, Pending>();
  readonly #openedAt = new WeakMap<object, number>();
  readonly #timer: NodeJS.Timeout;
  readonly #onDead: (count: number) => void;
  #looking = false;
  #deadAt = -Infinity;

  constructor(connection: pg.ClientConfig, onDead: (count: number) => void) {
    this.#connection = connection;
    this.#onDead = onDead;
    this.#timer = setInterval(() => void this.#look(), lookMs).unref();
  }

  opened(client: object): void {
    this.#openedAt.set(client, performance.now());
  }

  /** Others of its age were dead. */
  isSuspect(client: object): boolean {
    return (this.#openedAt.get(client) ?? 0) < this.#deadAt;
  }

  async run<T>(client: pg.PoolClient, query: () => Promise<T>): Promise<T> {
    this.#pending.set(client, { since: performance.now(), suspect: false });
    try {
      return await query();
    } finally {
      this.#pending.delete(client);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    const now = performance.now();
    const late = [...this.#pending].filter(([, { since }]) => now - since > patienceMs);
    if (late.length === 0) return;
    this.#looking = true;
    try {
      const working = await this.#working(late.map(([client]) => processOf(client)));
      // Answered meanwhile, it has no entry any more, or another one.
      const idle = late.filter(
        ([client, its]) => this.#pending.get(client) === its && !working.has(processOf(client)),
      );
      const dead = idle.filter(([, its]) => its.suspect);
      for (const [, its] of idle) its.suspect = true;
      if (dead.length === 0) return;
      this.#deadAt = performance.now();
      for (const [client] of dead) streamOf(client).destroy();
      this.#onDead(dead.length);
    } catch {
      // No new connection works either: nothing is known yet.
    } finally {
      this.#looking = false;
    }
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

const processOf = (client: pg.PoolClient): number => (client as unknown as { processID: number }).processID;
const streamOf = (client: pg.PoolClient): Duplex =>
  (client as unknown as { connection: { stream: Duplex } }).connection.stream;
