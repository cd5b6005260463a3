import { ApiError } from '@parley/protocol';
import type { RtpCapabilities } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { firstValue, oneValue } from '../../../platform/postgres/rows.ts';
import type { CallRow } from '../sql.ts';

/** Which media nodes exist (media_nodes), and which of them takes a call. */

export interface ChosenNode {
  id: string;
  rtpCapabilities: RtpCapabilities;
}

/** A node with a higher load takes no further call, because its workers would answer slowly. */
const fullLoad = 0.85;
/** The load that a call counts for before its media shows in the measured load. */
const callLoad = 0.005;

const alive = 'n.lease_until > clock_timestamp()';

/** The node with the most room; null if there is none. */
export async function chooseNode(db: Queryable, except: string | null = null): Promise<ChosenNode | null> {
  const [row] = await db.query<ChosenNode>(
    `SELECT n.id, n.rtp_capabilities AS "rtpCapabilities" FROM media_nodes n
     WHERE ${alive} AND n.state = 'ready' AND n.load < ${fullLoad} AND n.id IS DISTINCT FROM $1
     ORDER BY n.load + ${callLoad} * (SELECT count(*) FROM calls k WHERE k.node = n.id AND k.status <> 'ended'), n.id LIMIT 1`,
    [except],
  );
  return row ?? null;
}

/** The node that hosts a call. It may be draining, because its calls go on until they are moved. */
export async function findNode(db: Queryable, id: string | null): Promise<ChosenNode | null> {
  const [row] = await db.query<ChosenNode>(
    `SELECT n.id, n.rtp_capabilities AS "rtpCapabilities" FROM media_nodes n
     WHERE n.id = $1 AND ${alive} AND n.state IN ('ready', 'draining')`,
    [id],
  );
  return row ?? null;
}

const defaultRetryMs = 5_000;
const longestRetryMs = 600_000;

/** The error says how long to wait: as long as a node that is being prepared still needs. */
export async function callsUnavailable(db: Queryable): Promise<ApiError> {
  const ms = await oneValue<number | null>(
    db,
    `SELECT (extract(epoch FROM min(n.ready_at) - clock_timestamp()) * 1000)::int AS ms FROM media_nodes n
     WHERE ${alive} AND n.state = 'preparing'`,
  );
  const retryAfterMs = Math.min(longestRetryMs, Math.max(1_000, ms ?? defaultRetryMs));
  return new ApiError('calls_unavailable', { retryAfterMs });
}

/** How many calls one look finds. Limits stand in the texts, so that plans can count on them. */
const mostOrphans = 500;

/**
 * The live calls of a node that is leaving or, without one, those whose node is gone. `+ 0` keeps the planner from walking
 * over the calls of all times by their number.
 */
export const orphans = (db: Queryable, node: string | null): Promise<{ env: number; no: number }[]> =>
  db.query(
    node === null
      ? `SELECT k.env, k.no FROM calls k LEFT JOIN media_nodes n ON n.id = k.node AND n.lease_until > clock_timestamp() AND n.state <> 'failed'
         WHERE k.status <> 'ended' AND n.id IS NULL ORDER BY k.env, k.no LIMIT ${mostOrphans}`
      : `SELECT k.env, k.no FROM calls k WHERE k.status <> 'ended' AND k.node = $1 ORDER BY k.no + 0 LIMIT ${mostOrphans}`,
    node === null ? [] : [node],
  );

/** Returns true if the call has had no node for longer than these seconds. */
export async function markUnhosted(
  tx: Queryable,
  env: number,
  no: number,
  seconds: number,
): Promise<boolean> {
  const over = await firstValue<boolean>(
    tx,
    `UPDATE calls SET unhosted_since = coalesce(unhosted_since, clock_timestamp()) WHERE env = $1 AND no = $2
         RETURNING unhosted_since < clock_timestamp() - $3 * interval '1 second' AS over`,
    [env, no, seconds],
  );
  return over ?? false;
}

export async function place(tx: Queryable, call: CallRow, node: string): Promise<CallRow> {
  await tx.query(
    'UPDATE calls SET node = $3, epoch = epoch + 1, unhosted_since = NULL WHERE env = $1 AND no = $2',
    [call.env, call.no, node],
  );
  return { ...call, node, epoch: call.epoch + 1 };
}

export interface NodeReport {
  id: string;
  state: string;
  detail: string;
  load: number;
  readyInMs: number | null;
  rtpCapabilities: object | null;
}

/** Announces a node, and keeps it alive for the seconds of its lease. */
export const reportNode = (db: Queryable, node: NodeReport, leaseSeconds: number) =>
  db.query(
    `INSERT INTO media_nodes AS n (id, state, detail, load, ready_at, rtp_capabilities, lease_until)
       VALUES ($1, $2, $3, $4, clock_timestamp() + $5 * interval '1 millisecond', $6, clock_timestamp() + $7 * interval '1 second')
       ON CONFLICT (id) DO UPDATE SET state = excluded.state, detail = excluded.detail, load = excluded.load, ready_at = excluded.ready_at,
         rtp_capabilities = excluded.rtp_capabilities, lease_until = excluded.lease_until`,
    [
      node.id,
      node.state,
      node.detail,
      node.load,
      node.readyInMs,
      node.rtpCapabilities === null ? null : JSON.stringify(node.rtpCapabilities),
      leaseSeconds,
    ],
  );

export const removeNode = (db: Queryable, id: string) =>
  db.query('DELETE FROM media_nodes WHERE id = $1', [id]);

/** The calls of these that the node still hosts, each with the users who are in it and their devices. */
export async function hostedCalls(
  db: Queryable,
  calls: readonly number[],
  node: string,
): Promise<Map<number, Map<number, string | null>>> {
  const rows = await db.query<{ no: number; users: number[]; devices: (string | null)[] }>(
    `SELECT k.no, p.users, p.devices FROM calls k CROSS JOIN LATERAL (
       SELECT coalesce(array_agg(usr), '{}') AS users, coalesce(array_agg(device), '{}') AS devices FROM call_participants
       WHERE call = k.no AND env = k.env AND state IN ('joining', 'joined')
     ) p WHERE k.no = ANY($1) AND k.node = $2 AND k.status <> 'ended'`,
    [calls, node],
  );
  return new Map(
    rows.map(({ no, users, devices }) => [no, new Map(users.map((user, i) => [user, devices[i] ?? null]))]),
  );
}
