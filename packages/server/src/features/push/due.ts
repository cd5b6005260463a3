import type { Job } from '../../platform/jobs/sql/jobs.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { PushNotification } from '../../platform/push/port.ts';
import { parseExtras } from '../extras.ts';
import { isPushedMention } from '../levels.ts';
import { usersByNumber } from '../users/sql.ts';
import { callNotification, notificationOf } from './notification.ts';
import type { PushContent } from './notification.ts';
import type { CallRef, SendData } from './notify.ts';
import { isNews, loadMessages, placeKey, wants } from './plan.ts';
import type { MessageRef } from './sql/planning.ts';
import { ringingCalls, sentOrUnderWay, stillWaiting } from './sql/sending.ts';
import type { Due } from './sql/sending.ts';

/** What is read before pushes are sent: devices, notifications and badges, and which pushes are no longer needed. */

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
  const sent = await sentOrUnderWay(
    db,
    asked.map((a) => ({ ...a, no: jobs[a.i]!.no, key: jobs[a.i]!.key })),
  );
  for (const { i } of sent) found.add(i);
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
  const calls = await ringingCalls(db, asked);
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
  const [messages, waiting] = await Promise.all([loadMessages(db, asked), stillWaiting(db, asked)]);
  const senders = asked.flatMap((a) => {
    const sender = messages.get(placeKey(a.env, a))?.sender ?? null;
    return sender === null ? [] : [{ env: a.env, no: sender }];
  });
  const distinct = [...new Map(senders.map((s) => [s.no, s])).values()];
  const names = new Map((await usersByNumber(db, distinct)).map((u) => [u.no, u.name]));
  for (const { i, type, name, ...levelled } of waiting) {
    const { job, env, usr, content } = asked[i]!;
    const message = messages.get(placeKey(env, asked[i]!));
    if (!message || message.sender === usr || !isNews(message, now)) continue;
    if (!wants({ ...levelled, usr }, message, now)) continue;
    const senderName = message.sender === null ? null : (names.get(message.sender) ?? null);
    shown.set(job, (badge) =>
      notificationOf(
        {
          ...message,
          conversationType: type,
          conversationName: name,
          senderName,
          question: parseExtras(message.extras).poll?.question ?? null,
          mention: isPushedMention(message.extras, usr),
        },
        badge,
        content,
      ),
    );
  }
}
