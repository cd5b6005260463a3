import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { webhookEventNames } from '@parley/protocol';
import type { WebhookDelivery } from '@parley/protocol';
import { removeExpired } from '../../src/features/retention/retention.ts';
import { dump } from '../core/tools.ts';
import { assertError } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { use, useService } from '../support/use.ts';
import { ok, startReceiver, status } from './receiver.ts';
import type { Received } from './receiver.ts';
import { addEndpoint, deliveries, delivery, pass } from './tools.ts';

/** A payload is what was committed with its event: the same bytes on every attempt and replay, whatever happened since. */

const { server, scene, db } = useService({ own: true });
const receiver = use(startReceiver, (r) => r.close());
let endpoint: { id: string; secret: string };
let owner: Actor;
let member: Actor;

beforeEach(async () => {
  receiver.answer = ok;
  receiver.received.length = 0;
  endpoint = await addEndpoint(server, receiver.url, [...webhookEventNames]);
  [owner, member] = await Promise.all([scene.actor('owner'), scene.actor('member')]);
});
afterEach(() => server('DELETE', `/v1/webhooks/${endpoint.id}`));

const group = () => scene.group(owner, [member], { name: 'First', metadata: { color: 'red' } });
/** While `run` runs nothing leaves the outbox: what it does comes before any delivery is made. */
const beforeDispatch = <T>(run: () => Promise<T>): Promise<T> =>
  db.tx(async (tx) => {
    await tx.query('LOCK TABLE webhook_deliveries IN EXCLUSIVE MODE');
    return run();
  });
const of = (type: string, cid: string) => (r: Received) =>
  r.type === type && (r.data.conversationId ?? r.data.conversation?.id) === cid;
const record = (received: Received): Promise<WebhookDelivery> =>
  delivery(server, endpoint.id, (d) => d.eventId === received.id && d.status !== 'pending');
const replay = (id: string) => server('POST', `/v1/webhooks/${endpoint.id}/deliveries/${id}/replay`);

/** A replay has the bytes of the first. */
async function sameAgain(received: Received): Promise<void> {
  const count = receiver.received.filter((r) => r.id === received.id).length;
  assert.equal((await replay((await record(received)).id)).status, 202);
  const all = await receiver.wait(count + 1, (r) => r.id === received.id);
  for (const { raw } of all) assert.equal(raw, received.raw);
}

test('a message edited or deleted before it is delivered arrives as it was sent, and its edits as they were', async () => {
  const { id } = await group();
  const [edited, deleted] = await beforeDispatch(async () => {
    const sent = [await scene.send(owner, id, { text: 'one' }), await scene.send(owner, id, { text: 'two' })];
    const path = `/v1/messages/${sent[0].id}`;
    await owner.api('PATCH', path, { text: 'one, mended', expectedVersion: 1 });
    await owner.api('PATCH', path, { text: 'one, again', metadata: { n: 1 }, expectedVersion: 2 });
    await owner.api('DELETE', path);
    await owner.api('DELETE', `/v1/messages/${sent[1].id}`);
    return sent;
  });
  const created = await receiver.wait(2, of('message.created', id));
  assert.deepEqual(
    created.map((r) => r.data.message).sort((a, b) => a.seq - b.seq),
    [edited, deleted],
  );
  const updated = (await receiver.wait(2, of('message.updated', id))).sort((a, b) => a.data.seq - b.data.seq);
  assert.deepEqual(
    updated.map((r) => [r.data.message.version, r.data.message.text, r.data.message.metadata]),
    [
      [2, 'one, mended', {}],
      [3, 'one, again', { n: 1 }],
    ],
  );
  for (const received of [...created, ...updated]) await sameAgain(received);
});

test('every attempt has the same bytes, though the message changes between them', async () => {
  const { id } = await group();
  await receiver.next('conversation.created');
  receiver.answer = status(500);
  const sent = await scene.send(owner, id, { text: 'one' });
  await delivery(server, endpoint.id, (d) => d.eventType === 'message.created' && d.attempts.length === 1);
  await owner.api('PATCH', `/v1/messages/${sent.id}`, { text: 'two', expectedVersion: 1 });
  await pass(db, '1 minute');
  // The next attempt has its time once this one is recorded.
  await delivery(server, endpoint.id, (d) => d.eventType === 'message.created' && d.attempts.length === 2);
  await owner.api('DELETE', `/v1/messages/${sent.id}`);
  receiver.answer = ok;
  await pass(db, '1 hour');
  const attempts = await receiver.wait(3, of('message.created', id));
  assert.equal(attempts[0]!.data.message.text, 'one');
  assert.deepEqual(new Set(attempts.map((r) => r.raw)).size, 1);
  await sameAgain(attempts[0]!);
});

