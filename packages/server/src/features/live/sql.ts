import type { LiveNode, SocketSession } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { firstRow } from '../../platform/postgres/rows.ts';

/** A node renews its row every `beatMs`; one that was not seen for `alive` is not listed. */
export const beatMs = 10_000;
const alive = `interval '35 seconds'`;
/** A frozen process may come back, so its sockets are closed only after this time. */
const gone = `interval '2 minutes'`;

export const renewNode = (
  db: Queryable,
  node: { id: string; host: string; version: string; roles: readonly string[]; startedAt: Date },
) =>
  db.query(
    `INSERT INTO nodes (id, host, version, roles, started_at, seen_at) VALUES ($1, $2, $3, $4, $5, now())
     ON CONFLICT (id) DO UPDATE SET seen_at = now()`,
    [node.id, node.host, node.version, node.roles, node.startedAt],
  );

export const removeNode = (db: Queryable, id: string) => db.query('DELETE FROM nodes WHERE id = $1', [id]);

/** How many sockets one statement closes. */
const portion = 5_000;

/** Closes the sockets of nodes that stopped without saying so, as of when the node was last seen. Returns how many. */
export async function closeLost(db: Queryable): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    `WITH lost AS (
       UPDATE socket_sessions s SET closed_at = coalesce(x.seen_at, now()) FROM (
         SELECT o.env, o.id, n.seen_at FROM socket_sessions o LEFT JOIN nodes n ON n.id = o.node
         WHERE o.closed_at IS NULL AND coalesce(n.seen_at, o.opened_at) < now() - ${gone} LIMIT ${portion}
       ) x WHERE s.env = x.env AND s.id = x.id AND s.closed_at IS NULL RETURNING 1
     ) SELECT count(*) AS n FROM lost`,
  );
  await db.query(
    `DELETE FROM nodes n WHERE seen_at < now() - interval '1 hour'
       AND NOT EXISTS (SELECT 1 FROM socket_sessions s WHERE s.node = n.id AND s.closed_at IS NULL)`,
  );
  return row!.n;
}

export interface SessionRow {
  env: number;
  id: string;
  user: number;
  node: string;
  address: string;
  sdk: string | null;
  openedAt: number;
  closedAt: number | null;
  closeCode: number | null;
}

/** Writes opened and closed sessions: all that is known of a session is one row. */
export async function saveSessions(db: Queryable, rows: readonly SessionRow[]): Promise<void> {
  const sorted = [...rows].sort((a, b) => a.env - b.env || (a.id < b.id ? -1 : 1));
  await db.query(
    `INSERT INTO socket_sessions AS s (env, id, usr, node, address, sdk, opened_at, closed_at, close_code)
     SELECT env, id, "user", node, left(address, 64), sdk, to_timestamp("openedAt" / 1000), to_timestamp("closedAt" / 1000), "closeCode"
     FROM json_to_recordset($1::json) AS r(env int, id text, "user" bigint, node text, address text, sdk text, "openedAt" float8,
       "closedAt" float8, "closeCode" int)
     ON CONFLICT (env, id) DO UPDATE SET closed_at = excluded.closed_at, close_code = excluded.close_code
     WHERE excluded.closed_at IS NOT NULL`,
    [JSON.stringify(sorted)],
  );
}

/** Closes the node's sessions that are not in `open`, after closes were lost while PostgreSQL was unreachable. */
export const closeOthers = (db: Queryable, node: string, open: readonly string[]) =>
  db.query(
    'UPDATE socket_sessions SET closed_at = now() WHERE node = $1 AND closed_at IS NULL AND NOT (id = ANY($2))',
    [node, open],
  );

const living = `SELECT id FROM nodes WHERE seen_at > now() - ${alive}`;
/** Sockets are counted up to this many per node. */
const mostCounted = 100_000;

export const liveNodes = (db: Queryable, env: number): Promise<LiveNode[]> =>
  db.query<LiveNode>(
    `WITH counted AS (
       SELECT node, count(*) AS n FROM (
         SELECT node FROM socket_sessions WHERE env = $1 AND closed_at IS NULL LIMIT ${mostCounted}) x GROUP BY node)
     SELECT n.id, n.host, n.version, n.roles, n.started_at AS "startedAt", n.seen_at AS "seenAt", coalesce(c.n, 0)::int AS sockets
     FROM nodes n LEFT JOIN counted c ON c.node = n.id WHERE n.seen_at > now() - ${alive} ORDER BY n.started_at, n.id`,
    [env],
  );

/** Sessions, newest first. With `live`, only those that are open on running nodes. */
export function listSessions(
  db: Queryable,
  asked: { env: number; user?: number; node?: string; live: boolean; before: string | null; limit: number },
): Promise<SocketSession[]> {
  const values: unknown[] = [asked.env, asked.limit];
  const add = (value: unknown): string => `$${values.push(value)}`;
  let where = 's.env = $1';
  if (asked.before !== null) where += ` AND s.id < ${add(asked.before)}`;
  if (asked.user !== undefined) where += ` AND s.usr = ${add(asked.user)}`;
  if (asked.node !== undefined) where += ` AND s.node = ${add(asked.node)}`;
  if (asked.live) where += ` AND s.closed_at IS NULL AND s.node IN (${living})`;
  return db.query<SocketSession>(
    `SELECT s.id, u.id AS "userId", s.node, s.address, s.sdk, s.opened_at AS "openedAt", s.closed_at AS "closedAt",
       s.close_code AS "closeCode"
     FROM socket_sessions s JOIN users u ON u.env = s.env AND u.no = s.usr
     WHERE ${where} ORDER BY s.id DESC LIMIT $2`,
    values,
  );
}

export const openSession = (db: Queryable, env: number, user: number, id: string) =>
  firstRow<{ node: string }>(
    db,
    `SELECT node FROM socket_sessions WHERE env = $1 AND id = $2 AND usr = $3 AND closed_at IS NULL`,
    [env, id, user],
  );
