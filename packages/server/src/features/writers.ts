import { awaitWriters } from '../log/sql/writers.ts';
import type { Context } from './context.ts';

/** Waits, once the operation is committed, until no message or edit is being committed any more that did not see it. */
export async function afterWriters(ctx: Pick<Context, 'db' | 'afterwards'>): Promise<void> {
  if (ctx.afterwards) ctx.afterwards(awaitWriters);
  else await awaitWriters(ctx.db);
}
