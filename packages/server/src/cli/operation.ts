import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { operations } from '@parley/protocol';
import type { Input } from '@parley/protocol';
import type { EnvironmentContext } from '../features/context.ts';
import { commands } from '../features/commands.ts';
import type { CommandName } from '../features/commands.ts';
import { requireEnvironment } from '../features/tenancy/access.ts';
import { readCommand } from '../transport/input.ts';
import { UsageError } from './command.ts';
import type { Argument, StoreLine } from './command.ts';

/** What commands that run an operation of the protocol share. */

export const environmentId: Argument = { name: 'env id', text: 'the environment, env_…' };

/** Only the fields that were given. */
export const given = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/**
 * Checks the fields by the operation's schemas and runs the operation. Fields arrive as text; the schemas say which
 * types they stand for.
 */
export function run<N extends CommandName>(
  name: N,
  ctx: Parameters<(typeof commands)[N]>[0],
  fields: Record<string, unknown>,
): ReturnType<(typeof commands)[N]> {
  const input = readCommand(operations[name], given(fields)) as Input<N>;
  const handler = commands[name] as (ctx: unknown, input: unknown) => ReturnType<(typeof commands)[N]>;
  return handler(ctx, input);
}

/** The context of an operation on the environment that the command line names. */
export async function inEnvironment({ ctx, args }: StoreLine): Promise<EnvironmentContext> {
  return { ...ctx, env: await requireEnvironment(ctx, ctx.db, args['env id']!) };
}

export interface Page {
  data: unknown[];
  nextCursor?: string | null;
}

const mostPages = 50;

export async function all(read: (cursor: string | undefined) => Promise<unknown>): Promise<unknown[]> {
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

/** npm runs the command in the repository, wherever it was entered. */
export const fromHere = (env: NodeJS.ProcessEnv, path: string): string =>
  resolve(env['INIT_CWD'] ?? '', path);

/** Error messages do not repeat the content of the file. */
export async function readJson(env: NodeJS.ProcessEnv, path: string): Promise<unknown> {
  const text = await readFile(fromHere(env, path), 'utf8').catch(() => {
    throw new UsageError(`The file ${path} cannot be read.`);
  });
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`The file ${path} is not JSON.`);
  }
}
