import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ApiError, operations } from '@parley/protocol';
import type { Input } from '@parley/protocol';
import { backUp, passphraseFrom, restore } from './backup/backup.ts';
import { listenOrigin, readConfig } from './config.ts';
import { operatorCaller } from './features/callers.ts';
import type { ControlContext, EnvironmentContext } from './features/context.ts';
import { commands } from './features/handlers.ts';
import type { CommandName } from './features/handlers.ts';
import { onlyOrganization, requireEnvironment } from './features/tenancy/access.ts';
import { openVault } from './features/accounts/bootstrap.ts';
import { createIds, pooledRandom, systemClock } from './platform/clock.ts';
import { checks } from './platform/history/conformance.ts';
import { createRemoteHistories } from './platform/history/remote.ts';
import { createLogger } from './platform/logging.ts';
import type { Logger } from './platform/logging.ts';
import { PgDb } from './platform/postgres/db.ts';
import type { ConnectionSettings } from './platform/postgres/db.ts';
import { migrate } from './platform/postgres/migrate.ts';
import { attachStore } from './platform/postgres/store.ts';
import { readCommand } from './transport/input.ts';

/**
 * The command line: a binding over the operation table, like REST. It runs the operations that the operator may call,
 * with the same checks and the same audit log.
 */

const usage = `npm run parley -- <command>

  env list
  env create --name <name> --kind production|development [--id env_…] [--plan free|starter|growth|scale|enterprise]
             [--organization org_…]
  env set <env id> [--name <name>] [--status active|suspended] [--plan …] [--creation all|direct|none]
                   [--dev-tokens true|false] [--push providers|webhook|off] [--push-content full|name|none]
                   [--local true|false]  true: unsigned tokens work from this machine only
  key list <env id>
  key create <env id> [--name <name>]
  key revoke <env id> <key id>
  push list <env id>
  push set <env id> fcm|apns|expo|webpush <file with the provider's credentials as JSON>
  push remove <env id> fcm|apns|expo|webpush
  token <env id> <user id> [--expires-in <seconds>]
  account reset <email>            a link for a new password
  account sign-out <email>         ends all sessions
  account drop-second-factor <email>
  storage list [<env id>]          the slots of customers' databases, and which are set aside
  storage set-aside <env id> a|b   nothing connects to this database any more
  storage retry <env id> a|b       uses it again
  audit list [<env id>] [--action <operation>] [--actor <who>]
  backup <file>                    the rows as they are at one moment, uploaded files and the master key, in one new file, while the
                                   service runs. Encrypted where PARLEY_BACKUP_PASSPHRASE (or …_FILE) is set; else keep it as you
                                   would keep the key.
  restore <file>                   into a new data directory (CHAT_DATA_DIR), with its embedded store
  history check <url>              does a history database or endpoint do what it must? The signing secret of an http
                                   endpoint is read from HISTORY_SECRET. It writes under an environment id of its own.

It works on the same store as npm start (DATABASE_URL, CHAT_DATA_DIR, CHAT_MASTER_KEY), while the service runs or not.
`;

class UsageError extends Error {}

interface Line {
  ctx: ControlContext;
  /** The arguments after the words of the command. */
  args: string[];
  options: Record<string, string | undefined>;
  connection: ConnectionSettings;
  dataDir: string;
}

function need(value: string | undefined, what: string): string {
  if (!value) throw new UsageError(`${what} is missing.`);
  return value;
}

/** Only the fields that were given. */
const given = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/**
 * Checks the fields by the operation's schemas and runs the operation. Fields arrive as text; the schemas say which
 * types they stand for.
 */
function run<N extends CommandName>(
  name: N,
  ctx: Parameters<(typeof commands)[N]>[0],
  fields: Record<string, unknown>,
): ReturnType<(typeof commands)[N]> {
  const input = readCommand(operations[name], given(fields)) as Input<N>;
  const handler = commands[name] as (ctx: unknown, input: unknown) => ReturnType<(typeof commands)[N]>;
  return handler(ctx, input);
}

/** The context of an operation on the environment that the first argument names. */
async function inEnvironment({ ctx, args }: Line): Promise<EnvironmentContext> {
  return { ...ctx, env: await requireEnvironment(ctx, ctx.db, need(args[0], 'The environment id')) };
}

