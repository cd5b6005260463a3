import type { Job } from '../../platform/jobs/jobs.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { PushNotification, PushProviderName } from '../../platform/push/port.ts';
import { unreadCount } from '../conversations/sql.ts';
import { conversationOf, memberOf, membershipsOf, userOf } from '../lookups.ts';
import { usersByNumber } from '../users/sql.ts';
import { callNotification, notificationOf } from './notification.ts';
import type { PushContent, PushedCall } from './notification.ts';
import { envOf, pushMode, sendQueue } from './notify.ts';
import type { CallRef, MessageRef, SendData } from './notify.ts';
import { isNews, loadMessages, memberWaits, placeKey } from './plan.ts';

/** What is read before pushes are sent: devices, notifications and badges, and which pushes are no longer needed. */

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
     JOIN environments e ON e.no = u.env AND e.status = 'active' AND ${pushMode('e')} = 'providers'
     JOIN push_devices d ON d.env = u.env AND d.no = u.device AND d.usr = u.usr
     JOIN users r ON r.env = u.env AND r.no = u.usr AND r.deactivated_at IS NULL`,
    [
      jobs.map((j) => envOf(j.key, j.data as SendData)),
      jobs.map((j) => j.ref),
      jobs.map((j) => (j.data as SendData).usr),
    ],
  );
  return new Map(rows.map((row) => [row.job, row]));
}

/**
 * The jobs whose device was sent the same message or a later one of its conversation, which an older one would
 * replace; and those of which there is another, in this batch or under way, because two found that a message must be
 * pushed.
 */
export async function findSuperseded(
  db: Queryable,
  jobs: readonly Job[],
  due: ReadonlyMap<number, Due>,
): Promise<Set<number>> {
  const asked = [...due].flatMap(([i, { env, usr, device }]) => {
    const data = jobs[i]!.data as SendData;
    return 'conv' in data ? [{ i, env, usr, device, conv: data.conv, seq: data.seq }] : [];
  });
  const found = new Set<number>();
  if (asked.length === 0) return found;
  const rows = await db.query<{ i: number }>(
    `SELECT u.i FROM unnest($1::int[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
       u(i, env, device, conv, seq, no, key, usr)
     WHERE EXISTS (SELECT 1 FROM push_attempts a WHERE a.device = u.device AND a.conv = u.conv AND a.seq >= u.seq
         AND a.result = 'sent' AND a.env = u.env AND a.usr = u.usr)
       OR EXISTS (SELECT 1 FROM jobs j WHERE j.queue = '${sendQueue.name}' AND j.key = u.key AND j.leased
         AND j.run_at > clock_timestamp() AND j.no < u.no AND j.ref = u.device
         AND (j.data ->> 'conv')::bigint = u.conv AND (j.data ->> 'seq')::bigint = u.seq)`,
    [
      asked.map((a) => a.i),
      asked.map((a) => a.env),
      asked.map((a) => a.device),
      asked.map((a) => a.conv),
      asked.map((a) => a.seq),
      asked.map((a) => jobs[a.i]!.no),
      asked.map((a) => jobs[a.i]!.key),
      asked.map((a) => a.usr),
    ],
  );
  for (const { i } of rows) found.add(i);
  // A later attempt at an older message gives way to a newer one that goes out in the same moment.
  const newest = new Map<string, number>();
  for (const { device, conv, seq } of asked)
    newest.set(`${device} ${conv}`, Math.max(seq, newest.get(`${device} ${conv}`) ?? 0));
  for (const { i, device, conv, seq } of asked)
    if (jobs[i]!.claims > 1 && seq < newest.get(`${device} ${conv}`)!) found.add(i);
  return found;
}

/** The notification of each job with the user's badge; missing if there is nothing left to push. */
export async function loadNotifications(
  db: Queryable,
  jobs: readonly Job[],
  due: ReadonlyMap<number, Due>,
  now: number,
): Promise<Map<number, (badge: number) => PushNotification>> {
  const shown = new Map<number, (badge: number) => PushNotification>();
  const messages: AskedMessage[] = [];
  const calls: AskedCall[] = [];
  for (const [job, { env, usr, content }] of due) {
    const data = jobs[job]!.data as SendData;
    if ('conv' in data) messages.push({ job, env, usr, content, conv: data.conv, seq: data.seq });
    else if ('call' in data) calls.push({ ...data, job, env, usr, content });
  }
  if (messages.length > 0) await showMessages(db, messages, now, shown);
  if (calls.length > 0) await showCalls(db, calls, now, shown);
  return shown;
}

interface Asked {
  job: number;
  env: number;
  usr: number;
  content: PushContent;
}
type AskedMessage = Asked & MessageRef;
type AskedCall = Asked & CallRef;

/** A call that was answered, declined or cancelled meanwhile rings no more. */
async function showCalls(
  db: Queryable,
  asked: readonly AskedCall[],
  now: number,
  shown: Map<number, (badge: number) => PushNotification>,
): Promise<void> {
  const calls = await db.query<PushedCall & { i: number }>(
    `SELECT u.ord::int - 1 AS i, k.id AS "callId", k.kind, c.id AS "conversationId", c.type AS "conversationType",
       c.name AS "conversationName", r.id AS "callerId", r.name AS "callerName"
     FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::text[]) WITH ORDINALITY u(env, usr, call, state, ord)
     JOIN calls k ON k.no = u.call AND k.env = u.env
     JOIN call_participants p ON p.call = k.no AND p.usr = u.usr AND p.env = u.env AND p.state = u.state
     CROSS JOIN ${conversationOf('k.env', 'k.conv')} c
     CROSS JOIN ${userOf('k.env', 'k.created_by')} r
     WHERE c.deleted_at IS NULL`,
    [
      asked.map((a) => a.env),
      asked.map((a) => a.usr),
      asked.map((a) => a.call),
      asked.map((a) => (a.type === 'incoming' ? 'ringing' : 'missed')),
    ],
  );
  for (const { i, ...call } of calls) {
    const { job, type, expiresAt, content } = asked[i]!;
    const ttlSeconds = Math.ceil((Date.parse(expiresAt) - now) / 1_000);
    if (ttlSeconds > 0) shown.set(job, (badge) => callNotification(call, type, ttlSeconds, badge, content));
  }
}

/** Checks all conditions again: a message that was deleted, read or muted meanwhile is not pushed. */
async function showMessages(
  db: Queryable,
  asked: readonly AskedMessage[],
  now: number,
  shown: Map<number, (badge: number) => PushNotification>,
): Promise<void> {
  const [messages, waiting] = await Promise.all([
    loadMessages(db, asked),
    db.query<{ i: number; type: 'direct' | 'group'; name: string | null }>(
      `SELECT u.ord::int - 1 AS i, c.type, c.name
       FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY u(env, usr, conv, seq, ord)
       CROSS JOIN ${conversationOf('u.env', 'u.conv')} c
       CROSS JOIN ${memberOf('u.env', 'u.conv', 'u.usr')} m
       CROSS JOIN ${userOf('u.env', 'u.usr')} r
       WHERE ${memberWaits('u.seq')}`,
      [asked.map((a) => a.env), asked.map((a) => a.usr), asked.map((a) => a.conv), asked.map((a) => a.seq)],
    ),
  ]);
  const senders = asked.flatMap((a) => {
    const sender = messages.get(placeKey(a.env, a))?.sender ?? null;
    return sender === null ? [] : [{ env: a.env, no: sender }];
  });
  const distinct = [...new Map(senders.map((s) => [s.no, s])).values()];
  const names = new Map((await usersByNumber(db, distinct)).map((u) => [u.no, u.name]));
  for (const { i, type, name } of waiting) {
    const { job, env, usr, content } = asked[i]!;
    const message = messages.get(placeKey(env, asked[i]!));
    if (!message || message.sender === usr || !isNews(message, now)) continue;
    const senderName = message.sender === null ? null : (names.get(message.sender) ?? null);
    shown.set(job, (badge) =>
      notificationOf(
        {
          conversationId: message.cid,
          conversationType: type,
          conversationName: name,
          messageId: message.id,
          seq: message.seq,
          senderId: message.senderId,
          senderName,
          text: message.text,
          attachments: message.attachments,
        },
        badge,
        content,
      ),
    );
  }
}

/** The users' unread messages over all their conversations, in one query. */
export async function loadBadges(db: Queryable, rows: readonly Due[]): Promise<Map<string, number>> {
  const users = [...new Map(rows.map((r) => [r.usr, r])).values()];
  const found = await db.query<{ env: number; usr: number; unread: number }>(
    `SELECT m.env, m.usr, sum(${unreadCount('c', 'm')})::bigint AS unread
     FROM unnest($1::int[], $2::bigint[]) u(env, usr)
     CROSS JOIN ${membershipsOf('u.env', 'u.usr')} m CROSS JOIN ${conversationOf('m.env', 'm.conv')} c
     WHERE c.deleted_at IS NULL GROUP BY 1, 2`,
    [users.map((r) => r.env), users.map((r) => r.usr)],
  );
  return new Map(found.map((r) => [`${r.env} ${r.usr}`, r.unread]));
}
