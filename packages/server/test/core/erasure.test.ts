import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Conversation, ConversationListItem, Message } from '@parley/protocol';
import { assertError, clientApi } from '../support/api.ts';
import { environments } from '../support/service.ts';
import { allEvents, allMessages, assertContiguous, createGroup, dump, seedMessages } from './tools.ts';
import { useService } from '../support/use.ts';

const { service, server, db, restart } = useService({ own: true });
let people = 0;

const unreadOf = async (user: string, conversation: string): Promise<number> => {
  const { body } = await server('GET', `/v1/conversations?userId=${user}`);
  return (body as { data: ConversationListItem[] }).data.find((c) => c.id === conversation)!.unreadCount;
};

/** A person who left traces wherever one can. */
async function person(id: string) {
  const words = `words number ${++people}`;
  const key = () => ({ 'idempotency-key': randomUUID() });
  await server('PUT', `/v1/users/${id}`, { name: `Name of ${id}`, metadata: { of: id } });
  const me = await clientApi(service.url, id);
  const group = await createGroup(server, [id, 'friend'], { ownerId: id });
  const left = await createGroup(server, [id, 'friend']);
  const created = await me('POST', '/v1/conversations', { type: 'direct', members: ['friend'] }, key());
  const direct = (created.body as Conversation).id;
  const tokenKey = key();
  await server('POST', '/v1/tokens', { userId: id }, tokenKey);
  const sendKey = key();
  const texts = [group, left, direct].map((c) => `/v1/conversations/${c}/messages`);
  for (const [i, path] of texts.entries()) {
    await me('POST', path, { clientMsgId: `c${i}`, text: words, metadata: { words } });
    await server('POST', path, { text: 'by friend', senderId: 'friend' });
    await server('POST', path, { text: words, senderId: id }, i === 0 ? sendKey : {});
  }
  const last = (await allMessages(server, group)).at(-1)!;
  await me('PATCH', `/v1/messages/${last.id}`, { text: `${words} edited`, expectedVersion: 1 }, key());
  await me('POST', `/v1/conversations/${group}/read`, { seq: 2 });
  await server('PATCH', `/v1/conversations/${group}/members/friend`, { role: 'owner' }, key());
  await me('PATCH', `/v1/conversations/${group}`, { name: 'renamed' });
  await me('DELETE', `/v1/conversations/${left}/members/${id}`);
  const addKey = key();
  const add = () => server('POST', `/v1/conversations/${group}/members`, { userIds: [id] }, addKey);
  assertError(await add(), 409, 'already_member');
  return { id, words, me, group, left, direct, sendKey, tokenKey, add };
}

