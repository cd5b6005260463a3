import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { limits, pushProviders, userIdPattern } from '@parley/protocol';
import { readConfig } from './config.ts';
import { listCredentials, removeCredentials, setCredentials } from './features/push/credentials.ts';
import {
  createEnvironment,
  findEnvironment,
  listEnvironments,
  updateEnvironment,
} from './features/tenancy/environments.ts';
import { checkMasterKey } from './features/tenancy/bootstrap.ts';
import { createKey, listKeys, revokeKey, sealContext } from './features/tenancy/keys.ts';
import { mintToken } from './features/tenancy/tokens.ts';
import { createIds, pooledRandom, systemClock } from './platform/clock.ts';
import { createLogger } from './platform/logging.ts';
import { PgDb } from './platform/postgres/db.ts';
import { migrate } from './platform/postgres/migrate.ts';
import { PushCredentialsError } from './platform/push/credentials.ts';
import type { PushProviderName } from './platform/push/port.ts';
import { attachStore } from './platform/postgres/store.ts';
import { createVault, loadMasterKey } from './platform/secrets.ts';
import type { Vault } from './platform/secrets.ts';
import type { Ids } from './platform/clock.ts';

const usage = `npm run parley -- <command>

  env list
  env create --name <name> --kind production|development [--id env_…] [--plan free|starter|growth|scale|enterprise]
  env set <env id> [--status active|suspended] [--plan …] [--creation all|direct|none] [--dev-tokens true|false]
                   [--push providers|webhook|off]
  key list <env id>
  key create <env id> [--name <name>]
  key revoke <env id> <key id>
  push list <env id>
  push set <env id> fcm|apns|expo|webpush <file with the provider's credentials as JSON>
  push remove <env id> fcm|apns|expo|webpush
  token <env id> <user id> [--expires-in <seconds>]

It works on the same store as npm start (DATABASE_URL, CHAT_DATA_DIR, CHAT_MASTER_KEY), while the service runs or not.
`;

class UsageError extends Error {}

interface Tools {
  db: PgDb;
  ids: Ids;
  vault: Vault;
  args: string[];
  options: Record<string, string | undefined>;
}

const need = (value: string | undefined, what: string): string => {
  if (!value) throw new UsageError(`${what} is missing.`);
  return value;
};

async function environment({ db, args }: Tools) {
  const id = need(args[2], 'The environment id');
  const env = await findEnvironment(db, id);
  if (!env) throw new UsageError(`There is no environment ${id}.`);
  return env;
}

const oneOf = <T extends string>(
  value: string | undefined,
  name: string,
  allowed: readonly T[],
): T | undefined => {
  if (value === undefined) return undefined;
  if (!(allowed as readonly string[]).includes(value))
    throw new UsageError(`--${name} is one of ${allowed.join(', ')}.`);
  return value as T;
};
const provider = ({ args }: Tools): PushProviderName => {
  const name = need(args[3], 'The provider');
  const found = pushProviders.find((p) => p === name);
  if (!found) throw new UsageError(`The provider is one of ${pushProviders.join(', ')}.`);
  return found;
};

/** Its messages say nothing of what is in the file. */
async function readJson(path: string): Promise<unknown> {
  // npm runs the command in the repository, wherever it was typed.
  const text = await readFile(resolve(process.env['INIT_CWD'] ?? '', path), 'utf8').catch(() => {
    throw new UsageError(`The file ${path} cannot be read.`);
  });
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`The file ${path} is not JSON.`);
  }
}

const plans = ['free', 'starter', 'growth', 'scale', 'enterprise'] as const;

