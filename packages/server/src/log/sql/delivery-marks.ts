import type { Queryable } from '../../platform/postgres/db.ts';

/** Moves delivery marks forward. A mark without a seq in the answer must be tried again; `ord` counts from 1. */
export const markDelivered = (
  db: Queryable,
  marks: readonly { env: number; cid: string; user: number; seq: number }[],
): Promise<{ ord: number; seq: number | null }[]> =>
  db.query<{ ord: number; seq: number | null }>(
    'SELECT ord, delivered_seq AS seq FROM mark_delivered($1, $2, $3, $4)',
    [marks.map((m) => m.env), marks.map((m) => m.cid), marks.map((m) => m.user), marks.map((m) => m.seq)],
  );
