import { limits } from '@parley/protocol';
import type { Input, Output, WordList } from '@parley/protocol';
import { invalid, limitReached, notFound } from '../../platform/api-errors.ts';
import type { Tx } from '../../platform/postgres/db.ts';
import { record } from '../audit/operations.ts';
import type { Context } from '../context.ts';
import { isString, listPage } from '../pages.ts';
import { nextVersion } from '../tenancy/sql/environments.ts';
import { entryProblem } from './automaton.ts';
import * as sql from './sql.ts';

/** Word lists (words.md). */

export async function set(ctx: Context, input: Input<'wordLists.set'>): Promise<WordList> {
  for (const entry of input.entries) {
    const problem = entryProblem(entry);
    if (problem !== null) throw invalid('entries', `The entry ${JSON.stringify(entry)} ${problem}.`);
  }
  return ctx.db.tx(async (tx) => {
    const env = ctx.env.no;
    await nextVersion(tx, env, 'words');
    const others = await sql.otherLists(tx, env, input.name);
    if (others.lists >= limits.wordLists)
      throw limitReached(
        'name',
        `An environment has at most ${limits.wordLists} word lists.`,
        limits.wordLists,
      );
    if (others.entries + input.entries.length > limits.words)
      throw limitReached(
        'entries',
        `The lists of an environment have at most ${limits.words} entries.`,
        limits.words,
      );
    const before = await sql.findList(tx, env, input.name);
    const list = await sql.setList(tx, env, input);
    await note(ctx, tx, 'wordLists.set', input.name, before, list);
    return list;
  });
}

export async function remove(ctx: Context, { name }: Input<'wordLists.delete'>): Promise<void> {
  await ctx.db.tx(async (tx) => {
    await nextVersion(tx, ctx.env.no, 'words');
    const before = await sql.findList(tx, ctx.env.no, name);
    if (await sql.deleteList(tx, ctx.env.no, name)) await note(ctx, tx, 'wordLists.delete', name, before);
  });
}

/** The audit log has how many entries a list had and has, not which. */
const note = (
  ctx: Context,
  tx: Tx,
  action: 'wordLists.set' | 'wordLists.delete',
  target: string,
  before?: WordList,
  after?: WordList,
): Promise<void> => {
  const brief = (list?: WordList) =>
    list && { action: list.action, conversations: list.conversations, entries: list.entries.length };
  return record(ctx, tx, { action, target, before: brief(before), after: brief(after) });
};

export async function get(ctx: Context, { name }: Input<'wordLists.get'>): Promise<WordList> {
  const list = await sql.findList(ctx.db, ctx.env.no, name);
  if (!list) throw notFound('Word list');
  return list;
}

export const list = (ctx: Context, input: Input<'wordLists.list'>): Promise<Output<'wordLists.list'>> =>
  listPage(
    input,
    isString,
    (after, most) => sql.listSummaries(ctx.db, ctx.env.no, after ?? '', most),
    (row) => row.name,
    (row) => row,
  );
