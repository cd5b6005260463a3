import { ApiError, defaultSettings, effectiveSettings } from '@parley/protocol';
import type {
  Environment as EnvironmentRecord,
  EnvironmentSettingsChange,
  Input,
  PlanName,
} from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { column, oneValue } from '../../../platform/postgres/rows.ts';
import type { Environment } from '../../context.ts';

export interface EnvironmentRow extends Omit<Environment, 'settings' | 'createdAt'> {
  /** Only the settings that were set; the others have their defaults. */
  settings: EnvironmentSettingsChange;
  created_at: string;
}

const columns = [
  'no',
  'id',
  'name',
  'kind',
  'status',
  'plan',
  'settings',
  'created_at',
  'local',
  'words',
  'hooks',
] as const;

/** Of the environment `e`. */
export const environmentColumns = columns.map((c) => `e.${c}`).join(', ');

export const viewEnvironment = (row: EnvironmentRow): Environment => ({
  no: row.no,
  id: row.id,
  name: row.name,
  kind: row.kind,
  status: row.status,
  settings: effectiveSettings(row.kind, row.settings),
  plan: row.plan,
  createdAt: row.created_at,
  local: row.local,
  words: row.words,
  hooks: row.hooks,
});

const mostViews = 1_000;

/** Caches the environments seen last, so that ten thousand sessions of one environment share one object. */
export function environmentViews(): (row: EnvironmentRow) => Environment {
  const known = new Map<number, { row: string; env: Environment }>();
  return (found) => {
    const row = JSON.stringify(columns.map((column) => found[column]));
    const seen = known.get(found.no);
    if (seen?.row === row) return seen.env;
    const env = viewEnvironment(found);
    if (known.size >= mostViews) known.clear();
    known.set(env.no, { row, env });
    return env;
  };
}

/** The environment as callers see it. */
export const environmentRecord = ({
  no: _no,
  words: _words,
  hooks: _hooks,
  ...record
}: Environment): EnvironmentRecord => record;

/** Locks the environment for a change of its word lists or hooks, and counts it: processes read them again. */
export async function nextVersion(tx: Queryable, env: number, of: 'words' | 'hooks'): Promise<void> {
  await tx.query(`UPDATE environments SET ${of} = ${of} + 1 WHERE no = $1`, [env]);
}

export interface NewEnvironment {
  id: string;
  name: string;
  kind: Environment['kind'];
  plan: PlanName;
  settings?: EnvironmentSettingsChange;
  /** True for what the first start makes by itself. */
  local?: boolean;
}

/** Returns undefined if the id is taken. */
export async function insertEnvironment(
  db: Queryable,
  org: number,
  input: NewEnvironment,
): Promise<Environment | undefined> {
  const [row] = await db.query<EnvironmentRow>(
    `INSERT INTO environments AS e (id, org, name, kind, plan, settings, local)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (id) DO NOTHING RETURNING ${environmentColumns}`,
    [
      input.id,
      org,
      input.name,
      input.kind,
      input.plan,
      JSON.stringify(input.settings ?? {}),
      input.local ?? false,
    ],
  );
  return row && viewEnvironment(row);
}

export async function findEnvironment(
  db: Queryable,
  id: string,
  lock = false,
): Promise<Environment | undefined> {
  const [row] = await db.query<EnvironmentRow>(
    `SELECT ${environmentColumns} FROM environments e WHERE id = $1 AND ended_at IS NULL${lock ? ' FOR NO KEY UPDATE' : ''}`,
    [id],
  );
  return row && viewEnvironment(row);
}

const unsigned = `kind = 'development' AND status = 'active'
  AND coalesce((settings ->> 'devTokens')::boolean, ${defaultSettings.devTokens})`;

/**
 * The oldest environment that accepts development tokens of a visitor; the demo uses it.
 * @param isLocal whether the visitor is on this machine.
 */
export async function demoEnvironment(db: Queryable, isLocal: boolean): Promise<string | 'only here' | null> {
  const [row] = await db.query<{ id: string; local: boolean }>(
    `SELECT id, local FROM environments WHERE ${unsigned} ORDER BY local AND NOT $1, no LIMIT 1`,
    [isLocal],
  );
  if (!row) return null;
  return row.local && !isLocal ? 'only here' : row.id;
}

/** Some of the environments that accept development tokens from anywhere, oldest first. */
export const openEnvironments = (db: Queryable): Promise<string[]> =>
  column(db, `SELECT id FROM environments WHERE ${unsigned} AND NOT local ORDER BY no LIMIT 10`);

/** @param account restricts the list to the account's organizations; null lists all. */
export async function listEnvironments(
  db: Queryable,
  account: number | null,
  after: number,
  limit: number,
): Promise<Environment[]> {
  const rows = await db.query<EnvironmentRow>(
    `SELECT ${environmentColumns} FROM environments e WHERE no > $2 AND ended_at IS NULL AND ($1::int IS NULL
       OR EXISTS (SELECT 1 FROM organization_accounts m WHERE m.org = e.org AND m.account = $1)) ORDER BY no LIMIT $3`,
    [account, after, limit],
  );
  return rows.map(viewEnvironment);
}

