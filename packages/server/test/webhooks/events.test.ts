import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { webhookEventNames, webhookEvents } from '@parley/protocol';
import type { WebhookEventName } from '@parley/protocol';
import { consumers } from '../../src/log/sql/consumers.ts';
import { emit } from '../../src/platform/jobs/sql/outbox.ts';
import { clientApi } from '../support/api.ts';
import { startReceiver, verify } from './receiver.ts';
import type { Received } from './receiver.ts';
import { ajv } from '../support/schemas.ts';
import { setUp, use, useService } from '../support/use.ts';

const { service, server, db } = useService({ own: true });
const receiver = use(startReceiver, (r) => r.close());
let secret: string;
let webhookId: string;

setUp(async () => {
  const made = await server('POST', '/v1/webhooks', { url: receiver.url, events: webhookEventNames });
  assert.equal(made.status, 201);
  secret = made.body.secret;
  webhookId = made.body.id;
});

/** The next event of a type about a conversation; its envelope, signature and data are checked. */
async function event(type: WebhookEventName, fits: (r: Received) => boolean): Promise<Received> {
  const received = await receiver.next(type, fits);
  verify(secret, received);
  assert.equal(received.headers['content-type'], 'application/json');
  assert.equal(received.headers['webhook-id'], received.id);
  assert.match(received.headers['webhook-timestamp']!, /^\d{10}$/);
  assert.match(received.id, /^evt_[0-9a-hjkmnp-tv-z]{26}$/);
  assert.deepEqual(Object.keys(JSON.parse(received.raw)).sort(), ['createdAt', 'data', 'env', 'id', 'type']);
  assert.equal(received.env, 'env_dev');
  assert.ok(Math.abs(Date.parse(received.createdAt) - Date.now()) < 60_000);
  const valid = ajv.compile(webhookEvents[type]);
  assert.ok(valid(received.data), `${type}: ${ajv.errorsText(valid.errors)}`);
  const { properties, required } = webhookEvents[type] as { properties: object; required?: string[] };
  assert.deepEqual(
    Object.keys(received.data).sort(),
    Object.keys(properties)
      .filter((name) => required?.includes(name) || name in received.data)
      .sort(),
    `webhooks#catalogue, ${type}: exactly these fields`,
  );
  return received;
}

const about =
  (cid: string) =>
  (r: Received): boolean =>
    (r.data.conversationId ?? r.data.conversation?.id) === cid;

let users = 0;
const user = (): string => `user-${++users}`;
async function group(members: string[], ownerId?: string) {
  const { body } = await server('POST', '/v1/conversations', {
    type: 'group',
    members,
    name: 'Team',
    ...(ownerId ? { ownerId } : {}),
  });
  return body as { id: string; lastSeq: number };
}
const seen = (cid: string, type?: string): Received[] =>
  receiver.received.filter((r) => about(cid)(r) && (type === undefined || r.type === type));
/** Everything up to now was sent: rows leave the outbox in order, so all before this one are in the log. */
async function settled(): Promise<void> {
  const { id } = await group([user()]);
  await event('conversation.created', about(id));
  for (let pending = true; pending;) {
    const { body } = await server('GET', `/v1/webhooks/${webhookId}/deliveries?limit=50`);
    pending = body.data.some((d: { status: string }) => d.status === 'pending');
    if (pending) await delay(30);
  }
}

test('webhooks#catalogue, conversation.created { conversation }, for groups and direct ones', async () => {
  const [a, b] = [user(), user()];
  const { id } = await group([a, b], a);
  const { data } = await event('conversation.created', about(id));
  assert.equal(data.conversation.name, 'Team');
  assert.equal(data.conversation.lastSeq, 1);
  assert.deepEqual(data.conversation.members, [
    { userId: a, role: 'owner' },
    { userId: b, role: 'member' },
  ]);
  const direct = await server('POST', '/v1/conversations', { type: 'direct', members: [a, b] });
  await event('conversation.created', about(direct.body.id));
  await server('POST', '/v1/conversations', { type: 'direct', members: [a, b] });
  await settled();
  assert.equal(seen(direct.body.id).length, 1, 'a repeated creation changes nothing and emits nothing');
});

test('webhooks#catalogue, message.created { conversationId, seq, message } with the text; none for a duplicate or a refusal', async () => {
  const a = user();
  const { id } = await group([a]);
  const client = await clientApi(service.url, a);
  const body = { clientMsgId: 'm1', text: 'hello', metadata: { k: 1 } };
  const sent = await client('POST', `/v1/conversations/${id}/messages`, body);
  await client('POST', `/v1/conversations/${id}/messages`, body);
  const refused = await client('POST', `/v1/conversations/${id}/messages`, { clientMsgId: 'm2', text: '' });
  assert.equal(refused.status, 400);
  const { data } = await event('message.created', about(id));
  assert.deepEqual(data, { conversationId: id, seq: sent.body.seq, message: sent.body });
  await settled();
  assert.equal(seen(id, 'message.created').length, 1);
});

