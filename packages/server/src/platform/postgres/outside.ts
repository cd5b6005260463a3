import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { sslModes, tlsOfMode } from '../sslmode.ts';
import type { TlsLevel } from '../sslmode.ts';
import type { ConnectionSettings } from './db.ts';

/** DATABASE_URL cannot be used as it is. The message repeats no value of it. */
export class DatabaseUrlError extends Error {
  override name = 'DatabaseUrlError';
}

const fileNames = { ca: 'sslrootcert', cert: 'sslcert', key: 'sslkey' } as const;
const tlsOptions = ['ssl', 'sslmode', 'sslnegotiation', 'uselibpqcompat', ...Object.values(fileNames)];

/**
 * The connection that DATABASE_URL names. What it says about TLS is read here, because the driver gives `sslmode` another meaning; the driver
 * reads the rest.
 */
export function outsideConnection(
  text: string,
  env: NodeJS.ProcessEnv,
): { connection: ConnectionSettings; tls: TlsLevel } {
  if (!/^postgres(ql)?:\/\//i.test(text))
    throw new DatabaseUrlError('DATABASE_URL must begin with postgres:// or postgresql://.');
  const [address = '', query = ''] = text.split(/\?(.*)/s);
  const options = new URLSearchParams(query);
  const rootFile = options.get(fileNames.ca);
  const tls = levelOf(options, env['PGSSLMODE'], rootFile !== null);
  const files = Object.entries(fileNames).flatMap(([field, name]) => {
    const path = options.get(name);
    return path === null ? [] : [[field, contentOf(name, path)]];
  });
  const ssl: ConnectionOptions = {
    ...(Object.fromEntries(files) as object),
    rejectUnauthorized: tls === 'verified',
  };
  for (const name of tlsOptions) options.delete(name);
  const rest = options.size > 0 ? `?${options}` : '';
  return { connection: { connectionString: address + rest, ssl: tls === 'off' ? false : ssl }, tls };
}

function levelOf(
  options: URLSearchParams,
  fromEnvironment: string | undefined,
  rootGiven: boolean,
): TlsLevel {
  const mode = options.get('sslmode');
  const flag = options.get('ssl');
  if (mode === null && flag !== null) {
    if (['true', '1'].includes(flag)) return 'verified';
    if (['false', '0'].includes(flag)) return 'off';
    throw new DatabaseUrlError('The option ssl of DATABASE_URL must be true or false.');
  }
  const level = tlsOfMode(mode ?? (fromEnvironment || 'disable'), rootGiven);
  if (level !== undefined) return level;
  throw new DatabaseUrlError(
    mode === null
      ? `PGSSLMODE must be ${sslModes}.`
      : `The option sslmode of DATABASE_URL must be ${sslModes}.`,
  );
}

function contentOf(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new DatabaseUrlError(
      `The file that the option ${name} of DATABASE_URL names cannot be read: ${(error as NodeJS.ErrnoException).code}.`,
    );
  }
}
