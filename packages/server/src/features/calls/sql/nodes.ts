import { ApiError } from '@parley/protocol';
import type { RtpCapabilities } from '@parley/protocol';
import type { Queryable } from '../../../platform/postgres/db.ts';

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
  const [row] = await db.query<{ ms: number | null }>(
    `SELECT (extract(epoch FROM min(n.ready_at) - clock_timestamp()) * 1000)::int AS ms FROM media_nodes n
     WHERE ${alive} AND n.state = 'preparing'`,
  );
  const retryAfterMs = Math.min(longestRetryMs, Math.max(1_000, row?.ms ?? defaultRetryMs));
  return new ApiError('calls_unavailable', { retryAfterMs });
}
