import pg from 'pg';
import { ApiError } from '@parley/protocol';

/** Numbers above 2^53 do not occur in our columns. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
/** Not among the names of `pg.types.builtins`. */
const int8Array = 1016 as typeof pg.types.builtins.INT8;
pg.types.setTypeParser(int8Array, (text) => (text === '{}' ? [] : text.slice(1, -1).split(',').map(Number)));
pg.types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, isoTimestamp);

/** PostgreSQL's text form in a UTC session to ISO 8601 with milliseconds. */
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
  /** Several statements without parameters (migrations, savepoints). */
  script(sql: string): Promise<void>;
  /** Runs after the commit, in order; never when the transaction fails. One that throws is reported and stops nothing. */
  afterCommit(fn: () => void): void;
}

/** What operations work with: plain queries, and transactions that join one already open. */
export interface Db extends Queryable {
  tx<T>(run: (tx: Tx) => Promise<T>): Promise<T>;
}

export type ConnectionSettings = Pick<
  pg.PoolConfig,
  'connectionString' | 'host' | 'port' | 'user' | 'database'
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

/** The query under way, or the next one, fails with it. */
const ignore = (): void => undefined;

const sessionSettings = {
  TimeZone: 'UTC',
  statement_timeout: '60000',
  // Whoever waits for a lock keeps a connection of the pool: rather the caller tries again than everybody waits.
  lock_timeout: '5000',
  idle_in_transaction_session_timeout: '60000',
  // Statements are few and look things up by key: planning one anew costs more than running it.
  plan_cache_mode: 'force_generic_plan',
  // A plan made while a table was small must not read it whole when it has grown, nor when statistics mislead.
  enable_seqscan: 'off',
  // Up to version 17 that is done by giving such a scan an enormous cost, at which PostgreSQL would compile the statement.
  jit: 'off',
};

export interface PgOptions {
  /** Connections at most. */
  max: number;
  /** Told of what no caller hears of; `what` happened, in words. */
  onError: (error: Error, what: string) => void;
  settings?: Record<string, string>;
}

export class PgDb implements Db {
  readonly pool: pg.Pool;
  readonly #onError: PgOptions['onError'];
  constructor(connection: ConnectionSettings, options: PgOptions) {
    this.#onError = options.onError;
    const settings = Object.entries({ ...sessionSettings, ...options.settings });
    this.pool = new pg.Pool({
      ...connection,
      max: options.max,
      connectionTimeoutMillis: 10_000,
      idleTimeoutMillis: 0,
      keepAlive: true,
      options: settings.map(([name, value]) => `-c ${name}=${value}`).join(' '),
      application_name: 'parley',
    });
    this.pool.on('error', (error) => this.#onError(error, 'an idle connection was lost'));
    // The pool listens to idle connections only: one lost between two queries of a transaction would end the process.
    this.pool.on('connect', (client) => client.on('error', ignore));
  }

  async query<R extends object>(sql: string, values: unknown[] = []): Promise<R[]> {
    try {
      const result = await this.pool.query<R>({ name: statementName(sql), text: sql, values });
      return result.rows;
    } catch (error) {
      throw translate(error);
    }
  }

  /** One transaction; a deadlock runs it again, so `run` must act through the transaction alone. */
  async tx<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(run);
      } catch (error) {
        if (attempt < maxTries && (error as { code?: string }).code === deadlock) continue;
        throw translate(error);
      }
    }
  }

  async #once<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    const after: (() => void)[] = [];
    let broken: Error | undefined;
    try {
      await client.query('BEGIN');
      const result = await run({
        query: async <R extends object>(sql: string, values: unknown[] = []) =>
          (await client.query<R>({ name: statementName(sql), text: sql, values })).rows,
        script: async (sql) => {
          await client.query(sql);
        },
        afterCommit: (fn) => after.push(fn),
      });
      await client.query('COMMIT');
      for (const fn of after) this.#follow(fn);
      return result;
    } catch (error) {
      await client.query('ROLLBACK').catch((e: Error) => {
        broken = e;
      });
      throw error;
    } finally {
      client.release(broken);
    }
  }

  /** What was committed stays committed, whatever its followers do. */
  #follow(fn: () => void): void {
    try {
      fn();
    } catch (error) {
      this.#onError(error as Error, 'what follows a commit failed');
    }
  }

  close(): Promise<void> {
    return this.pool.end();
  }
}

/** A transaction that is already open, seen as a Db: `tx` joins it. What a failed part registered does not run. */
export function joined(tx: Tx): Db {
  return {
    query: (sql, values) => tx.query(sql, values),
    tx: async (run) => {
      const after: (() => void)[] = [];
      const result = await run({ ...tx, afterCommit: (fn) => after.push(fn) });
      for (const fn of after) tx.afterCommit(fn);
      return result;
    },
  };
}

/** The store cannot be reached, is shutting down, or gave up for lack of time or room: the caller may try again. */
export function isUnavailable(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === 'string' && (passingStates.test(code) || networkErrors.has(code))) return true;
  return typeof message === 'string' && lostConnection.test(message);
}

/**
 * SQLSTATE classes 08 (connection), 40 (transaction rollback: deadlocks), 53 (insufficient resources) and 57 (operator
 * intervention: shutdowns, cancelled statements), and of the others lock and transaction time-outs.
 */
const passingStates = /^(08...|40...|53...|57...|55P03|25P03|25P04)$/;
const networkErrors = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
]);
/** Errors that pg makes itself have no code. */
const lostConnection =
  /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Cannot use a pool after calling end|not queryable/;

function translate(error: unknown): unknown {
  if (!isUnavailable(error)) return error;
  const translated = new ApiError('service_unavailable');
  translated.cause = error;
  return translated;
}
