import { setImmediate } from 'node:timers/promises';
import { limits } from '@parley/protocol';
import type { WebhookAttempt } from '@parley/protocol';
import type { Clock, Ids } from '../../platform/clock.ts';
import { OutboundRefused, OutboundTimeout, OutboundUnresolved } from '../../platform/outbound/outbound.ts';
import type { Outbound, OutboundResponse } from '../../platform/outbound/outbound.ts';
import type { Db, Queryable, Tx } from '../../platform/postgres/db.ts';
import { counted, recordCounts } from '../../log/sql/activity-counts.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { Recorder } from '../logs/recorder.ts';
import { render, testEvent } from './render.ts';
import { retryDelay } from './schedule.ts';
import { secretContext, signedHeaders } from './signature.ts';
import { loadDue, markFailing, markWell, recordAttempts } from './sql/deliveries.ts';
import type { DueDelivery } from './sql/deliveries.ts';
import { secrets as signingSecrets } from './sql.ts';

/**
 * Makes one attempt at each delivery of a batch: loads and renders them together, sends each on its own, writes the
 * results together.
 */

/**
 * How many deliveries of one endpoint run at once. Each good answer allows one more, up to a hundred. An endpoint
 * that is slow or refuses has ten; one that takes 2 s or more has two, so that it cannot occupy the workers.
 */
export const webhookQueue = { name: 'webhook', width: 10 };
const widthWhileWell = 100;
const widthWhileHanging = 2;
const promptMs = 1_000;
const hangingMs = 2_000;
const widthAfter = (ms: number, well: boolean): number => {
  if (ms >= hangingMs) return widthWhileHanging;
  return well && ms < promptMs ? widthWhileWell : webhookQueue.width;
};
const suspendedMs = 60_000;
/** Attempts that begin in one turn of the event loop. */
const startedAtOnce = 16;
/**
 * How many bytes of the answer's body are read. They are dropped, because receivers echo what they got, and that must
 * not outlive an erasure.
 */
const answerBytes = 4_096;

export interface Outcome {
  delivery: number;
  env: number;
  endpoint: number;
  /** null if nothing was tried and nothing changes. */
  status: 'pending' | 'succeeded' | 'failed' | null;
  attempt: WebhookAttempt | null;
  runAt: Date | null;
  width?: number;
  test?: boolean;
  /** True for the first attempt of its delivery. */
  first?: boolean;
  /** True if the endpoint was not asked, so that it has not failed. */
  unasked?: boolean;
}

interface DeliverOptions {
  db: Db;
  outbound: Outbound;
  vault: Vault;
  ids: Ids;
  clock: Clock;
  random: () => number;
  onAttempt: (result: 'succeeded' | 'failed', durationMs: number, lagMs: number) => void;
  recorder: Pick<Recorder, 'add'>;
}

const userAgent = 'Parley-Webhooks/1.0';
/** The reason that the customer's delivery log shows. */
export const unavailable =
  'the payload is not kept any more: its content was deleted for good, or a user in it was erased';

