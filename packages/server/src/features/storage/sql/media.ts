import type { MediaTest } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { firstRow } from '../../../platform/postgres/rows.ts';

/** Which media storage an environment uses, and how its last test went. */

export const mediaOf = (
  db: Queryable,
  env: number,
): Promise<{ provider: string | null; shown: object | null; test: MediaTest | null } | undefined> =>
  firstRow(
    db,
    `SELECT m.provider, m.shown, s.media_test AS test FROM storage s LEFT JOIN media_storages m ON m.no = s.media AND m.env = s.env WHERE s.env = $1`,
    [env],
  );

export const setMedia = (db: Queryable, env: number, media: number, test: MediaTest) =>
  db.query('UPDATE storage SET media = $2, media_test = $3 WHERE env = $1', [
    env,
    media,
    JSON.stringify(test),
  ]);

export const setMediaTest = (db: Queryable, env: number, test: MediaTest) =>
  db.query('UPDATE storage SET media_test = $2 WHERE env = $1', [env, JSON.stringify(test)]);

/** Returns what the environment used; undefined if that was the storage of the service. */
export const clearMedia = (db: Queryable, env: number): Promise<{ provider: string } | undefined> =>
  firstRow(
    db,
    `UPDATE storage s SET media = NULL, media_test = NULL FROM media_storages m WHERE s.env = $1 AND m.no = s.media AND m.env = s.env RETURNING m.provider`,
    [env],
  );
