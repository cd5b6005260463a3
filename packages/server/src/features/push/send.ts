import { enqueue } from '../../platform/jobs/jobs.ts';
import type { Job } from '../../platform/jobs/jobs.ts';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import type { PushProviderName } from '../../platform/push/port.ts';
import { unreadCount } from '../conversations/sql.ts';
import { notificationOf } from './notification.ts';
import type { PushedMessage } from './notification.ts';
import { connectedUsers, envOfLane, pushMode, stillWanted } from './plan.ts';
import type { Presence, SendData } from './plan.ts';
import type { Providers } from './providers.ts';
import * as sql from './sql.ts';
import type { DeviceRef } from './sql.ts';

/** One attempt at each of a batch of pushes: load together, send each on its own, write the results together. */

/** Expo tells of a dead token a quarter of an hour later. */
export const receiptQueue = { name: 'push_receipts', width: 2 };
const receiptMs = 15 * 60_000;
const mostReceiptTries = 4;

const firstRetryMs = 5_000;
const mostTries = 6;

export type PushResult = 'sent' | 'dead' | 'rejected' | 'retry' | 'failed';

export interface SendOutcome {
  runAt: Date | null;
  /** null: nothing was tried. */
  result: PushResult | null;
  device?: DeviceRef;
  receiptId?: string | undefined;
}

export interface SendOptions {
  db: Queryable;
  providers: Providers;
  presence: Presence;
  now: () => number;
  random: () => number;
  onResult: (provider: PushProviderName, result: PushResult) => void;
}

interface Due extends PushedMessage {
  env: number;
  device: number;
  usr: number;
  provider: PushProviderName;
  token: string;
  registeredAt: string;
}

/** 5 s, 20 s, 80 s …, at least what the provider asks for; null: no more. */
export function retryDelay(tries: number, random: number, askedMs = 0): number | null {
  if (tries >= mostTries) return null;
  return Math.max(askedMs, firstRetryMs * 4 ** (tries - 1) * (0.8 + 0.4 * random));
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
  const [badges, made, online] = await Promise.all([
    loadBadges(db, rows),
    providers.load(rows),
    connectedUsers(options.presence, late),
  ]);
  const providerOf = new Map(rows.map((row, i) => [row, made[i]]));
  return jobs.map(async (job, i): Promise<SendOutcome> => {
    const row = due.get(i);
    const provider = row && providerOf.get(row);
    // The message, the member, the device or the credentials are gone, or the user came online before a later attempt.
    if (!row || !provider || (job.claims > 1 && online.has(row.usr))) return { runAt: null, result: null };
    const notification = notificationOf(row, badges.get(`${row.env} ${row.usr}`) ?? 0);
    const outcome = await untilAborted(provider.send(row.token, notification), signal);
    if (outcome === 'aborted') return { runAt: new Date(options.now()), result: null };
    const device: DeviceRef = { env: row.env, no: row.device, registeredAt: row.registeredAt };
    if (outcome.kind === 'rejected') providers.rejected(row, outcome.reason);
    const delay =
      outcome.kind === 'retry' ? retryDelay(job.claims, options.random(), outcome.retryAfterMs) : null;
    const result = outcome.kind === 'retry' && delay === null ? 'failed' : outcome.kind;
    options.onResult(row.provider, result);
    return {
      runAt: delay === null ? null : new Date(options.now() + delay),
      result,
      device,
      receiptId: outcome.kind === 'sent' ? outcome.receiptId : undefined,
    };
  });
}

/** A push that went out all the same goes out once more after the restart, and takes the place of the first. */
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
  const sent = new Map<number, number>();
  for (const { env } of of('sent')) sent.set(env, (sent.get(env) ?? 0) + 1);
  await sql.countUsage(tx, 'pushSent', sent);
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
    new Date(now + receiptMs),
  );
}

type Receipts = [id: string, device: number, registeredAt: string][];

export interface ReceiptOutcome {
  runAt: Date | null;
  dead: DeviceRef[];
}

export async function readReceipts(
  { providers, now }: Pick<SendOptions, 'providers' | 'now'>,
  job: Job,
): Promise<ReceiptOutcome> {
  const pair = { env: job.key, provider: 'expo' } as const;
  const list = job.data as Receipts;
  const [provider] = await providers.load([pair]);
  const outcomes = await provider?.receipts?.(list.map(([id]) => id));
  if (!outcomes) return { runAt: null, dead: [] };
  for (const outcome of outcomes.values())
    if (outcome.kind === 'rejected') providers.rejected(pair, outcome.reason);
  const again = outcomes.size < list.length && job.claims < mostReceiptTries;
  return {
    runAt: again ? new Date(now() + receiptMs) : null,
    dead: list
      .filter(([id]) => outcomes.get(id)?.kind === 'dead')
      .map(([, no, registeredAt]) => ({ env: job.key, no, registeredAt })),
  };
}

async function loadDue(db: Queryable, jobs: readonly Job[]): Promise<Map<number, Due>> {
  const data = jobs.map((j) => j.data as SendData);
  const rows = await db.query<Due & { job: number }>(
    `SELECT u.ord::int - 1 AS job, d.env, d.no AS device, d.usr, d.provider, d.token, d.registered_at AS "registeredAt",
       c.id AS "conversationId", c.type AS "conversationType", c.name AS "conversationName",
       s.id AS "messageId", s.seq, s.text, s.attachments, x.id AS "senderId", x.name AS "senderName"
     FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
       WITH ORDINALITY u(env, device, usr, conv, seq, ord)
     JOIN environments e ON e.no = u.env AND e.status = 'active' AND ${pushMode('e')} = 'providers'
     JOIN push_devices d ON d.env = u.env AND d.no = u.device AND d.usr = u.usr
     JOIN messages s ON s.env = u.env AND s.conv = u.conv AND s.seq = u.seq
     JOIN conversations c ON c.env = u.env AND c.no = u.conv
     JOIN members m ON m.env = u.env AND m.conv = u.conv AND m.usr = u.usr
     JOIN users r ON r.env = u.env AND r.no = u.usr
     LEFT JOIN users x ON x.env = s.env AND x.no = s.sender
     WHERE ${stillWanted}`,
    [
      jobs.map((j) => envOfLane(j.key)),
      jobs.map((j) => j.ref),
      data.map((d) => d.usr),
      data.map((d) => d.conv),
      data.map((d) => d.seq),
    ],
  );
  return new Map(rows.map((row) => [row.job, row]));
}

/** Total unread over all conversations, of all these users in one query. */
async function loadBadges(db: Queryable, rows: readonly Due[]): Promise<Map<string, number>> {
  const users = [...new Map(rows.map((r) => [r.usr, r])).values()];
  const found = await db.query<{ env: number; usr: number; unread: number }>(
    `SELECT m.env, m.usr, sum(${unreadCount('c', 'm')})::bigint AS unread
     FROM unnest($1::int[], $2::bigint[]) u(env, usr)
     JOIN members m ON m.env = u.env AND m.usr = u.usr
     JOIN conversations c ON c.env = m.env AND c.no = m.conv AND c.deleted_at IS NULL
     GROUP BY 1, 2`,
    [users.map((r) => r.env), users.map((r) => r.usr)],
  );
  return new Map(found.map((r) => [`${r.env} ${r.usr}`, r.unread]));
}
