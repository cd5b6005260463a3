import type { Call } from '@parley/protocol';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { column, firstValue, oneValue, valuesOf } from '../../platform/postgres/rows.ts';
import { conversationOf, userOf } from '../sql/lookups.ts';
import { parseMetadata } from '../metadata.ts';
import type { CallState } from './call-state.ts';
import { secondsBetween } from './participant-state.ts';
import type { Participant } from './participant-state.ts';

/** How calls are kept (migrations/0030). */

export interface CallRow extends CallState {
  env: number;
  no: number;
  id: string;
  conv: number;
  cid: string;
  createdById: string;
  metadata: string | null;
  createdAt: string;
  node: string | null;
  epoch: number;
}

/** A call that this transaction has locked, and the time of the lock, which everything that it does gets. */
export interface LockedCall {
  call: CallRow;
  at: string;
}

export const viewCall = (call: CallRow): Call => ({
  id: call.id,
  conversationId: call.cid,
  kind: call.kind,
  status: call.status,
  createdBy: call.createdById,
  createdAt: call.createdAt,
  answeredAt: call.answeredAt,
  endedAt: call.endedAt,
  endReason: call.endReason,
  durationSeconds: secondsBetween(call.answeredAt, call.endedAt),
  metadata: parseMetadata(call.metadata),
  participants: call.participants.map(({ userId, state, invitedAt, joinedAt, leftAt }) => ({
    userId,
    state,
    invitedAt,
    joinedAt,
    leftAt,
  })),
});

const columns = `k.env, k.no, k.id, k.conv, c.id AS cid, c.type = 'direct' AS direct, k.kind, k.status, k.created_by AS "createdBy",
  u.id AS "createdById", k.end_reason AS "endReason", k.metadata, k.created_at AS "createdAt", k.answered_at AS "answeredAt",
  k.ended_at AS "endedAt", k.node, k.epoch`;
const joined = `CROSS JOIN ${conversationOf('k.env', 'k.conv')} c CROSS JOIN ${userOf('k.env', 'k.created_by')} u`;

type BareCall = Omit<CallRow, 'participants'>;

async function withParticipants(db: Queryable, rows: readonly BareCall[]): Promise<CallRow[]> {
  if (rows.length === 0) return [];
  const found = await db.query<Participant & { call: number }>(
    `SELECT p.call, p.usr, u.id AS "userId", p.state, p.invited_at AS "invitedAt", p.joined_at AS "joinedAt", p.left_at AS "leftAt",
       p.stay_from AS "stayFrom", p.seconds, p.device, p.session, p.gone_at AS "goneAt", p.pushed
     FROM call_participants p JOIN users u ON u.env = p.env AND u.no = p.usr
     WHERE p.env = $1 AND p.call = ANY($2) ORDER BY p.invited_at, u.id`,
    [rows[0]!.env, rows.map((r) => r.no)],
  );
  const of = Map.groupBy(found, (p) => p.call);
  return rows.map((row) => ({ ...row, participants: (of.get(row.no) ?? []).map(({ call: _, ...p }) => p) }));
}

export async function findCall(db: Queryable, env: number, id: string): Promise<CallRow | undefined> {
  const rows = await db.query<BareCall>(
    `SELECT ${columns} FROM calls k ${joined} WHERE k.env = $1 AND k.id = $2`,
    [env, id],
  );
  return (await withParticipants(db, rows))[0];
}

/** Locks the call until the transaction ends. */
export async function lockCall(tx: Tx, env: number, which: string | number): Promise<LockedCall | undefined> {
  const key = typeof which === 'string' ? 'k.id' : 'k.no';
  const [row] = await tx.query<BareCall & { at: string }>(
    `SELECT ${columns}, clock_timestamp()::timestamptz(3) AS at FROM calls k ${joined}
     WHERE k.env = $1 AND ${key} = $2 FOR NO KEY UPDATE OF k`,
    [env, which],
  );
  if (!row) return undefined;
  const { at, ...bare } = row;
  const [call] = await withParticipants(tx, [bare]);
  // The transaction that had the lock before may have read a later time from the clock.
  const latest = [bare.createdAt, bare.answeredAt, at].reduce<string>((a, b) => (b && b > a ? b : a), at);
  return { call: call!, at: latest };
}

export const liveCallOf = (db: Queryable, env: number, conv: number) =>
  firstValue<number>(db, `SELECT no FROM calls WHERE env = $1 AND conv = $2 AND status <> 'ended'`, [
    env,
    conv,
  ]);

/** The live calls in which a user rings or takes part, in the order in which they are locked. */
export const liveCallsWith = (db: Queryable, env: number, user: number) =>
  column<number>(
    db,
    `SELECT call FROM call_participants WHERE env = $1 AND usr = $2 AND state IN ('ringing', 'joining', 'joined') ORDER BY call`,
    [env, user],
  );

/** Which of the users are in a call. */
export const usersInCalls = async (
  db: Queryable,
  env: number,
  users: readonly number[],
): Promise<Set<number>> =>
  new Set(
    await column<number>(
      db,
      `SELECT DISTINCT usr FROM call_participants WHERE env = $1 AND usr = ANY($2) AND state IN ('joining', 'joined')`,
      [env, users],
    ),
  );

