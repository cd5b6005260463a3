import { enqueue } from '../../platform/jobs/jobs.ts';
import type { Job } from '../../platform/jobs/jobs.ts';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { counted, noteCounts } from '../../platform/postgres/notes.ts';
import type { PushNotification, PushOutcome, PushProviderName } from '../../platform/push/port.ts';
import { unreadCount } from '../conversations/sql.ts';
import { conversationOf, memberOf, membershipsOf, userOf } from '../lookups.ts';
import { usersByNumber } from '../users/sql.ts';
import { callNotification, notificationOf } from './notification.ts';
import type { PushContent, PushedCall } from './notification.ts';
import { envOf, narrowWidth, pushMode, sendQueue } from './notify.ts';
import { isSharedLane, sharedWidth } from './lanes.ts';
import type { CallRef, MessageRef, SendData } from './notify.ts';
import { connectedUsers, isNews, loadMessages, memberWaits, placeKey } from './plan.ts';
import type { Presence } from './plan.ts';
import type { Providers } from './providers.ts';
import * as sql from './sql.ts';
import type { DeviceRef } from './sql.ts';

/** Makes one attempt at each push of a batch: loads them together, sends each on its own, writes the results together. */

/**
 * Expo tells about a dead token only 15 minutes later, by a receipt. Receipts are asked for at whole minutes, those of an
 * environment together.
 */
export const receiptQueue = { name: 'push_receipts', width: 1_000 };
const receiptMs = 15 * 60_000;
const receiptStepMs = 60_000;
const receiptsAtOnce = 1_000;
const receiptsDue = (now: number): Date =>
  new Date(Math.ceil((now + receiptMs) / receiptStepMs) * receiptStepMs);
const mostReceiptTries = 4;

const firstRetryMs = 5_000;
const mostTries = 6;

export type PushResult = 'sent' | 'dead' | 'rejected' | 'retry' | 'failed';

export interface SendOutcome {
  runAt: Date | null;
  width?: number;
  /** null if nothing was tried. */
  result: PushResult | null;
  device?: DeviceRef;
  /** What became of the push, if it was about a message. */
  attempt?: sql.Attempt | undefined;
  receiptId?: string | undefined;
}

export interface SendOptions {
  db: Queryable;
  providers: Providers;
  presence: Presence;
  now: () => number;
  /** Milliseconds of a clock that never jumps. */
  monotonic: () => number;
  random: () => number;
  onResult: (provider: PushProviderName, result: PushResult) => void;
}

/** A push whose device, user and environment still exist. */
interface Due {
  env: number;
  device: number;
  usr: number;
  provider: PushProviderName;
  token: string;
  voipToken: string | null;
  registeredAt: string;
  content: PushContent;
}

/**
 * The delay in milliseconds before the next try: 5 s, 20 s, 80 s …, but at least what the provider asked for; null
 * after the last try.
 */
export function retryDelay(tries: number, random: number, askedMs = 0): number | null {
  if (tries >= mostTries) return null;
  return Math.max(askedMs, firstRetryMs * 4 ** (tries - 1) * (0.8 + 0.4 * random));
}

/** A host that takes as long as this has a narrow lane, so that it cannot occupy the workers. */
const hangingMs = 2_000;
const promptMs = 1_000;
/** The width of a lane of web push after an answer; undefined if it stays. */
function widthAfter(
  provider: PushProviderName,
  key: number,
  outcome: PushOutcome,
  ms: number,
): number | undefined {
  if (provider !== 'webpush') return undefined;
  if (ms >= hangingMs) return narrowWidth;
  if (outcome.kind !== 'sent' || ms >= promptMs) return undefined;
  return isSharedLane(key) ? sharedWidth : sendQueue.width;
}

export async function startSends(
  options: SendOptions,
  jobs: readonly Job[],
  signal: AbortSignal,
): Promise<Promise<SendOutcome>[]> {
  const { db, providers } = options;
  const due = await loadDue(db, jobs);
  const rows = [...due.values()];
  const late = [...due].filter(([i]) => jobs[i]!.claims > 1).map(([, row]) => row);
  const [shown, badges, made, online, superseded] = await Promise.all([
    loadNotifications(db, jobs, due, options.now()),
    loadBadges(db, rows),
    providers.load(rows),
    connectedUsers(options.presence, late),
    findSuperseded(db, jobs, due),
  ]);
  const providerOf = new Map(rows.map((row, i) => [row, made[i]]));
  // A call is pushed because the socket that counts as online did not confirm it.
  const cameOnline = (job: Job, { usr }: Due): boolean =>
    job.claims > 1 && 'conv' in (job.data as SendData) && online.has(usr);
  return jobs.map(async (job, i): Promise<SendOutcome> => {
    const row = due.get(i);
    const provider = row && providerOf.get(row);
    const badge = row && (badges.get(`${row.env} ${row.usr}`) ?? 0);
    const notification = shown.get(i)?.(badge ?? 0);
    // The message, the device or the credentials no longer exist, the device was told meanwhile, or the user came
    // online before a later attempt.
    if (!row || !provider || !notification || superseded.has(i) || cameOnline(job, row))
      return { runAt: null, result: null };
    const since = options.monotonic();
    const outcome = await untilAborted(provider.send(row.token, notification, row.voipToken), signal);
    if (outcome === 'aborted') return { runAt: new Date(options.now()), result: null };
    const device: DeviceRef = { env: row.env, no: row.device, registeredAt: row.registeredAt };
    if (outcome.kind === 'rejected') providers.rejected(row, outcome.reason);
    const delay =
      outcome.kind === 'retry' ? retryDelay(job.claims, options.random(), outcome.retryAfterMs) : null;
    const result = outcome.kind === 'retry' && delay === null ? 'failed' : outcome.kind;
    options.onResult(row.provider, result);
    const width = widthAfter(row.provider, job.key, outcome, options.monotonic() - since);
    return {
      ...(width === undefined ? {} : { width }),
      runAt: delay === null ? null : new Date(options.now() + delay),
      result,
      device,
      attempt: attemptOf(row, job.data as SendData, result, outcome, options.now()),
      receiptId: outcome.kind === 'sent' ? outcome.receiptId : undefined,
    };
  });
}

