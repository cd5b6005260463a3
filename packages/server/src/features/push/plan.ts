import { tell } from '../../log/record.ts';
import type { Recorder } from '../../log/record.ts';
import { enqueue } from '../../platform/jobs/sql/jobs.ts';
import type { Job } from '../../platform/jobs/sql/jobs.ts';
import type { OutboxRow } from '../../platform/jobs/sql/outbox.ts';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import type { PresenceRegistry } from '../../platform/presence/port.ts';
import { isPushed, isPushedMention, levelOf } from '../levels.ts';
import { messagesAt } from '../sql/message-reader.ts';
import type { MessageRow } from '../sql/message-reader.ts';
import { notify } from './notify.ts';
import { messagesToPush, waitingMembers } from './sql/planning.ts';
import type { Levelled, MessageRef } from './sql/planning.ts';

/**
 * Decides who is pushed a message. The outbox passes on each message that may need it, which becomes a job. The job
 * finds the members concerned, and pushes to their devices or records one notification.needed event.
 */

export const planQueue = { name: 'push_plan', width: 50 };

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

/** Whether the member's level lets the message through. */
export const wants = (
  member: Levelled & { usr: number },
  { extras }: Pick<MessageRow, 'extras'>,
  now: number,
): boolean => isPushed(levelOf(member, member.byDefault, now).level, extras, member.usr);

export type Presence = Pick<PresenceRegistry, 'connected'>;

export async function dispatchToPush(tx: Tx, rows: readonly OutboxRow[]): Promise<void> {
  const messages = rows.filter((r) => r.type === 'message.created');
  if (messages.length === 0) return;
  const wanted = await messagesToPush(
    tx,
    messages.map((r) => r.no),
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
  /** Numbers of the users that notification.needed names, and those of them whom the message mentions. */
  recipients: number[];
  mentioned: number[];
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
  const [messages, members] = await Promise.all([loadMessages(db, places), waitingMembers(db, places)]);
  const found = members.flatMap((member) => {
    const { job, usr } = member;
    const message = messages.get(placeKey(places[job]!.env, places[job]!));
    return message !== undefined &&
      message.sender !== usr &&
      isNews(message, now) &&
      wants(member, message, now)
      ? [{ ...member, mentioned: isPushedMention(message.extras, usr) }]
      : [];
  });
  const online = await connectedUsers(presence, found);
  const planned = places.map((place): Planned => ({
    runAt: null,
    ...place,
    pushTo: [],
    recipients: [],
    mentioned: [],
  }));
  for (const { job, mode, usr, mentioned } of found) {
    if (online.has(usr)) continue;
    planned[job]![mode === 'webhook' ? 'recipients' : 'pushTo'].push(usr);
    if (mentioned) planned[job]!.mentioned.push(usr);
  }
  return planned;
}

/** Runs in the transaction that ends the jobs of the plan. */
export async function recordPlan(
  log: Pick<Recorder, 'committed'>,
  tx: Tx,
  planned: readonly Planned[],
): Promise<void> {
  await notify(
    tx,
    planned.map(({ env, conv, seq, pushTo }) => ({ env, users: pushTo, pushed: { conv, seq } })),
  );
  for (const { env, conv, seq, recipients, mentioned } of planned)
    if (recipients.length > 0)
      await tell(log, tx, env, 'notification.needed', {
        conv,
        message: seq,
        users: recipients,
        data: mentioned.length > 0 ? { mentioned } : {},
      });
}