const commands: Record<string, (tools: Tools) => Promise<unknown>> = {
  'env list': async ({ db }) => listEnvironments(db),
  'env create': async ({ db, ids, vault, options }) => {
    const kind = oneOf(need(options['kind'], '--kind'), 'kind', ['production', 'development'] as const)!;
    return db.tx(async (tx) => {
      const [org] = await tx.query<{ no: number }>('SELECT no FROM organizations ORDER BY no LIMIT 1');
      if (!org) throw new UsageError('The store is empty: run npm start once first.');
      const env = await createEnvironment(tx, ids, org.no, {
        ...(options['id'] === undefined ? {} : { id: options['id'] }),
        name: need(options['name'], '--name'),
        kind,
        plan: oneOf(options['plan'], 'plan', plans) ?? 'free',
      });
      return { ...env, secretKey: await createKey(tx, ids, vault, env.no, { name: 'first' }) };
    });
  },
  'env set': async (tools) => {
    const { db, options } = tools;
    const env = await environment(tools);
    const creation = oneOf(options['creation'], 'creation', ['all', 'direct', 'none'] as const);
    const devTokens = oneOf(options['dev-tokens'], 'dev-tokens', ['true', 'false'] as const);
    const push = oneOf(options['push'], 'push', ['providers', 'webhook', 'off'] as const);
    const status = oneOf(options['status'], 'status', ['active', 'suspended'] as const);
    const plan = oneOf(options['plan'], 'plan', plans);
    return updateEnvironment(db, env.id, {
      ...(status ? { status } : {}),
      ...(plan ? { plan } : {}),
      settings: {
        ...(creation ? { clientConversationCreation: creation } : {}),
        ...(devTokens ? { devTokens: devTokens === 'true' } : {}),
        ...(push ? { pushMode: push } : {}),
      },
    });
  },
  'key list': async (tools) => listKeys(tools.db, (await environment(tools)).no),
  'key create': async (tools) => ({
    secretKey: await createKey(tools.db, tools.ids, tools.vault, (await environment(tools)).no, {
      name: tools.options['name'] ?? '',
    }),
  }),
  'key revoke': async (tools) => {
    const keyId = need(tools.args[3], 'The key id');
    await revokeKey(tools.db, (await environment(tools)).no, keyId);
    return { revoked: keyId };
  },
  'push list': async (tools) => listCredentials(tools.db, (await environment(tools)).no),
  'push set': async (tools) => {
    const env = await environment(tools);
    const name = provider(tools);
    const input = await readJson(need(tools.args[4], 'The file'));
    try {
      return await setCredentials(tools.db, tools.vault, env.no, name, input);
    } catch (error) {
      throw error instanceof PushCredentialsError ? new UsageError(`${error.message}.`) : error;
    }
  },
  'push remove': async (tools) => {
    const name = provider(tools);
    if (!(await removeCredentials(tools.db, (await environment(tools)).no, name)))
      throw new UsageError(`There are no credentials for ${name}.`);
    return { removed: name };
  },
  token: async ({ db, vault, args, options }) => {
    const env = await findEnvironment(db, need(args[1], 'The environment id'));
    if (!env) throw new UsageError(`There is no environment ${args[1]}.`);
    const userId = need(args[2], 'The user id');
    if (!new RegExp(userIdPattern).test(userId))
      throw new UsageError('A user id is 1 to 128 of A-Z a-z 0-9 _ - @ . :');
    const expiresIn = Number(options['expires-in'] ?? limits.tokenSeconds.default);
    if (
      !Number.isInteger(expiresIn) ||
      expiresIn < limits.tokenSeconds.min ||
      expiresIn > limits.tokenSeconds.max
    )
      throw new UsageError(
        `--expires-in is ${limits.tokenSeconds.min} to ${limits.tokenSeconds.max} seconds.`,
      );
    const [key] = await db.query<{ id: string; secret: Buffer }>(
      'SELECT id, secret FROM secret_keys WHERE env = $1 AND revoked_at IS NULL ORDER BY created_at DESC LIMIT 1',
      [env.no],
    );
    if (!key) throw new UsageError('The environment has no live key: make one with key create.');
    const [user] = await db.query<{ from: string | null }>(
      'SELECT tokens_from AS "from" FROM users WHERE env = $1 AND id = $2',
      [env.no, userId],
    );
    const now = Math.floor(systemClock.now() / 1000);
    const iat = Math.max(now, user?.from ? Date.parse(user.from) / 1000 : 0);
    const exp = iat + expiresIn;
    const token = mintToken(vault.open(key.secret, sealContext(key.id)).toString(), key.id, {
      sub: userId,
      iat,
      exp,
    });
    return { token, expiresAt: new Date(exp * 1000).toISOString() };
  },
};

function parsed() {
  const names = ['id', 'name', 'kind', 'plan', 'status', 'creation', 'dev-tokens', 'push', 'expires-in'];
  try {
    return parseArgs({
      allowPositionals: true,
      strict: true,
      options: Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])),
    });
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${usage}`);
  }
}

async function run(): Promise<void> {
  if (process.argv.includes('--help')) {
    process.stdout.write(usage);
    return;
  }
  const { values, positionals } = parsed();
  const command = commands[positionals.slice(0, 2).join(' ')] ?? commands[positionals[0] ?? ''];
  if (!command) throw new UsageError(usage);
  const { config } = readConfig(process.env);
  const logger = createLogger(config.logLevel === 'info' ? 'warn' : config.logLevel);
  const store = await attachStore(config, logger);
  const db = new PgDb(store.connection, { max: 2, onError: () => undefined });
  try {
    await migrate(store.connection);
    const vault = createVault(await loadMasterKey(config.masterKey, config.dataDir));
    await checkMasterKey(db, vault);
    const result = await command({
      db,
      vault,
      ids: createIds(systemClock, pooledRandom()),
      args: positionals,
      options: values as Record<string, string | undefined>,
    });
    process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
  } finally {
    await db.close();
    await store.stop();
  }
}

try {
  await run();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof UsageError ? 2 : 1);
}