interface Page {
  data: unknown[];
  nextCursor?: string | null;
}

/** How many pages of a list are shown at most. */
const mostPages = 50;

async function all(read: (cursor: string | undefined) => Promise<unknown>): Promise<unknown[]> {
  const found: unknown[] = [];
  let cursor: string | undefined;
  for (let i = 0; i < mostPages; i++) {
    const page = (await read(cursor)) as Page;
    found.push(...page.data);
    if (!page.nextCursor) return found;
    cursor = page.nextCursor;
  }
  process.stderr.write(`There are more than these ${found.length}.\n`);
  return found;
}

/** Error messages do not repeat the content of the file. */
async function readJson(path: string): Promise<unknown> {
  // npm runs the command in the repository, wherever it was entered.
  const text = await readFile(resolve(process.env['INIT_CWD'] ?? '', path), 'utf8').catch(() => {
    throw new UsageError(`The file ${path} cannot be read.`);
  });
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`The file ${path} is not JSON.`);
  }
}

/** The file that a backup is written to or read from. */
const backupFile = async (path: string | undefined) => ({
  file: resolve(process.env['INIT_CWD'] ?? '', need(path, 'The file')),
  passphrase: await passphraseFrom(process.env),
});

const lines: Record<string, (line: Line) => Promise<unknown>> = {
  backup: async ({ connection, dataDir, args }) => {
    const where = await backupFile(args[0]);
    return { file: where.file, ...(await backUp({ connection, dataDir, ...where })) };
  },
  'env list': ({ ctx }) => all((cursor) => run('environments.list', ctx, { limit: '200', cursor })),
  'env create': async ({ ctx, options: { id, name, kind, plan, organization } }) =>
    run('environments.create', ctx, {
      id,
      name,
      kind,
      plan,
      organizationId: organization ?? (await onlyOrganization(ctx.db)),
    }),
  'env set': ({ ctx, args, options: { name, status, plan, local, ...options } }) => {
    const settings = given({
      clientConversationCreation: options['creation'],
      devTokens: options['dev-tokens'],
      pushMode: options['push'],
      pushContent: options['push-content'],
    });
    return run('environments.update', ctx, {
      environmentId: need(args[0], 'The environment id'),
      name,
      status,
      plan,
      local,
      settings: Object.keys(settings).length > 0 ? settings : undefined,
    });
  },
  'key list': async (line) => {
    const ctx = await inEnvironment(line);
    return all((cursor) => run('keys.list', ctx, { limit: '200', cursor }));
  },
  'key create': async (line) => run('keys.create', await inEnvironment(line), { name: line.options['name'] }),
  'key revoke': async (line) => {
    const keyId = need(line.args[1], 'The key id');
    await run('keys.revoke', await inEnvironment(line), { keyId });
    return { revoked: keyId };
  },
  'push list': async (line) =>
    ((await run('push.listCredentials', await inEnvironment(line), {})) as Page).data,
  'push set': async (line) => {
    const [, provider, file] = line.args;
    const ctx = await inEnvironment(line);
    const credentials = await readJson(need(file, 'The file'));
    return run('push.setCredentials', ctx, { provider, credentials });
  },
  'push remove': async (line) => {
    const provider = line.args[1];
    await run('push.removeCredentials', await inEnvironment(line), { provider });
    return { removed: provider };
  },
  token: async (line) =>
    run('tokens.create', await inEnvironment(line), {
      userId: line.args[1],
      expiresIn: line.options['expires-in'],
    }),
  'account reset': ({ ctx, args }) =>
    run('accounts.reset', ctx, { email: need(args[0], 'The e-mail address') }),
  'account sign-out': async ({ ctx, args }) => {
    await run('accounts.endSessions', ctx, { email: need(args[0], 'The e-mail address') });
    return { signedOut: args[0] };
  },
  'account drop-second-factor': async ({ ctx, args }) => {
    await run('accounts.removeSecondFactor', ctx, { email: need(args[0], 'The e-mail address') });
    return { dropped: args[0] };
  },
  'storage list': async ({ ctx, args }) =>
    ((await run('storage.listSlots', ctx, { environmentId: args[0] })) as Page).data,
  'storage set-aside': async (line) => {
    await run('storage.setAside', await inEnvironment(line), { slot: line.args[1] });
    return { setAside: line.args[1] };
  },
  'storage retry': async (line) => {
    await run('storage.takeBack', await inEnvironment(line), { slot: line.args[1] });
    return { retried: line.args[1] };
  },
  'audit list': ({ ctx, args, options: { action, actor } }) =>
    all((cursor) => run('audit.list', ctx, { limit: '200', cursor, environmentId: args[0], action, actor })),
};