test('webhooks#catalogue, message.updated: seq is the event’s, message.seq the original', async () => {
  const { id } = await group([user()]);
  const sent = await server('POST', `/v1/conversations/${id}/messages`, { text: 'one' });
  await event('message.created', about(id));
  const edited = await server('PATCH', `/v1/messages/${sent.body.id}`, { text: 'two', expectedVersion: 1 });
  const conflict = await server('PATCH', `/v1/messages/${sent.body.id}`, { text: '3', expectedVersion: 1 });
  assert.equal(conflict.status, 409);
  const { data } = await event('message.updated', about(id));
  assert.equal(data.seq, sent.body.seq + 1);
  assert.equal(data.message.seq, sent.body.seq);
  assert.deepEqual(data.message, edited.body);
  await settled();
  assert.equal(seen(id, 'message.updated').length, 1, 'a version conflict emits nothing');
});

test('webhooks#catalogue, message.deleted { conversationId, seq, messageId, hard }, once', async () => {
  const { id } = await group([user()]);
  const messages = await Promise.all(
    ['a', 'b'].map((text) => server('POST', `/v1/conversations/${id}/messages`, { text })),
  );
  const [soft, hard] = messages.map((m) => m.body.id as string);
  await server('DELETE', `/v1/messages/${soft}`);
  await server('DELETE', `/v1/messages/${soft}`);
  const first = await event('message.deleted', (r) => r.data.messageId === soft);
  assert.deepEqual(first.data, { conversationId: id, seq: 4, messageId: soft, hard: false });
  await server('DELETE', `/v1/messages/${hard}?hard=true`);
  const second = await event('message.deleted', (r) => r.data.messageId === hard);
  assert.deepEqual(second.data, { conversationId: id, seq: 5, messageId: hard, hard: true });
  await settled();
  assert.equal(seen(id, 'message.deleted').length, 2, 'deleting a tombstone again emits nothing');
});

test('webhooks#catalogue, conversation.updated { conversation, changes } and conversation.deleted { conversationId }', async () => {
  const { id } = await group([user()]);
  await server('PATCH', `/v1/conversations/${id}`, { name: 'New' });
  const { data } = await event('conversation.updated', about(id));
  assert.deepEqual(data.changes, { name: 'New' });
  assert.equal(data.conversation.name, 'New');
  assert.equal(data.conversation.lastSeq, 2);
  await server('PATCH', `/v1/conversations/${id}`, { name: 'New' });
  await server('DELETE', `/v1/conversations/${id}`);
  await server('DELETE', `/v1/conversations/${id}`);
  const gone = await event('conversation.deleted', about(id));
  assert.deepEqual(gone.data, { conversationId: id });
  await settled();
  assert.deepEqual(
    seen(id).map((r) => r.type),
    ['conversation.created', 'conversation.updated', 'conversation.deleted'],
  );
});

test('webhooks#catalogue, member.added { userIds, actorId, via } and member.removed with its reason', async () => {
  const [a, b, c, d] = [user(), user(), user(), user()];
  const { id } = await group([a], a);
  const owner = await clientApi(service.url, a);
  await server('PUT', `/v1/users/${b}`, {});
  await server('PUT', `/v1/users/${c}`, {});
  await owner('POST', `/v1/conversations/${id}/members`, { userIds: [b, c] });
  const twice = await owner('POST', `/v1/conversations/${id}/members`, { userIds: [b] });
  assert.equal(twice.status, 409);
  const added = await event('member.added', about(id));
  assert.deepEqual(added.data, { conversationId: id, seq: 2, userIds: [b, c], actorId: a, via: 'added' });
  await server('POST', `/v1/conversations/${id}/members`, { userIds: [d] });
  const byServer = await event('member.added', (r) => about(id)(r) && r.data.userIds[0] === d);
  assert.deepEqual(byServer.data, { conversationId: id, seq: 3, userIds: [d], actorId: null, via: 'added' });
  await owner('DELETE', `/v1/conversations/${id}/members/${b}`);
  const removed = await event('member.removed', (r) => r.data.userId === b);
  assert.deepEqual(removed.data, { conversationId: id, seq: 4, userId: b, actorId: a, reason: 'removed' });
  await (
    await clientApi(service.url, c)
  )('DELETE', `/v1/conversations/${id}/members/${c}`);
  const left = await event('member.removed', (r) => r.data.userId === c);
  assert.deepEqual(left.data, { conversationId: id, seq: 5, userId: c, actorId: c, reason: 'left' });
  await settled();
  assert.equal(seen(id, 'member.added').length, 2);
});