const maxShown = 1_000;

export const environmentIds = (db: Queryable, org: number): Promise<string[]> =>
  column(db, `SELECT id FROM environments WHERE org = $1 ORDER BY no LIMIT ${maxShown}`, [org]);

/** The environments of the account's organizations, each with the number of its organization. */
export async function environmentsOfAccount(
  db: Queryable,
  account: number,
): Promise<{ org: number; env: Environment }[]> {
  const rows = await db.query<EnvironmentRow & { org: number }>(
    `SELECT ${environmentColumns}, e.org FROM organization_accounts m JOIN environments e ON e.org = m.org
     WHERE m.account = $1 ORDER BY e.no LIMIT ${maxShown}`,
    [account],
  );
  return rows.map((row) => ({ org: row.org, env: viewEnvironment(row) }));
}

export async function updateEnvironment(
  db: Queryable,
  no: number,
  change: Omit<Input<'environments.update'>, 'environmentId' | 'confirm'>,
): Promise<Environment> {
  const [row] = await db.query<EnvironmentRow>(
    `UPDATE environments e SET name = coalesce($2, name), status = coalesce($3, status), plan = coalesce($4, plan),
       settings = settings || $5, local = coalesce($6, local)
     WHERE no = $1 RETURNING ${environmentColumns}`,
    [
      no,
      change.name ?? null,
      change.status ?? null,
      change.plan ?? null,
      JSON.stringify(change.settings ?? {}),
      change.local ?? null,
    ],
  );
  if (change.settings?.pushMode) await db.query('SELECT set_push_listener($1)', [no]);
  return viewEnvironment(row!);
}

/** A suspended environment is refused (socket: close 4003). */
export function requireActive(env: Environment): void {
  if (env.status === 'suspended')
    throw new ApiError('forbidden', { message: 'The environment is suspended.' });
}

/** Suspends the environments of an organization for good, and revokes their keys. */
export async function endEnvironments(tx: Queryable, org: number): Promise<void> {
  const ended = await tx.query<{ no: number }>(
    `UPDATE environments SET status = 'suspended', ended_at = now() WHERE org = $1 RETURNING no`,
    [org],
  );
  await tx.query('UPDATE secret_keys SET revoked_at = now() WHERE env = ANY($1) AND revoked_at IS NULL', [
    ended.map(({ no }) => no),
  ]);
}

/** For how many seconds a process may remove the rows of an environment before it must renew its claim. */
const claimSeconds = 120;

/** Claims ended environments whose rows are to be removed, for this process alone. */
export const claimEnded = (db: Queryable, graceSeconds: number, most: number): Promise<number[]> =>
  column(
    db,
    `UPDATE environments SET removing_until = now() + $2 * interval '1 second' WHERE no IN (
       SELECT no FROM environments WHERE ended_at <= now() - $1 * interval '1 second' AND removed_at IS NULL
         AND (removing_until IS NULL OR removing_until < now()) ORDER BY no LIMIT $3 FOR UPDATE SKIP LOCKED
     ) RETURNING no`,
    [graceSeconds, claimSeconds, most],
  );

export const renewClaim = (db: Queryable, envs: number[]): Promise<unknown> =>
  db.query(
    `UPDATE environments SET removing_until = now() + $2 * interval '1 second'
     WHERE no = ANY($1) AND removing_until < now() + $2 * interval '0.5 second'`,
    [envs, claimSeconds],
  );

export const markRemoved = (db: Queryable, envs: number[]): Promise<unknown> =>
  db.query(`UPDATE environments SET name = '', settings = '{}', removed_at = now() WHERE no = ANY($1)`, [
    envs,
  ]);

export const countEnvironments = (db: Queryable, org: number): Promise<number> =>
  oneValue(db, 'SELECT count(*)::int AS n FROM environments WHERE org = $1', [org]);

/** Keeps others from creating environments until the transaction ends. Returns true if there are any. */
export async function lockEnvironments(tx: Queryable): Promise<boolean> {
  await tx.query('LOCK TABLE environments IN SHARE ROW EXCLUSIVE MODE');
  return (await tx.query('SELECT 1 FROM environments LIMIT 1')).length > 0;
}

/** How long messages and events stay; null: as the service is set. */
export async function bufferHours(db: Queryable, env: number): Promise<number | null> {
  const [row] = await db.query<{ hours: number | null }>(
    'SELECT buffer_hours AS hours FROM environments WHERE no = $1',
    [env],
  );
  return row?.hours ?? null;
}

export async function setBufferHours(db: Queryable, env: number, hours: number): Promise<void> {
  await db.query('UPDATE environments SET buffer_hours = $2 WHERE no = $1', [env, hours]);
}

/** Tells the log whether a consumer listens to the environment. */
export async function setListening(db: Queryable, env: number, bit: number, listens: boolean): Promise<void> {
  await db.query(
    `UPDATE environments SET listeners = CASE WHEN $2 THEN listeners | $3 ELSE listeners & ~$3::int END WHERE no = $1`,
    [env, listens, bit],
  );
}
