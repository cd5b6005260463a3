import { tell } from '../../log/record.ts';
import type { Recorder } from '../../log/record.ts';
import { enqueue } from '../../platform/jobs/jobs.ts';
import type { Job } from '../../platform/jobs/jobs.ts';
import { consumers } from '../../log/consumers.ts';
import type { OutboxRow } from '../../platform/jobs/outbox.ts';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import type { PresenceRegistry } from '../../platform/presence/port.ts';
import { conversationOf, userOf } from '../lookups.ts';
import { messagesAt } from '../message-reader.ts';
import type { MessageRow } from '../message-reader.ts';
import { notify, pushMode } from './notify.ts';
import type { MessageRef } from './notify.ts';

/**
 * Decides who is pushed a message. The outbox passes on each message that may need it, which becomes a job. The job
 * finds the members concerned, and pushes to their devices or records one notification.needed event.
 */

export const planQueue = { name: 'push_plan', width: 50 };

/**
 * SQL for whether member `m` (user `r`) of conversation `c` still waits for the message with this seq: the
 * conversation and the user are live, and the member neither muted the conversation nor has read the message.
 */
export const memberWaits = (seq: string): string =>
  `c.deleted_at IS NULL AND NOT m.muted AND m.last_read_seq < ${seq} AND r.deactivated_at IS NULL`;

/** Older messages, in milliseconds, are not pushed: the workers may have stood still. */
const newsMs = 86_400_000;
export const isNews = (message: MessageRow, now: number): boolean =>
  message.deletedAt === null && Date.parse(message.createdAt) > now - newsMs;

export const placeKey = (env: number, { conv, seq }: MessageRef): string => `${env} ${conv} ${seq}`;

/** Messages by place; those that no longer exist are missing. */
export async function loadMessages(
  db: Queryable,
  places: readonly ({ env: number } & MessageRef)[],
): Promise<Map<string, MessageRow>> {
  const distinct = [...new Map(places.map((p) => [placeKey(p.env, p), p])).values()];
  return new Map((await messagesAt(db, distinct)).map((m) => [placeKey(m.env, m), m]));
}

export type Presence = Pick<PresenceRegistry, 'connected'>;

export async function dispatchToPush(tx: Tx, rows: readonly OutboxRow[]): Promise<void> {
  const messages = rows.filter((r) => r.type === 'message.created');
  if (messages.length === 0) return;
  const wanted = await tx.query<{ env: number } & MessageRef>(
    `SELECT o.env, o.conv, o.seq FROM outbox o JOIN environments e ON e.no = o.env AND e.status = 'active'
     WHERE o.no = ANY($1) AND CASE ${pushMode('e')}
       WHEN 'providers' THEN e.listeners & ${consumers.push.bit} <> 0 AND EXISTS (
         SELECT 1 FROM members m JOIN push_devices d ON d.env = m.env AND d.usr = m.usr
         WHERE m.env = o.env AND m.conv = o.conv AND NOT m.muted AND m.usr IS DISTINCT FROM o.actor)
       WHEN 'webhook' THEN (
         SELECT true FROM webhook_endpoints w
         WHERE w.env = o.env AND w.status = 'enabled' AND 'notification.needed' = ANY(w.events) LIMIT 1)
       ELSE false END
     ORDER BY o.no`,
    [messages.map((r) => r.no)],
  );
  await enqueue(
    tx,
    planQueue,
    wanted.map(({ env, conv, seq }) => ({ key: env, data: { conv, seq } })),
  );
}

export interface Planned extends MessageRef {
  runAt: null;
  env: number;
  /** Numbers of the users to push to. */
  pushTo: number[];
  /** Numbers of the users that notification.needed names. */
  recipients: number[];
}

const askAtOnce = 1_000;

/** The numbers of those users who have an open socket. User numbers are unique across environments. */
export async function connectedUsers(
  presence: Presence,
  users: readonly { env: number; usr: number }[],
): Promise<Set<number>> {
  const refs = [...new Map(users.map(({ env, usr }) => [usr, { env, user: usr }])).values()];
  const online = new Set<number>();
  for (let i = 0; i < refs.length; i += askAtOnce) {
    const asked = refs.slice(i, i + askAtOnce);
    const connected = await presence.connected(asked);
    asked.forEach((ref, j) => connected[j] && online.add(ref.user));
  }
  return online;
}

/** Finds the members without an open socket, for all jobs at once. */
export async function plan(
  db: Queryable,
  presence: Presence,
  jobs: readonly Job[],
  now: number,
): Promise<Planned[]> {
  const places = jobs.map((j) => ({ env: j.key, ...(j.data as MessageRef) }));
  const [messages, members] = await Promise.all([
    loadMessages(db, places),
    db.query<{ job: number; env: number; mode: 'providers' | 'webhook'; usr: number }>(
      `SELECT u.ord::int - 1 AS job, u.env, ${pushMode('e')} AS mode, m.usr
       FROM unnest($1::int[], $2::bigint[], $3::bigint[]) WITH ORDINALITY u(env, conv, seq, ord)
       JOIN environments e ON e.no = u.env AND e.status = 'active'
       CROSS JOIN ${conversationOf('u.env', 'u.conv')} c
       CROSS JOIN LATERAL (SELECT * FROM members WHERE conv = u.conv AND env = u.env OFFSET 0) m
       CROSS JOIN ${userOf('m.env', 'm.usr')} r
       WHERE ${memberWaits('u.seq')} AND CASE ${pushMode('e')} WHEN 'webhook' THEN true WHEN 'providers' THEN EXISTS (
         SELECT 1 FROM push_devices d JOIN push_credentials k ON k.env = d.env AND k.provider = d.provider
         WHERE d.env = m.env AND d.usr = m.usr) ELSE false END
       ORDER BY u.ord, m.usr`,
      [places.map((p) => p.env), places.map((p) => p.conv), places.map((p) => p.seq)],
    ),
  ]);
  const found = members.filter(({ job, usr }) => {
    const message = messages.get(placeKey(places[job]!.env, places[job]!));
    return message !== undefined && message.sender !== usr && isNews(message, now);
  });
  const online = await connectedUsers(presence, found);
  const planned = places.map((place): Planned => ({ runAt: null, ...place, pushTo: [], recipients: [] }));
  for (const { job, mode, usr } of found)
    if (!online.has(usr)) planned[job]![mode === 'webhook' ? 'recipients' : 'pushTo'].push(usr);
  return planned;
}

/** Runs in the transaction that ends the jobs of the plan. */
export async function settlePlan(
  log: Pick<Recorder, 'committed'>,
  tx: Tx,
  planned: readonly Planned[],
): Promise<void> {
  await notify(
    tx,
    planned.map(({ env, conv, seq, pushTo }) => ({ env, users: pushTo, pushed: { conv, seq } })),
  );
  for (const { env, conv, seq, recipients } of planned)
    if (recipients.length > 0)
      await tell(log, tx, env, 'notification.needed', { conv, message: seq, users: recipients });
}
