import { enqueue } from '../../platform/jobs/sql/jobs.ts';
import type { Job } from '../../platform/jobs/sql/jobs.ts';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { counted, recordCounts } from '../../log/sql/activity-counts.ts';
import type { PushOutcome, PushProviderName } from '../../platform/push/port.ts';
import { findSuperseded, loadNotifications } from './due.ts';
import { loadBadges, loadDue } from './sql/sending.ts';
import type { Due } from './sql/sending.ts';
import { narrowWidth, sendQueue } from './notify.ts';
import { isSharedLane, sharedWidth } from './lanes.ts';
import type { SendData } from './notify.ts';
import { connectedUsers } from './plan.ts';
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

type PushResult = 'sent' | 'dead' | 'rejected' | 'retry' | 'failed';

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

interface SendOptions {
  db: Queryable;
  providers: Providers;
  presence: Presence;
  now: () => number;
  /** Milliseconds of a clock that never jumps. */
  monotonic: () => number;
  random: () => number;
  onResult: (provider: PushProviderName, result: PushResult) => void;
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

export async function recordSends(tx: Tx, outcomes: readonly SendOutcome[], now: number): Promise<void> {
  const of = (result: PushResult): DeviceRef[] =>
    outcomes.filter((o) => o.result === result).map((o) => o.device!);
  await sql.dropDead(tx, of('dead'));
  await sql.noteAttempts(
    tx,
    outcomes.flatMap((o) => o.attempt ?? []),
  );
  await recordCounts(tx, [
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
