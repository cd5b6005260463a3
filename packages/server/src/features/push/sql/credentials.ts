import type { PushCredentialsView } from '@parley/protocol';
import type { Queryable, Tx } from '../../../platform/postgres/db.ts';
import { arraysOf } from '../../../platform/postgres/rows.ts';
import { parsePushCredentials } from '../../../platform/push/credentials.ts';
import type { PushCredentials } from '../../../platform/push/credentials.ts';
import type { PushProviderName } from '../../../platform/push/port.ts';
import type { Vault } from '../../../platform/secrets.ts';

/** An environment's own credentials for the push providers. They are stored sealed and are never shown again. */

const context = (env: number, provider: string): string => `push credentials ${env} ${provider}`;

export async function saveCredentials(
  tx: Tx,
  vault: Vault,
  env: number,
  provider: PushProviderName,
  credentials: PushCredentials,
): Promise<PushCredentialsView> {
  const [row] = await tx.query<PushCredentialsView>(
    `INSERT INTO push_credentials (env, provider, sealed) VALUES ($1, $2, $3)
     ON CONFLICT (env, provider) DO UPDATE SET no = DEFAULT, sealed = excluded.sealed, created_at = now()
     RETURNING provider, created_at AS "setAt"`,
    [env, provider, vault.seal(JSON.stringify(credentials), context(env, provider))],
  );
  await tx.query('SELECT set_push_listener($1)', [env]);
  return row!;
}

export const listCredentials = (db: Queryable, env: number): Promise<PushCredentialsView[]> =>
  db.query<PushCredentialsView>(
    'SELECT provider, created_at AS "setAt" FROM push_credentials WHERE env = $1 ORDER BY provider',
    [env],
  );

export async function dropCredentials(
  tx: Tx,
  env: number,
  provider: PushProviderName,
): Promise<PushCredentialsView | undefined> {
  const [row] = await tx.query<PushCredentialsView>(
    'DELETE FROM push_credentials WHERE env = $1 AND provider = $2 RETURNING provider, created_at AS "setAt"',
    [env, provider],
  );
  await tx.query('SELECT set_push_listener($1)', [env]);
  return row;
}

export interface SealedCredentials {
  /** Changes with every change of the credentials. */
  no: number;
  env: number;
  envId: string;
  provider: PushProviderName;
  sealed: Buffer;
}

export const loadCredentials = (
  db: Queryable,
  pairs: readonly { env: number; provider: PushProviderName }[],
): Promise<SealedCredentials[]> =>
  db.query<SealedCredentials>(
    `SELECT DISTINCT c.no, c.env, e.id AS "envId", c.provider, c.sealed
     FROM unnest($1::int[], $2::text[]) u(env, provider)
     JOIN push_credentials c ON c.env = u.env AND c.provider = u.provider JOIN environments e ON e.no = c.env`,
    arraysOf(pairs, 'env', 'provider'),
  );

export const openCredentials = (vault: Vault, row: SealedCredentials): PushCredentials =>
  parsePushCredentials(
    row.provider,
    JSON.parse(vault.open(row.sealed, context(row.env, row.provider)).toString()),
  );
