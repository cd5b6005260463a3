import {
  ApiError,
  defaultSettings,
  effectiveSettings,
  environmentIdPattern,
  planNames,
} from '@parley/protocol';
import type { EnvironmentSettingsChange, PlanName } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Ids } from '../../platform/clock.ts';
import type { Environment } from '../context.ts';

export interface EnvironmentRow extends Omit<Environment, 'settings' | 'createdAt'> {
  /** Those that were set. */
  settings: EnvironmentSettingsChange;
  created_at: string;
}

export const environmentColumns = (alias: string): string =>
  ['no', 'id', 'name', 'kind', 'status', 'plan', 'settings', 'created_at']
    .map((c) => `${alias}.${c}`)
    .join(', ');

export const viewEnvironment = (row: EnvironmentRow): Environment => ({
  no: row.no,
  id: row.id,
  name: row.name,
  kind: row.kind,
  status: row.status,
  settings: effectiveSettings(row.kind, row.settings),
  plan: row.plan,
  createdAt: row.created_at,
});

/** The environments seen last, so that ten thousand sessions of one hold one object. */
export function environmentViews(max = 1_000): (row: EnvironmentRow) => Environment {
  const known = new Map<number, { text: string; env: Environment }>();
  return (row) => {
    const env = viewEnvironment(row);
    const text = JSON.stringify(env);
    const seen = known.get(env.no);
    if (seen?.text === text) return seen.env;
    if (known.size >= max) known.clear();
    known.set(env.no, { text, env });
    return env;
  };
}

export interface NewEnvironment {
  id?: string;
  name: string;
  kind: Environment['kind'];
  plan: PlanName;
  settings?: EnvironmentSettingsChange;
}

export async function createEnvironment(
  db: Queryable,
  ids: Ids,
  org: number,
  input: NewEnvironment,
): Promise<Environment> {
  const id = input.id ?? ids.make('environment');
  if (!new RegExp(environmentIdPattern).test(id))
    throw new Error(`An environment id is env_ and 1 to 40 of a-z 0-9; got "${id}".`);
  if (!planNames.includes(input.plan)) throw new Error(`The plan is one of ${planNames.join(', ')}.`);
  if (input.kind !== 'production' && input.kind !== 'development')
    throw new Error('The kind is production or development.');
  const [row] = await db.query<EnvironmentRow>(
    `INSERT INTO environments AS e (id, org, name, kind, plan, settings) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (id) DO NOTHING RETURNING ${environmentColumns('e')}`,
    [id, org, input.name, input.kind, input.plan, JSON.stringify(input.settings ?? {})],
  );
  if (!row) throw new Error(`There is an environment ${id} already.`);
  return viewEnvironment(row);
}

export async function findEnvironment(db: Queryable, id: string): Promise<Environment | undefined> {
  const [row] = await db.query<EnvironmentRow>(
    `SELECT ${environmentColumns('e')} FROM environments e WHERE id = $1`,
    [id],
  );
  return row && viewEnvironment(row);
}

/** The oldest environment that takes development tokens: the playground's. */
export async function developmentEnvironment(db: Queryable): Promise<string | null> {
  const [row] = await db.query<{ id: string }>(
    `SELECT id FROM environments WHERE kind = 'development' AND status = 'active'
       AND coalesce((settings ->> 'devTokens')::boolean, ${defaultSettings.devTokens}) ORDER BY no LIMIT 1`,
  );
  return row?.id ?? null;
}

export async function listEnvironments(db: Queryable): Promise<Environment[]> {
  const rows = await db.query<EnvironmentRow>(
    `SELECT ${environmentColumns('e')} FROM environments e ORDER BY no LIMIT 1000`,
  );
  return rows.map(viewEnvironment);
}

export async function updateEnvironment(
  db: Queryable,
  id: string,
  change: { status?: Environment['status']; plan?: PlanName; settings?: EnvironmentSettingsChange },
): Promise<Environment> {
  const [row] = await db.query<EnvironmentRow>(
    `UPDATE environments e SET status = coalesce($2, status), plan = coalesce($3, plan), settings = settings || $4
     WHERE id = $1 RETURNING ${environmentColumns('e')}`,
    [id, change.status ?? null, change.plan ?? null, JSON.stringify(change.settings ?? {})],
  );
  if (!row) throw new Error(`There is no environment ${id}.`);
  if (change.settings?.pushMode) await db.query('SELECT set_push_listener($1)', [row.no]);
  return viewEnvironment(row);
}

/** A suspended environment is refused (socket: close 4003). */
export function requireActive(env: Environment): void {
  if (env.status === 'suspended')
    throw new ApiError('forbidden', { message: 'The environment is suspended.' });
}