test('conversation.created and conversation.updated show the name and members of their time', async () => {
  const late = await scene.actor();
  const { id } = await beforeDispatch(async () => {
    const made = await group();
    await owner.api('PATCH', `/v1/conversations/${made.id}`, { name: 'Second' });
    await owner.api('POST', `/v1/conversations/${made.id}/members`, { userIds: [late.id] });
    await owner.api('PATCH', `/v1/conversations/${made.id}`, { name: 'Third' });
    await owner.api('DELETE', `/v1/conversations/${made.id}/members/${member.id}`);
    return made;
  });
  const created = await receiver.next('conversation.created', (r) => r.data.conversation.id === id);
  const [second, third] = (await receiver.wait(2, of('conversation.updated', id))).sort(
    (a, b) => a.data.conversation.lastSeq - b.data.conversation.lastSeq,
  );
  const seen = ({ data: { conversation: c } }: Received) => [
    c.name,
    c.lastSeq,
    c.members.map((m: { userId: string }) => m.userId).sort(),
  ];
  assert.deepEqual(seen(created), ['First', 1, [owner.id, member.id].sort()]);
  assert.deepEqual(seen(second!), ['Second', 2, [owner.id, member.id].sort()]);
  assert.deepEqual(seen(third!), ['Third', 4, [owner.id, member.id, late.id].sort()]);
  for (const received of [created, second!, third!]) await sameAgain(received);
});

test('a hard deletion takes the content out of what is kept: such a delivery fails and cannot be replayed', async () => {
  const { id } = await group();
  receiver.answer = (r, res) => status(r.type.startsWith('message.') ? 500 : 204)(r, res);
  const sent = await scene.send(owner, id, { text: 'a secret phrase' });
  await owner.api('PATCH', `/v1/messages/${sent.id}`, { text: 'another secret phrase', expectedVersion: 1 });
  const pending = (type: string) =>
    delivery(server, endpoint.id, (d) => d.eventType === type && d.attempts.length === 1);
  const [created, updated] = [await pending('message.created'), await pending('message.updated')];
  assert.ok((await dump(db)).includes('secret phrase'));
  await server('DELETE', `/v1/messages/${sent.id}?hard=true`);
  assert.equal((await dump(db)).includes('secret phrase'), false);
  receiver.answer = ok;
  await pass(db, '1 minute');
  for (const { eventId } of [created, updated]) {
    const failed = await delivery(server, endpoint.id, (d) => d.eventId === eventId && d.status === 'failed');
    assert.match(failed.attempts.at(-1)!.error!, /not kept any more/);
    assert.equal(failed.payloadAvailable, false);
    assertError(await replay(failed.id), 404, 'not_found');
  }
  const deleted = await receiver.next('message.deleted', of('message.deleted', id));
  assert.deepEqual(deleted.data, { conversationId: id, seq: sent.seq + 2, messageId: sent.id, hard: true });
  await sameAgain(deleted);
});

test('an erasure does the same with whatever names the user; what came after shows the alias', async () => {
  const { id } = await group();
  const sent = await scene.send(member, id, { text: 'mine' });
  const kept = await scene.send(owner, id, { text: 'unconcerned' });
  await member.api('PATCH', `/v1/messages/${sent.id}`, { text: 'mine still', expectedVersion: 1 });
  await server('PATCH', `/v1/conversations/${id}`, { name: 'Second' });
  await scene.send(member, id, { text: 'never edited' });
  const before = await receiver.wait(6, (r) => of(r.type, id)(r));
  await Promise.all(before.map(record));
  assert.equal((await server('DELETE', `/v1/users/${member.id}`)).status, 204);
  const rows = await db.query<{ kept: string }>('SELECT data AS kept FROM webhook_payloads');
  assert.equal(JSON.stringify(rows).includes(member.id), false);
  await server('PATCH', `/v1/conversations/${id}`, { name: 'Third' });
  const later = await receiver.next('conversation.updated', (r) => r.data.conversation.name === 'Third');
  assert.equal(JSON.stringify(later.data).includes('deleted:'), true);
  await record(later);
  const available = new Map(
    (await deliveries(server, endpoint.id)).map((d) => [d.eventId, d.payloadAvailable]),
  );
  for (const received of before) {
    const concerned = received.raw.includes(member.id);
    assert.equal(available.get(received.id), !concerned, received.type);
    if (concerned) assertError(await replay((await record(received)).id), 404, 'not_found');
    else await sameAgain(received);
  }
  assert.ok(before.some((r) => r.data.message?.id === kept.id && !r.raw.includes(member.id)));
  await sameAgain(later);
});

test('a message that nobody changes is not kept; where no endpoint is, nothing is', async () => {
  const { id } = await group();
  const kept = await db.query('SELECT 1 FROM webhook_payloads');
  await scene.send(owner, id);
  await receiver.wait(2, (r) => of(r.type, id)(r));
  assert.deepEqual(await db.query('SELECT 1 FROM webhook_payloads'), kept);
  await server('DELETE', `/v1/webhooks/${endpoint.id}`);
  await db.query('DELETE FROM webhook_payloads');
  const sent = await scene.send(owner, id);
  await owner.api('PATCH', `/v1/messages/${sent.id}`, { text: 'two', expectedVersion: 1 });
  await server('PATCH', `/v1/conversations/${id}`, { name: 'Second' });
  assert.deepEqual(await db.query('SELECT 1 FROM webhook_payloads'), []);
});