const optionNames = [
  'id',
  'name',
  'kind',
  'plan',
  'organization',
  'status',
  'creation',
  'dev-tokens',
  'push',
  'push-content',
  'expires-in',
  'local',
  'action',
  'actor',
];

function parsed() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      strict: true,
      options: Object.fromEntries(optionNames.map((name) => [name, { type: 'string' as const }])),
    });
    return { options: values as Line['options'], words: positionals };
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${usage}`);
  }
}

/** Needs neither the store nor the settings, so that anybody who runs an endpoint can use it. */
async function checkHistory(url: string, logger: Logger): Promise<void> {
  const secret = process.env['HISTORY_SECRET'];
  const histories = createRemoteHistories({
    settings: { allowPrivate: true, dnsServers: [] },
    clock: systemClock,
    logger,
  });
  const env = `env_check${Buffer.from(pooledRandom()(6)).toString('hex')}`;
  const source = { url, ...(secret ? { secrets: [secret] } : {}) };
  const history = await histories.open(source, { no: 0, id: env }, () => undefined);
  let failed = 0;
  let count = 0;
  for (const check of checks)
    try {
      await check.run(history, (what) => `${what}_${++count}`);
      process.stdout.write(`ok      ${check.name}\n`);
    } catch (error) {
      failed++;
      process.stdout.write(
        `FAILED  ${check.name}\n        ${(error as Error).message.replaceAll('\n', '\n        ')}\n`,
      );
    }
  await history.close();
  await histories.close();
  process.stdout.write(`${checks.length - failed} passed, ${failed} failed. It wrote as ${env}.\n`);
  if (failed > 0) process.exitCode = 1;
}

/** The name that the audit log shows: the user of this machine who runs the command. */
function operatorName(): string {
  try {
    return userInfo().username;
  } catch {
    // This user id has no name on this machine.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

async function main(): Promise<void> {
  if (process.argv.includes('--help')) {
    process.stdout.write(usage);
    return;
  }
  const { options, words } = parsed();
  const { config } = readConfig(process.env);
  const logger = createLogger(config.logLevel === 'info' ? 'warn' : config.logLevel);
  // This runs before there is a store.
  if (words[0] === 'restore') {
    const { dataDir } = config;
    const counts = await restore({ dataDir, logger, ...(await backupFile(words[1])) });
    process.stdout.write(`${JSON.stringify({ restored: dataDir, ...counts }, null, 2)}\n`);
    return;
  }
  if (words[0] === 'history' && words[1] === 'check') return checkHistory(need(words[2], 'The URL'), logger);
  const length = [2, 1].find((n) => Object.hasOwn(lines, words.slice(0, n).join(' ')));
  if (length === undefined) throw new UsageError(usage);
  const command = lines[words.slice(0, length).join(' ')]!;
  const store = await attachStore(config, logger);
  const db = new PgDb(store.connection, { max: 2, onError: () => undefined });
  try {
    // A command waits for nobody: processes of an earlier version may go on for hours.
    await migrate(store.connection, undefined, { waitMs: 0 });
    const { vault } = await openVault(db, config.masterKey, config.dataDir);
    const ids = createIds(systemClock, pooledRandom());
    const ctx: ControlContext = {
      caller: operatorCaller(operatorName()),
      services: { clock: systemClock, ids, vault, linkOrigin: () => config.origin ?? listenOrigin(config) },
      db,
      requestId: ids.make('request'),
    };
    const result = await command({
      ctx,
      args: words.slice(length),
      options,
      connection: store.connection,
      dataDir: config.dataDir,
    });
    process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
  } finally {
    await db.close();
    await store.stop();
  }
}

/** True for errors that the person at the command line can correct: everything but failures of the service. */
const isMistake = (error: unknown): boolean =>
  error instanceof UsageError || (error instanceof ApiError && (error.row.http ?? 500) < 500);

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(isMistake(error) ? 2 : 1);
}
