import type { Job } from '../../../platform/jobs/sql/jobs.ts';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { arraysOf } from '../../../platform/postgres/rows.ts';
import type { PushProviderName } from '../../../platform/push/port.ts';
import { unreadCount } from '../../../log/unread/sql/counters.ts';
import { conversationOf, deactivatedAt, memberOf, membershipsOf, userOf } from '../../sql/lookups.ts';
import type { PushContent, PushedCall } from '../notification.ts';
import { envOf, sendQueue } from '../notify.ts';
import type { CallRef, SendData } from '../notify.ts';
import { author, levelColumns, memberWaits, notBlocked, pushMode } from './planning.ts';
import type { Levelled, MessageRef } from './planning.ts';

export interface Due {
  env: number;
  device: number;
  usr: number;
  provider: PushProviderName;
  token: string;
  voipToken: string | null;
  registeredAt: string;
  content: PushContent;
}

export async function loadDue(db: Queryable, jobs: readonly Job[]): Promise<Map<number, Due>> {
  const rows = await db.query<Due & { job: number }>(
    `SELECT u.ord::int - 1 AS job, d.env, d.no AS device, d.usr, d.provider, d.token, d.voip_token AS "voipToken",
       d.registered_at AS "registeredAt", coalesce(e.settings ->> 'pushContent', 'full') AS content
     FROM unnest($1::int[], $2::bigint[], $3::bigint[]) WITH ORDINALITY u(env, device, usr, ord)
     JOIN environments e ON e.no = u.env AND e.status = 'active' AND ${pushMode} = 'providers'
     JOIN push_devices d ON d.env = u.env AND d.no = u.device AND d.usr = u.usr
     CROSS JOIN ${userOf('u.env', 'u.usr')} r WHERE ${deactivatedAt('r')} IS NULL`,
    [
      jobs.map((j) => envOf(j.key, j.data as SendData)),
      jobs.map((j) => j.ref),
      jobs.map((j) => (j.data as SendData).usr),
    ],
  );
  return new Map(rows.map((row) => [row.job, row]));
}

export interface Sending extends MessageRef {
  /** The index of the job, which comes back in the answer. */
  i: number;
  env: number;
  usr: number;
  device: number;
  /** The number and the key of the job. */
  no: number;
  key: number;
}

/** Those whose device was sent the same message or a later one of its conversation, or whose push is under way. */
export const sentOrUnderWay = (db: Queryable, asked: readonly Sending[]): Promise<{ i: number }[]> =>
  db.query<{ i: number }>(
    `SELECT u.i FROM unnest($1::int[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
       u(i, env, device, conv, seq, no, key, usr)
     WHERE EXISTS (SELECT 1 FROM push_attempts a WHERE a.device = u.device AND a.conv = u.conv AND a.seq >= u.seq
         AND a.result = 'sent' AND a.env = u.env AND a.usr = u.usr)
       OR EXISTS (SELECT 1 FROM jobs j WHERE j.queue = '${sendQueue.name}' AND j.key = u.key AND j.leased
         AND j.run_at > clock_timestamp() AND j.no < u.no AND j.ref = u.device
         AND (j.data ->> 'conv')::bigint = u.conv AND (j.data ->> 'seq')::bigint = u.seq)`,
    arraysOf(asked, 'i', 'env', 'device', 'conv', 'seq', 'no', 'key', 'usr'),
  );

/** The calls that still ring, or were missed; `i` is the index in `asked`. */
export const ringingCalls = (db: Queryable, asked: readonly ({ env: number; usr: number } & CallRef)[]) =>
  db.query<PushedCall & { i: number }>(
    `SELECT u.ord::int - 1 AS i, k.id AS "callId", k.kind, c.id AS "conversationId", c.type AS "conversationType",
       c.name AS "conversationName", r.id AS "callerId", r.name AS "callerName"
     FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::text[]) WITH ORDINALITY u(env, usr, call, state, ord)
     CROSS JOIN LATERAL (SELECT * FROM calls WHERE no = u.call AND env = u.env LIMIT 1) k
     CROSS JOIN LATERAL (SELECT state FROM call_participants WHERE call = k.no AND usr = u.usr AND env = u.env LIMIT 1) p
     CROSS JOIN ${conversationOf('k.env', 'k.conv')} c
     CROSS JOIN ${userOf('k.env', 'k.created_by')} r
     WHERE c.deleted_at IS NULL AND p.state = u.state`,
    [
      ...arraysOf(asked, 'env', 'usr', 'call'),
      asked.map((a) => (a.type === 'incoming' ? 'ringing' : 'missed')),
    ],
  );

interface StillWaiting extends Levelled {
  i: number;
  type: 'direct' | 'group';
  name: string | null;
}

/** The users who may still wait for a message, with its conversation; `i` is the index in `asked`. */
export const stillWaiting = (db: Queryable, asked: readonly ({ env: number; usr: number } & MessageRef)[]) =>
  db.query<StillWaiting>(
    `SELECT u.ord::int - 1 AS i, c.type, c.name, ${levelColumns}
       FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY u(env, usr, conv, seq, ord)
       JOIN environments e ON e.no = u.env
       CROSS JOIN ${conversationOf('u.env', 'u.conv')} c
       CROSS JOIN ${memberOf('u.env', 'u.conv', 'u.usr')} m
       CROSS JOIN ${userOf('u.env', 'u.usr')} r
       WHERE ${memberWaits} AND ${notBlocked('u.env', 'u.usr', author)}`,
    arraysOf(asked, 'env', 'usr', 'conv', 'seq'),
  );

/** The users' unread messages over all their conversations, in one query. */
export async function loadBadges(db: Queryable, rows: readonly Due[]): Promise<Map<string, number>> {
  const users = [...new Map(rows.map((r) => [r.usr, r])).values()];
  const found = await db.query<{ env: number; usr: number; unread: number }>(
    `SELECT m.env, m.usr, sum(${unreadCount('c', 'm')})::bigint AS unread
     FROM unnest($1::int[], $2::bigint[]) u(env, usr)
     CROSS JOIN ${membershipsOf('u.env', 'u.usr')} m CROSS JOIN ${conversationOf('m.env', 'm.conv')} c
     WHERE c.deleted_at IS NULL GROUP BY 1, 2`,
    arraysOf(users, 'env', 'usr'),
  );
  return new Map(found.map((r) => [`${r.env} ${r.usr}`, r.unread]));
}