export function createDeliverer(options: DeliverOptions) {
  const { db, outbound, vault, ids, clock } = options;

  /** Starts the deliveries with these numbers. Nothing is tried if a delivery or its endpoint no longer exists. */
  async function start(numbers: readonly number[], signal?: AbortSignal): Promise<Promise<Outcome>[]> {
    const due = await loadDue(db, numbers);
    // What cannot be sent is neither rendered nor signed: names that never resolve may have thousands of deliveries.
    const failures = new Map([...due.values()].map((row) => [row.no, outbound.failed(row.url)]));
    const sendable = [...due.values()].filter((row) => failures.get(row.no) === undefined);
    const [bodies, secrets] = await Promise.all([
      render(db, vault, sendable),
      openSecrets(db, vault, sendable),
    ]);
    let begun = Promise.resolve();
    return numbers.map((no, i) => {
      const row = due.get(no);
      if (!row)
        return Promise.resolve({
          delivery: no,
          env: 0,
          endpoint: 0,
          status: null,
          attempt: null,
          runAt: null,
        });
      const content = failures.get(no) ?? { body: bodies.get(no), secrets: secrets.get(row.endpoint) ?? [] };
      // A large batch begins in several turns of the event loop, so that sockets and requests have theirs in between.
      if (i > 0 && i % startedAtOnce === 0) begun = begun.then(() => setImmediate());
      return begun.then(() => attempt(row, content, signal));
    });
  }

  /** Adds the attempt to the environment's log. */
  function note(row: DueDelivery, made: WebhookAttempt, code: string | null): void {
    options.recorder.add({
      env: row.env,
      at: Date.parse(made.at),
      kind: 'webhook',
      failed: code !== null,
      ms: made.durationMs,
      requestId: made.requestId,
      method: 'POST',
      operation: row.type,
      status: made.status,
      code,
      webhook: row.endpointId,
      delivery: row.id,
    });
  }

  async function attempt(
    row: DueDelivery,
    content: { body: string | undefined; secrets: Buffer[] } | OutboundUnresolved,
    signal: AbortSignal | undefined,
  ): Promise<Outcome> {
    const test = row.type === testEvent;
    const first = row.attempts === 0;
    const outcome = { delivery: row.no, env: row.env, endpoint: row.endpoint, attempt: null, test, first };
    if (row.envStatus === 'suspended')
      return { ...outcome, status: null, runAt: new Date(clock.now() + suspendedMs) };
    if (row.endpointStatus === 'disabled' && !test) return { ...outcome, status: 'failed', runAt: null };

    const began = clock.now();
    const requestId = ids.make('request');
    const record = (status: number | null, error?: string): WebhookAttempt => ({
      at: new Date(began).toISOString(),
      status,
      durationMs: Math.max(0, clock.now() - began),
      ...(error === undefined ? {} : { error }),
      requestId,
    });
    const failure = content instanceof OutboundUnresolved ? content : undefined;
    const { body, secrets } = content instanceof OutboundUnresolved ? { body: '', secrets: [] } : content;
    if (body === undefined)
      return {
        ...outcome,
        status: 'failed',
        attempt: record(null, unavailable),
        runAt: null,
        unasked: true,
      };

    let answer: Pick<OutboundResponse, 'status'> | undefined;
    let error: string | undefined;
    try {
      if (failure) throw failure;
      answer = await outbound.request({
        url: row.url,
        method: 'POST',
        headers: signedHeaders(secrets, { userAgent, requestId, id: row.eventId, now: began, body }),
        body,
        timeoutMs: limits.webhookTimeoutMs,
        maxBytes: answerBytes,
        tenant: row.env,
        ...(signal ? { signal } : {}),
      });
    } catch (thrown) {
      if (signal?.aborted) return { ...outcome, status: null, runAt: new Date(clock.now()) };
      // The answer came in time, but its body did not end.
      if (thrown instanceof OutboundTimeout && thrown.status !== undefined)
        answer = { status: thrown.status };
      else error = describe(thrown);
    }

    const status = answer?.status ?? null;
    const well = status !== null && status >= 200 && status < 300;
    const made = record(status, well ? undefined : (error ?? `the answer was ${status}`));
    options.onAttempt(well ? 'succeeded' : 'failed', made.durationMs, clock.now() - Date.parse(row.eventAt));
    note(row, made, well ? null : status === null ? 'no_answer' : 'not_accepted');
    const delay = well || test ? null : retryDelay(row.attempts + 1, options.random());
    return {
      ...outcome,
      status: well ? 'succeeded' : delay === null ? 'failed' : 'pending',
      attempt: made,
      runAt: delay === null ? null : new Date(clock.now() + delay),
      width: widthAfter(made.durationMs, well),
    };
  }

  return { start, record: recordOutcomes };
}

/** Writes the results of a batch. Test deliveries never count against an endpoint. */
async function recordOutcomes(tx: Tx, outcomes: readonly Outcome[]): Promise<void> {
  const tried = outcomes.filter((o) => o.status !== null);
  if (tried.length === 0) return;
  await recordAttempts(tx, tried);
  await recordCounts(
    tx,
    counted(
      tried.filter((o) => o.attempt && !o.unasked),
      (o) => [
        'webhookAttempts',
        ...(o.first ? ['webhookDeliveries'] : []),
        ...(o.status === 'succeeded' ? ['webhookSucceeded'] : []),
      ],
    ),
  );
  const endpoints = (wanted: (o: Outcome) => boolean) =>
    [...new Set(tried.filter((o) => o.attempt && wanted(o)).map((o) => o.endpoint))].sort((a, b) => a - b);
  const failing = endpoints((o) => o.status !== 'succeeded' && !o.test && !o.unasked);
  const well = endpoints((o) => o.status === 'succeeded');
  if (failing.length > 0) await markFailing(tx, failing);
  if (well.length > 0) await markWell(tx, well);
}

/** The endpoints' secrets, newest first. */
async function openSecrets(
  db: Queryable,
  vault: Vault,
  due: readonly DueDelivery[],
): Promise<Map<number, Buffer[]>> {
  const ids = new Map(due.map((d) => [d.endpoint, d.endpointId]));
  const secrets = new Map<number, Buffer[]>();
  for (const { owner: endpoint, secret } of await signingSecrets.live(db, [...ids.keys()]))
    secrets.set(endpoint, [
      ...(secrets.get(endpoint) ?? []),
      vault.open(secret, secretContext(ids.get(endpoint)!)),
    ]);
  return secrets;
}

/** Describes, for the log that the customer reads, what happened. */
function describe(error: unknown): string {
  if (error instanceof OutboundTimeout) return `no answer within ${limits.webhookTimeoutMs / 1000} s`;
  if (error instanceof OutboundRefused) return `refused: ${error.message}`;
  if (error instanceof OutboundUnresolved) return `no connection (${error.message})`;
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? `no connection (${code})` : 'the connection broke';
}
