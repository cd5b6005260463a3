import type { Call, EventName } from '@parley/protocol';
import { emit } from '../platform/jobs/outbox.ts';
import type { Tx } from '../platform/postgres/db.ts';
import { catalogue, webhookOnly } from './catalogue.ts';
import type { Person, Told, ToldToWebhooks } from './catalogue.ts';
import { consumers } from './consumers.ts';
import type { Doubt } from './doubts.ts';
import { logEvent } from './events.ts';
import type { LogEvent } from './events.ts';
import type { LockedConversation } from './lock.ts';

/**
 * How something that happened is recorded: one call appends events to a conversation, writes rows for those who
 * listen, and publishes the events to open sockets after the commit. Messages have a faster way in (append.ts) and
 * come here only to be published.
 */

/** What this module needs of the conversation log. */
export interface Recorder {
  publish(event: LogEvent): void;
  /** Must be called after a commit that may have left rows in the outbox. */
  committed(): void;
  /** Must be called if it is unknown whether this was committed. */
  doubt(doubts: readonly Doubt[]): void;
}

const { webhooks } = consumers;

type NewEvent<K extends EventName> = { type: K; actor: Person | null } & Told[K];

/** Gives the events the next seqs of a locked conversation, in order, and returns the seqs. */
export async function record(
  log: Recorder,
  tx: Tx,
  conv: LockedConversation,
  events: readonly { [K in EventName]: NewEvent<K> }[Exclude<EventName, 'message.new'>][],
): Promise<number[]> {
  if (events.length === 0) return [];
  const live = events.map((event, i) => liveEvent(conv, conv.lastSeq + 1 + i, event));
  const [row] = await tx.query<{ seq: number; stale: boolean; step: number }>(appendSql, [
    conv.env,
    conv.no,
    conv.lockedAt,
    JSON.stringify(events.map((event, i) => rowOf(conv, conv.lastSeq + 1 + i, event))),
    events.length,
    conv.activeAt,
  ]);
  if (row?.seq !== conv.lastSeq + events.length) throw new Error('the conversation was not locked');
  if (row.stale)
    await tx.query('SELECT renew_activity(ARRAY[$1::int], ARRAY[$2::bigint], $3)', [
      conv.env,
      conv.no,
      row.step,
    ]);
  conv.lastSeq = row.seq;
  tx.afterCommit(() => {
    for (const event of live) log.publish(event);
    log.committed();
  });
  tx.inDoubt(() => log.doubt(live.map((event) => ({ event, at: conv.lockedAt }))));
  return live.map(({ seq }) => seq);
}

const appendSql = `
  WITH moved AS (
    UPDATE conversations SET last_seq = last_seq + $5, last_activity_at = greatest(last_activity_at, $6::timestamptz)
    WHERE env = $1 AND no = $2
    RETURNING last_seq, last_activity_step < activity_step(last_activity_at) AS stale, activity_step(last_activity_at) AS step
  ), event AS MATERIALIZED (
    SELECT m.last_seq - $5 + e.ord AS seq, e.* FROM moved m, ROWS FROM (
      json_to_recordset($4::json) AS (type text, webhook text, message bigint, users bigint[], actor bigint, data text, payload text)
    ) WITH ORDINALITY AS e(type, webhook, message, users, actor, data, payload, ord)
  ), kept AS (
    INSERT INTO events (env, conv, seq, type, message, users, actor, data, created_at, active_at)
    SELECT $1, $2, seq, type, message, users, actor, data, $3, nullif($6::timestamptz, $3::timestamptz) FROM event
  ) SELECT last_seq AS seq, stale, step, tell_of_events($1, $2, last_seq - $5 + 1, $3::timestamptz, $4::json) FROM moved`;

/** The columns in which an event is stored; `payload` is the data for webhooks, if it can change. */
function rowOf<K extends EventName>(conv: LockedConversation, seq: number, event: NewEvent<K>): object {
  const told = event as { message?: { seq: number }; users?: Person[]; data?: object };
  const { webhook } = catalogue[event.type];
  const at = { cid: conv.id, seq, actorId: event.actor?.id ?? null };
  return {
    type: event.type,
    webhook: webhook?.name ?? null,
    message: told.message?.seq ?? null,
    users: told.users?.map((u) => u.no) ?? null,
    actor: event.actor?.no ?? null,
    data: told.data === undefined ? null : JSON.stringify(told.data),
    payload: webhook?.kept ? JSON.stringify(webhook.data({ ...event, ...at })) : null,
  };
}

/** An event as it goes to open sockets. */
export function liveEvent<K extends EventName>(
  conv: { env: number; no: number; id: string },
  seq: number,
  event: NewEvent<K>,
): LogEvent {
  const { d, routes } = catalogue[event.type];
  const at = { env: conv.env, conv: conv.no, cid: conv.id, seq };
  const moved = routes && { [routes]: (event as { users?: Person[] }).users?.map((u) => u.no) ?? [] };
  return logEvent(at, event.type, d({ ...event, ...at, actorId: event.actor?.id ?? null }), moved);
}

/** What an event contains is stored by reference; its data is rendered when it is sent. */
type References<T> = (T extends { message: unknown } ? { conv: number; message: number } : object) &
  (T extends { users: unknown } ? { users: number[] } : object) &
  (T extends { data: infer D } ? { data: D } : object) &
  (T extends { secret: unknown } ? { sealed: Buffer } : object);

/** Records an event for webhooks only. `message.read` is recorded by the statement that moves the read mark. */
export async function tell<
  N extends Exclude<keyof ToldToWebhooks, 'message.read' | 'call.started' | 'call.ended'>,
>(
  log: Pick<Recorder, 'committed'>,
  tx: Tx,
  env: number,
  type: N,
  what: References<ToldToWebhooks[N]>,
): Promise<void> {
  await emit(tx, webhooks.bit, { env, type, ...what });
  tx.afterCommit(() => log.committed());
}

/** Records a call for webhooks as it is now, if they listen. The call must be locked. */
export async function tellOfCall(
  log: Pick<Recorder, 'committed'>,
  tx: Tx,
  { env, conv }: { env: number; conv: number },
  type: 'call.started' | 'call.ended',
  call: Call,
): Promise<void> {
  await tx.query(
    `WITH noted AS (
       INSERT INTO outbox (consumer, id, env, type, conv, created_at, due_at)
       SELECT ${webhooks.bit}, make_id('evt_', t), $1, $2, $3, t, t
       FROM environments, (SELECT clock_timestamp() AS t) x WHERE no = $1 AND listeners & ${webhooks.bit} <> 0
       RETURNING id, created_at
     ) INSERT INTO webhook_payloads (event_id, env, conv, data, event_at) SELECT id, $1, $3, $4, created_at FROM noted`,
    [
      env,
      type,
      conv,
      JSON.stringify(webhookOnly[type].data({ cid: call.conversationId, seq: 0, actorId: null, call })),
    ],
  );
  tx.afterCommit(() => log.committed());
}