describe('users#erasure-everywhere: erasure leaves the user id nowhere', () => {
  test('anonymize: the messages stay, under another name', async () => {
    const p = await person('erased-anna');
    assert.ok((await dump(db)).includes(p.id), 'the search finds what is there');
    const before = await allMessages(server, p.group);
    assert.equal((await server('DELETE', `/v1/users/${p.id}`)).status, 204);

    const text = await dump(db);
    assert.equal(text.includes(p.id), false, 'the id is in no table');
    assert.ok(text.includes(p.words), 'the words stay');
    const after = await allMessages(server, p.group);
    const alias = after[0]!.senderId!;
    assert.match(alias, /^deleted:/);
    assert.deepEqual(
      after,
      before.map((m) => (m.senderId === p.id ? { ...m, senderId: alias } : m)),
    );
    for (const id of [p.group, p.left, p.direct]) {
      const events = await allEvents(server, id);
      assertContiguous(events.map((e) => e.seq));
      assert.equal(JSON.stringify(events).includes(p.id), false);
    }
    assertError(await p.me('GET', '/v1/conversations'), 401, 'token_invalid');
    assertError(await server('DELETE', `/v1/users/${p.id}`), 404, 'not_found');
  });

  test('delete: the messages go too, the stream stays contiguous, counts stay exact', async () => {
    const p = await person('erased-dirk');
    assert.equal(await unreadOf('friend', p.group), 2);
    assert.equal((await server('DELETE', `/v1/users/${p.id}?messages=delete`)).status, 204);

    const text = await dump(db);
    assert.equal(text.includes(p.id), false, 'the id is in no table');
    assert.equal(text.includes(p.words), false, 'the words are in no table');
    for (const id of [p.group, p.left, p.direct]) {
      const events = await allEvents(server, id);
      assertContiguous(events.map((e) => e.seq));
      for (const word of [p.id, p.words]) assert.equal(JSON.stringify(events).includes(word), false);
      const messages = await allMessages(server, id);
      assert.deepEqual(
        messages.map((m) => [m.senderId, m.text]),
        [['friend', 'by friend']],
      );
      assert.equal(await unreadOf('friend', id), 0, 'only its own message is left');
      const { members } = (await server('GET', `/v1/conversations/${id}`)).body as Conversation;
      assert.equal(members.length, id === p.direct ? 2 : 1, 'the user left its groups');
    }
  });

  test('stored answers that showed the user are empty', async () => {
    const p = await person('erased-ida');
    await server('DELETE', `/v1/users/${p.id}?messages=delete`);
    const replay = await fetch(`${service.url}/v1/conversations/${p.group}/messages`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${environments.dev.secretKey}`,
        'content-type': 'application/json',
        ...p.sendKey,
      },
      body: JSON.stringify({ text: p.words, senderId: p.id }),
    });
    // It had the message: the status stays, and that it is a replay; the body is gone.
    assert.deepEqual(
      [replay.status, replay.headers.get('idempotent-replayed'), await replay.text()],
      [201, 'true', ''],
    );
    const rows = await db.query<{ status: number; subjects: string[] | null }>(
      'SELECT status, subjects FROM idempotency WHERE key = ANY($1) AND body IS NOT NULL',
      [[p.sendKey, p.tokenKey].map((k) => k['idempotency-key'])],
    );
    assert.deepEqual(rows, [], 'no stored body with the token or the message');
    const again = await p.add().catch((error: Error) => error.message);
    assert.equal(JSON.stringify(again).includes(p.id), false, 'an error message does not name the user');
  });
});

describe('messages#no-old-words: edits and deletes leave no old words behind', () => {
  for (const [name, change] of [
    ['edit', (id: string) => server('PATCH', `/v1/messages/${id}`, { text: 'new', expectedVersion: 1 })],
    ['soft delete', (id: string) => server('DELETE', `/v1/messages/${id}`)],
    ['hard delete', (id: string) => server('DELETE', `/v1/messages/${id}?hard=true`)],
  ] as const)
    test(name, async () => {
      const words = `old-${name.replace(' ', '-')}`;
      const id = await createGroup(server, ['friend']);
      const path = `/v1/conversations/${id}/messages`;
      const key = { 'idempotency-key': randomUUID() };
      const body = { text: words, clientMsgId: 'c1' };
      const sent = (await server('POST', path, body, key)).body as Message;
      await server('POST', path, { text: 'reply', replyTo: sent.id });
      assert.ok((await dump(db)).includes(words));
      assert.ok((await change(sent.id)).status < 300);
      assert.equal((await dump(db)).includes(words), false);
      assert.equal(JSON.stringify(await allEvents(server, id)).includes(words), false);
      const again = (await server('POST', path, body)).body as Message;
      assert.deepEqual([again.id, again.seq], [sent.id, sent.seq], 'and it never commits twice');
    });
});

test('under an Idempotency-Key too, the person is cut off at once and the messages go batch by batch', async () => {
  const id = await createGroup(server, ['erased-keyed', 'friend']);
  await server('POST', `/v1/conversations/${id}/messages`, { text: 'keyed words', senderId: 'erased-keyed' });
  const key = { 'idempotency-key': randomUUID() };
  const erase = () => server('DELETE', '/v1/users/erased-keyed?messages=delete', undefined, key);
  const waiting = () =>
    db.query(
      `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%conversations%'`,
    );
  const erasing = await db.tx(async (tx) => {
    await tx.query('SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE', [id]);
    const promise = erase();
    while ((await waiting()).length === 0);
    assertError(await server('GET', '/v1/users/erased-keyed'), 404, 'not_found');
    assert.equal((await db.query(`SELECT 1 FROM messages WHERE text = 'keyed words'`)).length, 1);
    return { promise };
  });
  const answer = await erasing.promise;
  assert.equal(answer.status, 204, JSON.stringify(answer.body));
  const text = await dump(db);
  assert.equal(text.includes('keyed words') || text.includes('erased-keyed'), false);
  const again = await erase();
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [204, 'true']);
  const route = createHash('sha256').update('DELETE /v1/users/erased-keyed?messages=delete').digest();
  assert.deepEqual(
    await db.query('SELECT 1 FROM idempotency WHERE route = $1', [route]),
    [],
    'who guesses the id cannot check it against the store',
  );
});

test('an erasure that kill -9 cuts off is finished after the restart', async () => {
  const id = await createGroup(server, ['erased-late', 'friend']);
  const count = 3_000;
  await seedMessages(db, { conversations: [id], sender: 'erased-late', count, text: 'late words' });
  assert.equal(await unreadOf('friend', id), count);
  const left = async () =>
    (await db.query<{ n: number }>('SELECT count(*) AS n FROM messages WHERE text = $1', ['late words']))[0]!
      .n;
  // Somebody holds one of the messages, so that the erasure stops half-way.
  const held = db.tx(async (tx) => {
    const [middle] = await tx.query<{ seq: number }>(
      'SELECT seq FROM messages WHERE text = $1 ORDER BY seq OFFSET $2 LIMIT 1',
      ['late words', count / 2],
    );
    await tx.query('SELECT 1 FROM messages WHERE text = $1 AND seq = $2 FOR UPDATE', [
      'late words',
      middle!.seq,
    ]);
    const erasing = server('DELETE', '/v1/users/erased-late?messages=delete').catch(() => undefined);
    while ((await left()) === count);
    await service.kill();
    await erasing;
  });
  // The store ends with the service; whether it still hears the end of this transaction is a race.
  await held.catch(() => undefined);
  await restart();
  const half = await left();
  assert.ok(half > 0 && half < count, `it was cut off half-way: ${half} left`);
  assert.equal(half % 50, 0, 'each batch is whole or not at all');
  assert.equal(await unreadOf('friend', id), half, 'and the counts are right in between');
  // The sweep at the start leaves erasures of the last minute to the process that runs them.
  await db.query(`UPDATE users SET erased_at = erased_at - interval '2 minutes' WHERE erasing IS NOT NULL`);
  await restart();
  for (let rows = [{}]; rows.length > 0;)
    rows = await db.query('SELECT 1 FROM users WHERE erasing IS NOT NULL');
  assert.equal(await left(), 0);
  assert.equal((await dump(db)).includes('erased-late'), false);
  assert.equal(await unreadOf('friend', id), 0);
  const [seqs] = await db.query<{ n: number; last: number }>(
    `SELECT (SELECT count(*) FROM messages m WHERE m.conv = c.no) + (SELECT count(*) FROM events e WHERE e.conv = c.no) AS n,
       c.last_seq AS last FROM conversations c WHERE id = $1`,
    [id],
  );
  // created, each message and its deletion, and the departure: every seq once.
  assert.deepEqual(seqs, { n: 2 * count + 2, last: 2 * count + 2 });
  assert.deepEqual(await server('GET', `/v1/conversations/${id}/messages`).then((a) => a.body as unknown), {
    data: [],
    hasMore: false,
  });
});
