import type { Call, EventName } from '@parley/protocol';
import { emit } from '../platform/jobs/sql/outbox.ts';
import type { Tx } from '../platform/postgres/db.ts';
import { catalogue, webhookOnly } from './catalogue.ts';
import type { Person, Told, ToldToWebhooks } from './catalogue.ts';
import { consumers } from './sql/consumers.ts';
import type { ConversationLog } from './conversation-log.ts';
import { limitsOf, logEvent } from './events.ts';
import type { LogEvent } from './events.ts';
import type { LockedConversation } from './sql/lock.ts';
import { appendEvents, emitWithPayload } from './sql/events.ts';

/**
 * How something that happened is recorded: one call appends events to a conversation, writes rows for those who
 * listen, and publishes the events to open sockets after the commit. Messages have a faster way in (sql/append.ts) and
 * come here only to be published.
 */

/** What this module needs of the conversation log. */
export type Recorder = Pick<ConversationLog, 'publish' | 'committed' | 'unconfirmed'>;

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
  const live = events.map((event, i) => ({
    ...liveEvent(conv, conv.lastSeq + 1 + i, event),
    ...(event.type === 'conversation.updated' || catalogue[event.type].routes === 'join'
      ? limitsOf(conv)
      : {}),
  }));
  const rows = events.map((event, i) => rowOf(conv, conv.lastSeq + 1 + i, event));
  const lastSeq = await appendEvents(tx, conv, rows);
  if (lastSeq !== conv.lastSeq + events.length) throw new Error('the conversation was not locked');
  conv.lastSeq = lastSeq;
  tx.afterCommit(() => {
    for (const event of live) log.publish(event);
    log.committed();
  });
  tx.onUnconfirmed(() => log.unconfirmed(live.map((event) => ({ event, at: conv.lockedAt }))));
  return live.map(({ seq }) => seq);
}

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
  const data = webhookOnly[type].data({ cid: call.conversationId, seq: 0, actorId: null, call });
  await emitWithPayload(tx, webhooks.bit, { env, conv, type, data });
  tx.afterCommit(() => log.committed());
}
