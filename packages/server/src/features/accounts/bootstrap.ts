import type { Static } from 'typebox';
import {
  EnvironmentKind,
  EnvironmentName,
  environmentIdPattern,
  EnvironmentSettingsChange,
  PlanNameSchema,
  secretKeyPattern,
  Type,
} from '@parley/protocol';
import { validator } from '../../platform/validation.ts';
import { joined } from '../../platform/postgres/db.ts';
import type { Db, Tx } from '../../platform/postgres/db.ts';
import { createPasswords } from './passwords.ts';
import { operatorCaller } from '../callers.ts';
import type { ControlContext, ControlServices } from '../context.ts';
import { addEnvironment } from '../tenancy/operations.ts';
import { lockEnvironments } from '../tenancy/sql/environments.ts';
import { createOwner } from './sql/organizations.ts';

/** The first start on an empty database (settings CHAT_BOOTSTRAP_…). Generated secrets are returned, to be shown once. */

const Environments = Type.Array(
  Type.Object(
    {
      id: Type.String({ pattern: environmentIdPattern }),
      name: Type.Optional(EnvironmentName),
      kind: EnvironmentKind,
      plan: Type.Optional(PlanNameSchema),
      secretKey: Type.Optional(Type.String({ pattern: secretKeyPattern })),
      settings: Type.Optional(EnvironmentSettingsChange),
    },
    { additionalProperties: false },
  ),
  { minItems: 1, maxItems: 100 },
);
const fits = validator(Type.Object({ CHAT_BOOTSTRAP_ENVIRONMENTS: Environments }));

interface BootstrapSettings {
  environments: string | undefined;
  email: string | undefined;
  password: string | undefined;
  /** The kind of the environment that is created if none are listed. */
  kind: EnvironmentKind;
}

export interface Bootstrapped {
  environments: { id: string; kind: string; local: boolean; secretKey: string | null }[];
  email: string;
  /** null if the password was given, so there is nothing to show. */
  password: string | null;
}

export function parseEnvironments(text: string): Static<typeof Environments> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(
      'CHAT_BOOTSTRAP_ENVIRONMENTS is not JSON; it looks like [{ "id": "env_…", "kind": "development", … }].',
    );
  }
  const problem = fits({ CHAT_BOOTSTRAP_ENVIRONMENTS: value });
  if (problem) throw new Error(problem.message);
  return value as Static<typeof Environments>;
}

export async function bootstrap(
  db: Db,
  services: ControlServices,
  settings: BootstrapSettings,
): Promise<Bootstrapped | null> {
  const given = settings.environments === undefined ? undefined : parseEnvironments(settings.environments);
  return db.tx(async (tx) => {
    // Several processes may start on one empty database: the first one fills it.
    if (await lockEnvironments(tx)) return null;
    return createFirst(tx, services, { ...settings, environments: given });
  });
}

export async function createFirst(
  tx: Tx,
  services: ControlServices,
  settings: Omit<BootstrapSettings, 'environments'> & {
    environments: ReturnType<typeof parseEnvironments> | undefined;
  },
): Promise<Bootstrapped> {
  const { ids } = services;
  const password = settings.password ?? ids.secret(16);
  const email = (settings.email ?? 'owner@localhost').toLowerCase();
  const passwordHash = await createPasswords(ids.random).hash(password);
  const org = await createOwner(tx, ids, email, passwordHash);
  const ctx: ControlContext = {
    caller: operatorCaller('first start'),
    db: joined(tx),
    services,
    requestId: ids.make('request'),
  };
  const environments = [];
  // The default environment has no ceilings, because people run it for themselves. Listed environments get the plan
  // that they name, otherwise `free`.
  for (const wanted of settings.environments ?? [
    {
      plan: 'enterprise' as const,
      id: ids.make('environment'),
      kind: settings.kind,
      local: settings.kind === 'development',
    },
  ]) {
    const { env, key } = await addEnvironment(ctx, tx, org, { name: wanted.kind, plan: 'free', ...wanted });
    const shown = 'secretKey' in wanted ? null : key.secretKey;
    environments.push({ id: env.id, kind: env.kind, local: env.local, secretKey: shown });
  }
  return { environments, email, password: settings.password === undefined ? password : null };
}