// A slow machine must not reach the end of the 10 s by itself: an hour is added to them.
setUp(async () => {
  await db.query(`
    CREATE FUNCTION much_later() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN NEW.due_at := NEW.due_at + interval '1 hour'; RETURN NEW; END $$`);
  await db.query(`
    CREATE TRIGGER much_later BEFORE INSERT ON outbox FOR EACH ROW WHEN (NEW.type = 'message.read')
      EXECUTE FUNCTION much_later()`);
});

/** What waits for its 10 s and the hour: so many, each for as long; and then as if they had passed. */
async function passReadDelay(count: number): Promise<void> {
  const waiting = await db.query(
    `SELECT extract(epoch FROM due_at - created_at)::int AS seconds FROM outbox WHERE type = 'message.read'`,
  );
  assert.deepEqual(waiting, Array(count).fill({ seconds: 3_610 }));
  await db.query(`UPDATE outbox SET due_at = now() WHERE type = 'message.read'`);
  await db.query(`SELECT pg_notify('parley_work', '')`);
}

test('receipts#read-webhook, message.read { conversationId, userId, lastReadSeq }: one per member and 10 s, with the last value', async () => {
  const [a, b] = [user(), user()];
  const { id } = await group([a, b]);
  for (let i = 0; i < 5; i++) await server('POST', `/v1/conversations/${id}/messages`, { text: `${i}` });
  const [first, second] = await Promise.all([clientApi(service.url, a), clientApi(service.url, b)]);
  for (const seq of [2, 3, 5, 4]) await first('POST', `/v1/conversations/${id}/read`, { seq });
  await second('POST', `/v1/conversations/${id}/read`, { seq: 3 });
  await passReadDelay(2);
  const [one, other] = await Promise.all(
    [a, b].map((u) => event('message.read', (r) => about(id)(r) && r.data.userId === u)),
  );
  assert.deepEqual(one!.data, { conversationId: id, userId: a, lastReadSeq: 5 });
  assert.deepEqual(other!.data, { conversationId: id, userId: b, lastReadSeq: 3 });
  await first('POST', `/v1/conversations/${id}/read`, { seq: 6 });
  await passReadDelay(1);
  await event('message.read', (r) => about(id)(r) && r.data.lastReadSeq === 6);
  assert.equal(seen(id, 'message.read').length, 3);
});

test('webhooks#payload-gone, user.deleted { userId, messages } names the id that was erased; other events show the alias from then on', async () => {
  const [a, b] = [user(), user()];
  const { id } = await group([a, b]);
  await event('conversation.created', about(id));
  await server('DELETE', `/v1/users/${a}`);
  const kept = await event('user.deleted', (r) => r.data.userId === a);
  assert.deepEqual(kept.data, { userId: a, messages: 'anonymize' });
  const client = await clientApi(service.url, b);
  await client('POST', `/v1/conversations/${id}/messages`, { clientMsgId: '1', text: 'mine' });
  await server('DELETE', `/v1/users/${b}?messages=delete`);
  const erased = await event('user.deleted', (r) => r.data.userId === b);
  assert.deepEqual(erased.data, { userId: b, messages: 'delete' });
  const removed = await event('member.removed', about(id));
  assert.match(removed.data.userId, /^deleted:/);
  const gone = await event('message.deleted', about(id));
  assert.equal(gone.data.hard, true);
  const unknown = await server('DELETE', `/v1/users/${a}`);
  assert.equal(unknown.status, 404);
  await settled();
  assert.equal(receiver.received.filter((r) => r.type === 'user.deleted').length, 2);
});

test('webhooks#names-at-send, notification.needed { conversationId, messageId, recipientIds, mentionedIds }: users are named as they are called when it is sent', async () => {
  const [a, b] = [user(), user()];
  const { id } = await group([a, b]);
  const sent = await server('POST', `/v1/conversations/${id}/messages`, { text: 'hello' });
  await db.tx(async (tx) => {
    const [conv] = await tx.query<{ env: number; no: number }>(
      'SELECT env, no FROM conversations WHERE id = $1',
      [id],
    );
    const users = await tx.query<{ no: number }>(
      'SELECT no FROM users WHERE env = $1 AND id = ANY($2) ORDER BY id',
      [conv!.env, [a, b]],
    );
    await emit(tx, consumers.webhooks.bit, {
      env: conv!.env,
      type: 'notification.needed',
      conv: conv!.no,
      message: sent.body.seq,
      users: users.map((u) => u.no),
      data: { mentioned: [users[0]!.no] },
    });
  });
  const { data } = await event('notification.needed', about(id));
  assert.deepEqual(
    { ...data, recipientIds: data.recipientIds.sort() },
    {
      conversationId: id,
      messageId: sent.body.id,
      recipientIds: [a, b].sort(),
      mentionedIds: [[a, b].sort()[0]],
    },
  );
});

test('webhooks#order: every event has an id of its own, and comes once where the receiver answers', async () => {
  const ids = receiver.received.map((r) => r.id);
  assert.equal(new Set(ids).size, ids.length);
});
