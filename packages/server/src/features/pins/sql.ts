import type { Queryable } from '../../platform/postgres/db.ts';
import { anyRow } from '../../platform/postgres/rows.ts';

/** How pins are kept. All of these need the conversation's lock, so that counts are exact. */

interface Place {
  env: number;
  conv: number;
  /** The seq of the message. */
  message: number;
}

/** Returns false if the conversation has `most` pins already. The message must not be pinned. */
export const addPin = (
  tx: Queryable,
  { env, conv, message }: Place,
  pin: { by: number | null; at: string },
  most: number,
): Promise<boolean> =>
  anyRow(
    tx,
    `INSERT INTO pins (env, conv, message, by, at) SELECT $1, $2, $3, $4, $5
     WHERE (SELECT count(*) FROM pins WHERE conv = $2 AND env = $1) < $6 RETURNING 1`,
    [env, conv, message, pin.by, pin.at, most],
  );

/** Unpins messages, and returns how many were pinned. */
export async function dropPins(
  tx: Queryable,
  env: number,
  conv: number,
  messages: readonly number[],
): Promise<number> {
  const rows = await tx.query(
    'DELETE FROM pins WHERE conv = $2 AND message = ANY($3) AND env = $1 RETURNING 1',
    [env, conv, messages],
  );
  return rows.length;
}