export async function insertCall(tx: Tx, call: Omit<CallRow, 'no'>): Promise<CallRow> {
  const no = await oneValue<number>(
    tx,
    `INSERT INTO calls (env, id, conv, kind, status, created_by, end_reason, metadata, created_at, answered_at, ended_at, node)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING no`,
    [
      ...valuesOf(call, 'env', 'id', 'conv', 'kind', 'status', 'createdBy', 'endReason', 'metadata'),
      ...valuesOf(call, 'createdAt', 'answeredAt', 'endedAt', 'node'),
    ],
  );
  const saved = { ...call, no };
  await saveParticipants(tx, saved, call.participants);
  return saved;
}

/** Writes what differs between two states of a call. */
export async function saveCall(tx: Tx, before: CallRow, after: CallRow): Promise<void> {
  const known = new Set(before.participants);
  await saveParticipants(
    tx,
    after,
    after.participants.filter((p) => !known.has(p)),
  );
  if (before.status === after.status) return;
  await tx.query(
    `UPDATE calls SET status = $3, end_reason = $4, answered_at = $5, ended_at = $6 WHERE env = $1 AND no = $2`,
    valuesOf(after, 'env', 'no', 'status', 'endReason', 'answeredAt', 'endedAt'),
  );
}

async function saveParticipants(
  tx: Tx,
  { env, no }: { env: number; no: number },
  changed: readonly Participant[],
): Promise<void> {
  if (changed.length === 0) return;
  await tx.query(
    `INSERT INTO call_participants (env, call, usr, state, invited_at, joined_at, left_at, stay_from, seconds, device, session, gone_at, pushed)
     SELECT $1, $2, p.usr, p.state, p."invitedAt", p."joinedAt", p."leftAt", p."stayFrom", p.seconds, p.device, p.session, p."goneAt", p.pushed
     FROM json_to_recordset($3::json) AS p(usr bigint, state text, "invitedAt" timestamptz, "joinedAt" timestamptz, "leftAt" timestamptz,
       "stayFrom" timestamptz, seconds int, device text, session text, "goneAt" timestamptz, pushed boolean)
     ON CONFLICT (call, usr, env) DO UPDATE SET state = excluded.state, joined_at = excluded.joined_at, left_at = excluded.left_at,
       stay_from = excluded.stay_from, seconds = excluded.seconds, device = excluded.device, session = excluded.session,
       gone_at = excluded.gone_at, pushed = excluded.pushed`,
    [env, no, JSON.stringify(changed)],
  );
}

export interface ListFilter {
  env: number;
  conv: number | null;
  /** Only calls that this user took or takes part in. */
  user: number | null;
  /** Only calls of conversations that this user is a member of. */
  member: number | null;
  live: boolean | undefined;
  before: number;
  limit: number;
}

/** Calls, newest first. The SQL text depends on the filters, so that each combination has its own plan. */
export async function listCalls(db: Queryable, filter: ListFilter): Promise<CallRow[]> {
  const where = ['k.env = $1', 'k.no < $2'];
  const values: unknown[] = [filter.env, filter.before, filter.limit];
  const value = (v: unknown): string => `$${values.push(v)}`;
  if (filter.live !== undefined) where.push(filter.live ? `k.status <> 'ended'` : `k.status = 'ended'`);
  if (filter.conv !== null) where.push(`k.conv = ${value(filter.conv)}`);
  if (filter.user !== null)
    where.push(
      `EXISTS (SELECT 1 FROM call_participants p WHERE p.env = k.env AND p.usr = ${value(filter.user)} AND p.call = k.no)`,
    );
  const newest = `SELECT k.* FROM calls k WHERE ${where.join(' AND ')}`;
  const source =
    filter.member === null
      ? `${newest} ORDER BY k.no DESC LIMIT $3`
      : `SELECT k.* FROM members m CROSS JOIN ${conversationOf('m.env', 'm.conv')} x
         CROSS JOIN LATERAL (${newest} AND k.conv = m.conv ORDER BY k.no DESC LIMIT $3) k
         WHERE m.env + 0 = $1 AND m.usr = ${value(filter.member)} AND x.deleted_at IS NULL ORDER BY k.no DESC LIMIT $3`;
  const rows = await db.query<BareCall>(
    `SELECT ${columns} FROM (${source}) k ${joined} ORDER BY k.no DESC`,
    values,
  );
  return withParticipants(db, rows);
}

/** Participants who still ring, and of whom no socket confirmed the call. From now on they count as pushed to. */
export const takeUnheard = (tx: Tx, call: { env: number; no: number }) =>
  column<number>(
    tx,
    `UPDATE call_participants SET pushed = true
     WHERE env = $1 AND call = $2 AND state = 'ringing' AND NOT pushed AND NOT reached RETURNING usr`,
    [call.env, call.no],
  );

/** Notes that sockets of these users got the incoming call. */
export async function noteReached(
  db: Queryable,
  confirmed: readonly { env: number; user: number; about: string }[],
): Promise<void> {
  const calls = Map.groupBy(confirmed, (one) => `${one.env} ${one.about}`);
  for (const some of calls.values())
    await db.query(
      `UPDATE call_participants SET reached = true WHERE call = (SELECT no FROM calls WHERE env = $1 AND id = $2)
         AND usr = ANY($3) AND env = $1 AND state = 'ringing' AND NOT reached`,
      [some[0]!.env, some[0]!.about, some.map((one) => one.user)],
    );
}