test('what is kept goes when no attempt can ask for it any more; that of a suspended environment waits', async () => {
  const keep = (event: string, env: string, hours: number) =>
    db.query(
      `INSERT INTO webhook_payloads (event_id, env, conv, data, event_at)
       SELECT $1, no, 1, '{}', now() - $3 * interval '1 hour' FROM environments WHERE id = $2`,
      [event, env, hours],
    );
  await db.query(`UPDATE environments SET status = 'suspended' WHERE id = 'env_other'`);
  await keep('evt_young', 'env_dev', 24 * 7 - 1);
  await keep('evt_old', 'env_dev', 24 * 7 + 1);
  await keep('evt_waiting', 'env_other', 24 * 7 + 1);
  await keep('evt_waited', 'env_other', 24 * 31);
  assert.equal((await removeExpired(db, 7 * 86_400_000))['webhook_payloads'], 2);
  const left = await db.query<{ id: string }>(
    'SELECT event_id AS id FROM webhook_payloads WHERE conv = 1 ORDER BY 1',
  );
  assert.deepEqual(
    left.map((r) => r.id),
    ['evt_waiting', 'evt_young'],
  );
  await db.query(`UPDATE environments SET status = 'active' WHERE id = 'env_other'`);
});

test('webhooks#schedule: a replay at the end of the 72 hours has the same bytes at every attempt, though the message changed', async () => {
  const { id } = await group();
  const sent = await scene.send(owner, id, { text: 'one' });
  await owner.api('PATCH', `/v1/messages/${sent.id}`, { text: 'two', expectedVersion: 1 });
  const [created] = await receiver.wait(1, of('message.created', id));
  const first = await record(created!);
  receiver.answer = status(500);
  assert.equal((await replay(first.id)).status, 202);
  await delivery(server, endpoint.id, (d) => d.eventId === created!.id && d.attempts[0]?.status === 500);
  await db.query(`UPDATE webhook_payloads SET event_at = event_at - interval '131 hours'`);
  await removeExpired(db, 7 * 86_400_000);
  receiver.answer = ok;
  await pass(db, '12 s');
  const all = await receiver.wait(3, (r) => r.id === created!.id);
  for (const { raw } of all) assert.equal(raw, created!.raw);
});

test('an event from before payloads were kept is told as things are now', async () => {
  const id = await beforeDispatch(async () => {
    const { id } = await group();
    const sent = await scene.send(owner, id, { text: 'one' });
    await owner.api('PATCH', `/v1/messages/${sent.id}`, { text: 'two', expectedVersion: 1 });
    await server('PATCH', `/v1/conversations/${id}`, { name: 'Second' });
    await db.query(
      'DELETE FROM webhook_payloads p USING conversations c WHERE c.id = $1 AND p.conv = c.no AND p.env = c.env',
      [id],
    );
    return id;
  });
  const [created] = await receiver.wait(1, of('conversation.created', id));
  assert.equal(created!.data.conversation.name, 'Second');
  const [updated] = await receiver.wait(1, of('message.updated', id));
  assert.equal(updated!.data.message.text, 'two');
  const [message] = await receiver.wait(1, of('message.created', id));
  assert.equal(message!.data.message.text, 'two');
});

test('webhooks#payloads: a message that was soft-deleted before payloads were kept arrives as its tombstone, and again in a replay', async () => {
  const { id, tombstone } = await beforeDispatch(async () => {
    const { id } = await group();
    const sent = await scene.send(owner, id, { text: 'one' });
    const { body } = await owner.api('DELETE', `/v1/messages/${sent.id}`);
    await db.query(
      'DELETE FROM webhook_payloads p USING conversations c WHERE c.id = $1 AND p.conv = c.no AND p.env = c.env',
      [id],
    );
    return { id, tombstone: body };
  });
  const [created] = await receiver.wait(1, of('message.created', id));
  assert.deepEqual(created!.data.message, tombstone);
  assert.equal(created!.data.message.text, null);
  await sameAgain(created!);
});

test('webhooks#disabled: a payload that is available no more is no failure of its endpoint', async () => {
  const { id } = await group();
  receiver.answer = (r, res) => status(r.type === 'message.created' ? 500 : 204)(r, res);
  const sent = await scene.send(owner, id, { text: 'gone soon' });
  const first = await delivery(
    server,
    endpoint.id,
    (d) => d.eventType === 'message.created' && d.attempts.length === 1,
  );
  await server('DELETE', `/v1/messages/${sent.id}?hard=true`);
  // A success after the failure: the endpoint works.
  await record(await receiver.next('message.deleted', of('message.deleted', id)));
  await pass(db, '1 minute');
  await delivery(server, endpoint.id, (d) => d.eventId === first.eventId && d.status === 'failed');
  const [row] = await db.query<{ since: string | null }>(
    'SELECT failing_since AS since FROM webhook_endpoints WHERE id = $1',
    [endpoint.id],
  );
  assert.equal(row!.since, null);
});
