import type { Queryable } from '../../platform/postgres/db.ts';

/** Moves the store's clock on. Returns its newest mark and its epoch. */
export async function beatStore(
  db: Queryable,
  mark: string | null,
  epoch: string,
): Promise<{ mark: string; epoch: string }> {
  const [row] = await db.query<{ mark: string; epoch: string }>(
    'SELECT o_mark AS mark, o_epoch AS epoch FROM store_beat($1, $2)',
    [mark, epoch],
  );
  return row!;
}