function attemptOf(
  { env, usr, device, provider }: Due,
  data: SendData,
  result: PushResult,
  outcome: PushOutcome,
  at: number,
): sql.Attempt | undefined {
  if (!('conv' in data)) return undefined;
  const { conv, seq } = data;
  const reason = 'reason' in outcome ? outcome.reason : null;
  return { env, conv, seq, usr, device, provider, result, reason, at };
}

/**
 * Stops waiting when the process stops. If the push went out all the same, it is sent again after the restart and
 * replaces the first on the device.
 */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | 'aborted'> {
  if (signal.aborted) return 'aborted';
  let stop!: () => void;
  const aborted = new Promise<'aborted'>((resolve) => (stop = () => resolve('aborted')));
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

export async function settleSends(tx: Tx, outcomes: readonly SendOutcome[], now: number): Promise<void> {
  const of = (result: PushResult): DeviceRef[] =>
    outcomes.filter((o) => o.result === result).map((o) => o.device!);
  await sql.dropDead(tx, of('dead'));
  await sql.noteAttempts(
    tx,
    outcomes.flatMap((o) => o.attempt ?? []),
  );
  await noteCounts(tx, [
    ...counted(of('sent'), () => ['pushSent']),
    ...counted([...of('dead'), ...of('rejected'), ...of('failed')], () => ['pushFailed']),
  ]);
  const receipts = new Map<number, Receipts>();
  for (const { device, receiptId } of outcomes) {
    if (device === undefined || receiptId === undefined) continue;
    const list = receipts.get(device.env) ?? [];
    list.push([receiptId, device.no, device.registeredAt]);
    receipts.set(device.env, list);
  }
  await enqueue(
    tx,
    receiptQueue,
    [...receipts].map(([env, list]) => ({ key: env, data: list })),
    receiptsDue(now),
  );
}

type Receipts = [id: string, device: number, registeredAt: string][];

export interface ReceiptOutcome {
  runAt: Date | null;
  width: number;
  dead: DeviceRef[];
}

/** Reads the receipts of a batch of jobs, as many in one request as Expo answers. */
export function startReceipts(
  options: Pick<SendOptions, 'providers' | 'now'>,
  jobs: readonly Job[],
): Promise<ReceiptOutcome>[] {
  const outcomes = new Map<Job, Promise<ReceiptOutcome>>();
  for (const together of groups(jobs)) {
    const asked = askReceipts(options, together);
    for (const job of together)
      outcomes.set(
        job,
        asked.then((found) => receiptOutcome(job, found, options.now())),
      );
  }
  return jobs.map((job) => outcomes.get(job)!);
}

const receiptsOf = (job: Job): Receipts => job.data as Receipts;

/** Jobs of one environment whose receipts fit into one request. */
function groups(jobs: readonly Job[]): Job[][] {
  const all: Job[][] = [];
  const open = new Map<number, { jobs: Job[]; receipts: number }>();
  for (const job of jobs) {
    const count = receiptsOf(job).length;
    let group = open.get(job.key);
    if (!group || group.receipts + count > receiptsAtOnce) {
      open.set(job.key, (group = { jobs: [], receipts: 0 }));
      all.push(group.jobs);
    }
    group.jobs.push(job);
    group.receipts += count;
  }
  return all;
}

/** undefined if there are no credentials any more. */
async function askReceipts(
  { providers }: Pick<SendOptions, 'providers'>,
  jobs: readonly Job[],
): Promise<Map<string, PushOutcome> | undefined> {
  const pair = { env: jobs[0]!.key, provider: 'expo' } as const;
  const [provider] = await providers.load([pair]);
  const found = await provider?.receipts?.(jobs.flatMap((job) => receiptsOf(job).map(([id]) => id)));
  for (const outcome of found?.values() ?? [])
    if (outcome.kind === 'rejected') providers.rejected(pair, outcome.reason);
  return found;
}

function receiptOutcome(job: Job, found: Map<string, PushOutcome> | undefined, now: number): ReceiptOutcome {
  const { width } = receiptQueue;
  if (!found) return { runAt: null, width, dead: [] };
  const list = receiptsOf(job);
  const again = list.some(([id]) => !found.has(id)) && job.claims < mostReceiptTries;
  return {
    runAt: again ? receiptsDue(now) : null,
    width,
    dead: list
      .filter(([id]) => found.get(id)?.kind === 'dead')
      .map(([, no, registeredAt]) => ({ env: job.key, no, registeredAt })),
  };
}

async function loadDue(db: Queryable, jobs: readonly Job[]): Promise<Map<number, Due>> {
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
async function findSuperseded(
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
async function loadNotifications(
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
async function loadBadges(db: Queryable, rows: readonly Due[]): Promise<Map<string, number>> {
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
