import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { ApiError } from '@parley/protocol';
import type { Logger } from '../logging.ts';
import type { ConnectionSettings } from './db.ts';
import { isUnavailable } from './errors.ts';

const retryMs = 500;

/** PostgreSQL could not be used. The message says where it is and why not, and never has the password. */
export class StoreError extends Error {
  override name = 'StoreError';
}

/** Where a connection leads: host and port, or the folder of the socket. */
function placeOf(connection: ConnectionSettings): string {
  const { host, port } = new pg.Client(connection);
  return host.startsWith('/') ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

const reasons: Record<string, string> = {
  ECONNREFUSED: 'the connection is refused; does PostgreSQL run there?',
  ECONNRESET: 'the connection was cut',
  ENOENT: 'there is no such socket; does PostgreSQL run there?',
  EACCES: 'no permission for its socket',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be looked up now',
  ETIMEDOUT: 'no answer',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no route to the host',
};

/** Says in words why PostgreSQL cannot be used. */
export function unreachable(connection: ConnectionSettings, error: unknown): StoreError {
  const { code = '', message } = error as { code?: string; message: string };
  const at = `PostgreSQL at ${placeOf(connection)}`;
  const text = /timeout/.test(message) ? 'no answer' : (reasons[code] ?? message);
  if (code === '28P01' || code === '28000')
    return new StoreError(`${at} refuses the user of DATABASE_URL: ${message}.`, { cause: error });
  if (code === '3D000')
    return new StoreError(`${at}: ${message}. Create the database, or correct DATABASE_URL.`, {
      cause: error,
    });
  return new StoreError(`${at} cannot be reached: ${text}`, { cause: error });
}

/** Tries the work again for as long as the store cannot be reached. Any other error is thrown. */
export async function whenReached<T>(logger: Logger, work: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const waitable =
        isUnavailable(error) || (error instanceof ApiError && error.code === 'service_unavailable');
      if (!waitable) throw error;
      const why = error instanceof StoreError ? error.message : 'the store cannot be reached yet';
      if (attempt % 10 === 0) logger.warn(`${why}; trying again`);
      await delay(retryMs);
    }
  }
}
