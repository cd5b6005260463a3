import { isIP } from 'node:net';
import pg from 'pg';
import { commonError, HistoryError } from './port.ts';
import type { HistoryErrorClass } from './port.ts';
import { timesOf } from './shared.ts';
import type { HistoryDeps } from './shared.ts';
import type { HistoryTarget } from './target.ts';

/** How a customer's PostgreSQL is reached, and what its errors mean. */

const classes: [RegExp, HistoryErrorClass][] = [
  [/^(08|58)/, 'unreachable'],
  [/^(53|57P|40|55P03)/, 'overloaded'],
  [/^57014$/, 'timeout'],
  [/^(28|3D)/, 'authentication'],
  [/^42501$/, 'permission'],
  [/^(42P01|42703|3F000|42P10)$/, 'schema'],
  [/^(22|23|54)/, 'refused'],
];

export function translate(error: unknown): HistoryError {
  const common = commonError(error);
  if (common) return common;
  const { code, message = '' } = error as { code?: string; message?: string };
  // What PgBouncer answers to a login.
  if (code === '08P01' && /no such user|authentication failed/i.test(message))
    return new HistoryError(
      'authentication',
      code,
      'a pooler (PgBouncer) stands before it and does not know them',
    );
  if (code === '08P01' && /startup parameter/i.test(message))
    return new HistoryError(
      'failed',
      code,
      'a pooler (PgBouncer) stands before it and refuses a parameter of the connection',
    );
  if (code !== undefined && /^[0-9A-Z]{5}$/.test(code))
    return new HistoryError(classes.find(([pattern]) => pattern.test(code))?.[1] ?? 'failed', code);
  if (/does not support SSL/.test(message))
    return new HistoryError(
      'tls',
      undefined,
      'the server offers none, so the user and the password were not tried; sslmode=disable in the URL goes without TLS',
    );
  if (/SSL connection/.test(message)) return new HistoryError('tls', undefined);
  if (/timeout/i.test(message)) return new HistoryError('timeout', undefined);
  if (/terminated|connection error|not queryable|after calling end/i.test(message))
    return new HistoryError('unreachable', undefined);
  return new HistoryError('failed', code);
}

/** Connects to exactly the checked address; the name is kept for the certificate. */
export async function connection(target: HistoryTarget, deps: HistoryDeps): Promise<pg.PoolConfig> {
  const { host, port } = target.hosts[0]!;
  const { connectMs, statementMs } = timesOf(deps);
  const [address] = await deps.outbound.resolve(host, deps.tenant).catch((error: unknown) => {
    throw translate(error);
  });
  return {
    host: address!.address,
    port,
    user: target.user,
    // A function, because the driver takes an empty password as none and looks for another.
    password: () => target.password,
    database: target.database,
    ssl:
      target.tls === 'off'
        ? false
        : {
            // An address has no server name; the driver then compares the certificate with the address.
            ...(isIP(host) ? {} : { servername: host }),
            rejectUnauthorized: target.tls === 'verified',
            ...(target.ca ? { ca: target.ca } : {}),
          },
    connectionTimeoutMillis: connectMs,
    query_timeout: statementMs,
    application_name: 'parley',
    keepAlive: true,
    types: { getTypeParser: (type: number) => readers[type] ?? String } as pg.CustomTypesConfig,
  };
}

/** The types that are asked for. Others are left as text: the driver's own readers may take minutes for a date. */
const readers: Record<number, (text: string) => unknown> = {
  16: (text) => text === 't',
  23: Number,
  701: Number,
};

/** What the driver would take from the environment of this process is left out. */
export class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    const { connectionParameters } = this as unknown as { connectionParameters: object };
    Object.assign(connectionParameters, {
      options: undefined,
      replication: undefined,
      client_encoding: undefined,
      fallback_application_name: undefined,
    });
  }
}

/** The name of a table in the schema of the URL, if it names one. */
export const tableIn =
  ({ schema }: HistoryTarget) =>
  (table: string): string =>
    schema === null ? table : `"${schema}".${table}`;
