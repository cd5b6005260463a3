import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { ApiError } from '@parley/protocol';
import { isDiskFull, isUnanswered, isUnavailable } from './errors.ts';
import { keyedName, programName } from './program.ts';
import { watchConnections } from './watch.ts';
import type { ConnectionWatch } from './watch.ts';

/** Our columns never hold numbers above 2^53. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
/** The OID of int8[], which `pg.types.builtins` does not name. */
const int8Array = 1016 as typeof pg.types.builtins.INT8;
pg.types.setTypeParser(int8Array, (text) => (text === '{}' ? [] : text.slice(1, -1).split(',').map(Number)));
pg.types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, isoTimestamp);

/** Converts PostgreSQL's text form in a UTC session to ISO 8601 with milliseconds. */
export function isoTimestamp(text: string): string {
  const dot = text.indexOf('.');
  const zone = text.indexOf('+', 19);
  const fraction = dot < 0 ? '' : text.slice(dot + 1, zone);
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${fraction.padEnd(3, '0')}Z`;
}

export interface Queryable {
  query<R extends object>(sql: string, values?: unknown[]): Promise<R[]>;
}

export interface Tx extends Queryable {
  /** Runs several statements without parameters (migrations, savepoints). */
  script(sql: string): Promise<void>;
  /**
   * Runs after the commit, in order of registration; never if the transaction fails. If one throws, the error is
   * reported and the others still run.
   */
  afterCommit(fn: () => void): void;
  /** Runs if the answer to the commit was lost, so that it is unknown whether the commit happened. */
  onUnconfirmed(fn: () => void): void;
}

/** What operations use: plain queries, and transactions that join one already open. */
export interface Db extends Queryable {
  tx<T>(run: (tx: Tx) => Promise<T>): Promise<T>;
}

export type ConnectionSettings = Pick<
  pg.PoolConfig,
  'connectionString' | 'host' | 'port' | 'user' | 'database' | 'ssl'
>;

const names = new Map<string, string>();
/** SQL texts are constants of the program, so each becomes one prepared statement. */
function statementName(sql: string): string {
  let name = names.get(sql);
  if (name === undefined) {
    name = `s${names.size}`;
    names.set(sql, name);
  }
  return name;
}

const deadlock = '40P01';
const maxTries = 4;

/** Ignores errors of a connection: the running query, or the next one, fails with the same error. */
const ignore = (): void => undefined;

/** Set after connecting: a pooler such as PgBouncer refuses them as parameters of the start. */
const sessionSettings = {
  TimeZone: 'UTC',
  statement_timeout: '60000',
  // A transaction that waits for a lock keeps a connection of the pool: it is better if its caller tries again than
  // if everybody waits.
  lock_timeout: '5000',
  // A process that was frozen inside a transaction loses its locks.
  idle_in_transaction_session_timeout: '5000',
  // Statements are few and find rows by key: planning one again costs more than running it.
  plan_cache_mode: 'force_generic_plan',
  // A plan made while a table was small must not scan the table when it has grown, nor if statistics mislead.
  enable_seqscan: 'off',
  // Up to version 17, enable_seqscan=off gives such a scan an enormous cost, at which PostgreSQL would compile the
  // statement.
  jit: 'off',
};

/** Sets a session's settings, and asks for its process: a pooler in between names another. */
export const sessionSql = (settings: Record<string, string>): string =>
  `${Object.entries(settings)
    .map(([name, value]) => `SET ${name} TO '${value}';`)
    .join(' ')} SELECT pg_backend_pid() AS pid`;

/** Milliseconds that a new connection gets for it. */
export const sessionMs = 10_000;

/** Runs several statements and returns the process that the last one asks for. */
export async function beginSession(client: pg.ClientBase, sql: string): Promise<number> {
  const results = await client.query({ text: sql, query_timeout: sessionMs } as pg.QueryConfig);
  return ([results].flat().at(-1) as pg.QueryResult<{ pid: number }>).rows[0]!.pid;
}

/** Milliseconds beyond PostgreSQL's own time-out after which a query fails here, in case the connection is lost. */
const unansweredMs = 5_000;
/** Milliseconds that connections may take to end when the pool is closed. */
const endMs = 2_000;

export interface PgOptions {
  /** The maximum number of connections. */
  max: number;
  /** Called for errors that no caller gets; `what` describes in words what happened. */
  onError: (error: Error, what: string) => void;
  settings?: Record<string, string>;
}

export const diskFullText = 'the disk of the store is full';
/** A megabyte. */
const roomSql = `CREATE TEMP TABLE parley_room ON COMMIT DROP AS SELECT repeat('x', 1900) FROM generate_series(1, 550)`;

/** Of each server: whether something could not be written because its disk is full. All pools of the process know it. */
const disks = new WeakMap<ConnectionSettings, { full: boolean }>();
function diskOf(connection: ConnectionSettings): { full: boolean } {
  const known = disks.get(connection) ?? { full: false };
  disks.set(connection, known);
  return known;
}

export class PgDb implements Db {
  readonly #disk: { full: boolean };
  readonly pool: pg.Pool;
  readonly #onError: PgOptions['onError'];
  readonly #watch: ConnectionWatch;
  /** The end of each open connection. */
  readonly #ends = new Set<Promise<void>>();
  /** What connections are called from now on, and those that are. */
  #name = programName;
  readonly #named = new WeakSet<pg.ClientBase>();
  constructor(connection: ConnectionSettings, options: PgOptions) {
    this.#onError = options.onError;
    this.#disk = diskOf(connection);
    const settings = { ...sessionSettings, ...options.settings };
    this.#watch = watchConnections(connection, (count) =>
      this.#onError(new Error(`${count} did not answer`), 'dead connections were replaced'),
    );
    const begin = sessionSql(settings);
    const begun = async (client: pg.ClientBase): Promise<void> => {
      // The pool listens to idle connections only: an error between two queries of a transaction would end the process.
      client.on('error', ignore);
      const ended = new Promise<void>((resolve) => client.once('end', resolve)).then(() => {
        this.#ends.delete(ended);
      });
      this.#ends.add(ended);
      this.#watch.opened(client, await beginSession(client, begin));
    };
    this.pool = new pg.Pool({
      ...connection,
      max: options.max,
      connectionTimeoutMillis: 10_000,
      idleTimeoutMillis: 0,
      keepAlive: true,
      keepAliveInitialDelayMillis: 5_000,
      query_timeout: Number(settings.statement_timeout) + unansweredMs,
      application_name: programName,
      // The pool waits for it, though its type does not say so.
      onConnect: begun as (client: pg.ClientBase) => unknown,
    });
    this.pool.on('error', (error) => this.#onError(error, 'an idle connection was lost'));
  }

  async #connect(): Promise<pg.PoolClient> {
    for (;;) {
      const client = await this.pool.connect();
      if (this.#watch.isSuspect(client)) {
        client.release(true);
        continue;
      }
      if (this.#name === programName || this.#named.has(client)) return client;
      try {
        await client.query(`SET application_name TO '${this.#name}'`);
      } catch (error) {
        client.release(error as Error);
        throw error;
      }
      this.#named.add(client);
      return client;
    }
  }

  /** Tells other processes with which master key this one seals: its connections are called so from now on. */
  async announce(fingerprint: string): Promise<void> {
    this.#name = keyedName(fingerprint);
    const open = Array.from({ length: this.pool.totalCount }, () => this.#connect());
    for (const result of await Promise.allSettled(open))
      if (result.status === 'fulfilled') result.value.release();
  }

  async #ask<R extends object>(client: pg.PoolClient, sql: string, values: unknown[]): Promise<R[]> {
    const query = { name: statementName(sql), text: sql, values };
    return (await this.#watch.run(client, () => client.query<R>(query))).rows;
  }

  /** Runs SQL without parameters, possibly several statements. */
  #script(client: pg.PoolClient, sql: string): Promise<unknown> {
    return this.#watch.run(client, () => client.query(sql));
  }

  async query<R extends object>(sql: string, values: unknown[] = []): Promise<R[]> {
    let client: pg.PoolClient | undefined;
    let broken: Error | undefined;
    try {
      client = await this.#connect();
      return await this.#ask<R>(client, sql, values);
    } catch (error) {
      if (isUnanswered(error)) broken = error as Error;
      throw this.#translate(error);
    } finally {
      client?.release(broken);
    }
  }

  /** Runs one transaction. After a deadlock it runs again, so `run` must act through the transaction only. */
  async tx<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(run);
      } catch (error) {
        if (attempt < maxTries && (error as { code?: string }).code === deadlock) continue;
        throw this.#translate(error);
      }
    }
  }

  async #once<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
    const client = await this.#connect();
    const after: (() => void)[] = [];
    const unconfirmed: (() => void)[] = [];
    let committing = false;
    let broken: Error | undefined;
    try {
      await this.#script(client, 'BEGIN');
      const result = await run({
        query: <R extends object>(sql: string, values: unknown[] = []) => this.#ask<R>(client, sql, values),
        script: async (sql) => {
          await this.#script(client, sql);
        },
        afterCommit: (fn) => after.push(fn),
        onUnconfirmed: (fn) => unconfirmed.push(fn),
      });
      committing = true;
      await this.#script(client, 'COMMIT');
      committing = false;
      for (const fn of after) this.#follow(fn);
      return result;
    } catch (error) {
      if (committing && isUnanswered(error)) for (const fn of unconfirmed) this.#follow(fn);
      if (isUnanswered(error)) broken = error as Error;
      else
        await this.#script(client, 'ROLLBACK').catch((e: Error) => {
          broken = e;
        });
      throw error;
    } finally {
      client.release(broken);
    }
  }

  /** Resolves when PostgreSQL answers. */
  async ping(): Promise<void> {
    await this.query('SELECT 1');
  }

  /** True if something could not be written because the disk is full, and nothing could since. */
  get diskFull(): boolean {
    return this.#disk.full;
  }

  /** Tries whether the disk has room again, by writing as much as a table grows at once. */
  async hasRoom(): Promise<boolean> {
    try {
      await this.tx((tx) => tx.script(roomSql));
    } catch (error) {
      // Any other refusal says nothing about the disk.
      if (isUnavailable(error)) return false;
    }
    this.#disk.full = false;
    return true;
  }

  #translate(error: unknown): unknown {
    if (!isUnavailable(error)) return error;
    if (isDiskFull(error) && !this.#disk.full) {
      this.#disk.full = true;
      this.#onError(error as Error, diskFullText);
    }
    // PostgreSQL ends when it has no room for its log.
    const named = isDiskFull(error) || (this.#disk.full && isUnanswered(error));
    const translated = new ApiError(
      'service_unavailable',
      named ? { message: `Nothing can be stored now: ${diskFullText}.` } : {},
    );
    translated.cause = error;
    return translated;
  }

  /** What was committed stays committed, whatever happens in functions that run after it. */
  #follow(fn: () => void): void {
    try {
      fn();
    } catch (error) {
      this.#onError(error as Error, 'what follows a commit failed');
    }
  }

  /** Resolves when PostgreSQL has seen the connections end: a server that stops at once would log each that is left. */
  async close(): Promise<void> {
    this.#watch.stop();
    await this.pool.end();
    await Promise.race([Promise.all(this.#ends), delay(endMs, undefined, { ref: false })]);
  }
}

/** Presents an open transaction as a Db whose `tx` joins it. Functions that a failed part registered do not run. */
export function joined(tx: Tx): Db {
  return {
    query: (sql, values) => tx.query(sql, values),
    tx: async (run) => {
      const after: (() => void)[] = [];
      const unconfirmed: (() => void)[] = [];
      const result = await run({
        ...tx,
        afterCommit: (fn) => after.push(fn),
        onUnconfirmed: (fn) => unconfirmed.push(fn),
      });
      for (const fn of after) tx.afterCommit(fn);
      for (const fn of unconfirmed) tx.onUnconfirmed(fn);
      return result;
    },
  };
}
