import type { WordList, WordListSummary } from '@parley/protocol';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { anyRow, oneRow } from '../../platform/postgres/rows.ts';

/** Lists change only after `nextVersion` (features/tenancy) locked the environment. */

interface Row extends Omit<WordList, 'entries'> {
  entries: string;
}

const columns = 'name, action, conversations, entries, updated_at AS "updatedAt"';
const view = ({ entries, ...row }: Row): WordList => ({ ...row, entries: JSON.parse(entries) as string[] });

export async function setList(
  tx: Tx,
  env: number,
  { name, action, conversations, entries }: Omit<WordList, 'updatedAt'>,
): Promise<WordList> {
  const [row] = await tx.query<Row>(
    `INSERT INTO word_lists (env, name, action, conversations, entries, updated_at) VALUES ($1, $2, $3, $4, $5, clock_timestamp())
     ON CONFLICT (env, name) DO UPDATE SET action = excluded.action, conversations = excluded.conversations,
       entries = excluded.entries, updated_at = excluded.updated_at
     RETURNING ${columns}`,
    [env, name, action, conversations, JSON.stringify(entries)],
  );
  return view(row!);
}

/** How many lists there are beside this one, and how many entries they have. */
export const otherLists = (tx: Tx, env: number, name: string): Promise<{ lists: number; entries: number }> =>
  oneRow(
    tx,
    `SELECT count(*)::int AS lists, coalesce(sum(json_array_length(entries::json)), 0)::int AS entries
     FROM word_lists WHERE env = $1 AND name <> $2`,
    [env, name],
  );

export async function findList(db: Queryable, env: number, name: string): Promise<WordList | undefined> {
  const [row] = await db.query<Row>(`SELECT ${columns} FROM word_lists WHERE env = $1 AND name = $2`, [
    env,
    name,
  ]);
  return row && view(row);
}

export const allLists = async (db: Queryable, env: number): Promise<WordList[]> =>
  (await db.query<Row>(`SELECT ${columns} FROM word_lists WHERE env = $1 ORDER BY name`, [env])).map(view);

export const listSummaries = (db: Queryable, env: number, after: string, limit: number) =>
  db.query<WordListSummary>(
    `SELECT name, action, conversations, json_array_length(entries::json) AS entries, updated_at AS "updatedAt"
     FROM word_lists WHERE env = $1 AND name > $2 ORDER BY name LIMIT $3`,
    [env, after, limit],
  );

export const deleteList = (tx: Tx, env: number, name: string): Promise<boolean> =>
  anyRow(tx, 'DELETE FROM word_lists WHERE env = $1 AND name = $2 RETURNING 1', [env, name]);
