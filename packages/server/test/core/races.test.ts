import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Conversation, Message } from '@parley/protocol';
import { assertError, clientApi } from '../support/api.ts';
import type { Answer, Api } from '../support/api.ts';
import { allEvents, allMessages, assertContiguous, createGroup, outsidePostgres, times } from './tools.ts';
import { use, useService } from '../support/use.ts';

/** Two processes of the service on one PostgreSQL: what holds here holds in one process too. */

const postgres = use(outsidePostgres, (p) => p.dispose());
const settings = () => ({
  DATABASE_URL: postgres.url,
  CHAT_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  CHAT_ALLOW_PRIVATE_TARGETS: 'true',
});
const used = [useService({ env: settings }), useService({ env: settings })] as const;
const [a, b] = [used[0].service, used[1].service];
const servers = [used[0].server, used[1].server] as const;
const either = (i: number): Api => servers[i % 2]!;

const statuses = (answers: Answer[]): Record<number, number> => {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

describe('events#seq: seq is assigned at commit, per conversation', () => {
  for (const [name, api] of [
    ['one process', () => servers[0]],
    ['two processes', either],
  ] as const)
    test(`100 concurrent sends in one conversation, ${name}: contiguous, none lost`, async () => {
      const id = await createGroup(servers[0], ['ann', 'bob']);
      const answers = await Promise.all(
        times(100, (i) =>
          api(i)('POST', `/v1/conversations/${id}/messages`, {
            text: `m${i}`,
            senderId: i % 3 ? 'ann' : 'bob',
          }),
        ),
      );
      assert.deepEqual(statuses(answers), { 201: 100 });
      const sent = answers.map((a) => a.body as Message).sort((a, b) => a.seq - b.seq);
      assertContiguous(
        sent.map((m) => m.seq),
        2,
      );
      const kept = await allMessages(servers[1], id);
      assert.deepEqual(
        kept.map((m) => [m.seq, m.id, m.text]),
        sent.map((m) => [m.seq, m.id, m.text]),
      );
      assertContiguous((await allEvents(servers[0], id)).map((e) => e.seq));
    });

  test('100 concurrent sends, edits and changes across five conversations', async () => {
    const ids = await Promise.all(times(5, () => createGroup(servers[0], ['ann', 'bob'])));
    const first = await Promise.all(
      ids.map((id) => servers[0]('POST', `/v1/conversations/${id}/messages`, { text: 'first' })),
    );
    const answers = await Promise.all(
      times(100, (i) => {
        const id = ids[i % 5]!;
        if (i % 10 === 9) return either(i)('PATCH', `/v1/conversations/${id}`, { name: `n${i}` });
        if (i % 10 === 8)
          return either(i)('PATCH', `/v1/messages/${(first[i % 5]!.body as Message).id}`, {
            metadata: { i },
            expectedVersion: 1,
          });
        return either(i)('POST', `/v1/conversations/${id}/messages`, { text: `m${i}` });
      }),
    );
    // i ≡ 8 (mod 10) always falls on conversation 3: ten edits of one message, one winner.
    assert.deepEqual(statuses(answers), { 200: 11, 201: 80, 409: 9 });
    for (const [n, id] of ids.entries()) {
      const events = await allEvents(either(n), id);
      assertContiguous(events.map((e) => e.seq));
      const conversation = (await either(n)('GET', `/v1/conversations/${id}`)).body as Conversation;
      assert.equal(conversation.lastSeq, events.length);
    }
  });
});

test('messages#edit: 100 concurrent edits with one expectedVersion have one winner', async () => {
  const id = await createGroup(servers[0], ['ann']);
  const { body: message } = await servers[0]('POST', `/v1/conversations/${id}/messages`, { text: 'a' });
  const answers = await Promise.all(
    times(100, (i) =>
      either(i)('PATCH', `/v1/messages/${(message as Message).id}`, { text: `e${i}`, expectedVersion: 1 }),
    ),
  );
  assert.deepEqual(statuses(answers), { 200: 1, 409: 99 });
  const winner = answers.find((a) => a.status === 200)!.body as Message;
  for (const answer of answers) if (answer.status === 409) assertError(answer, 409, 'version_conflict');
  const kept = (await servers[1]('GET', `/v1/messages/${winner.id}`)).body as Message;
  assert.deepEqual([kept.text, kept.version, kept.seq], [winner.text, 2, 2]);
  assert.deepEqual(
    (await allEvents(servers[0], id)).map((e) => e.type),
    ['conversation.created', 'message.new', 'message.updated'],
  );
});

test('conversations#direct: 100 concurrent creations of a direct conversation make one', async () => {
  const answers = await Promise.all(
    times(100, (i) =>
      either(i)('POST', '/v1/conversations', {
        type: 'direct',
        members: i % 4 < 2 ? ['dora', 'emil'] : ['emil', 'dora'],
      }),
    ),
  );
  assert.deepEqual(statuses(answers), { 200: 99, 201: 1 });
  const ids = new Set(answers.map((a) => (a.body as Conversation).id));
  assert.equal(ids.size, 1);
  const [id] = ids;
  assert.deepEqual(
    (await allEvents(servers[0], id!)).map((e) => e.type),
    ['conversation.created'],
  );
});

test('conversations#direct-revived: a soft-deleted direct conversation comes back once, under 20 concurrent creations', async () => {
  const create = (i: number) =>
    either(i)('POST', '/v1/conversations', { type: 'direct', members: ['finn', 'gwen'] });
  const { id } = (await create(0)).body as Conversation;
  assert.equal((await servers[0]('DELETE', `/v1/conversations/${id}`)).status, 204);
  assert.deepEqual(statuses(await Promise.all(times(20, create))), { 200: 19, 201: 1 });
  assert.deepEqual(
    (await allEvents(servers[0], id)).map((e) => e.type),
    ['conversation.created', 'conversation.deleted', 'conversation.created'],
  );
});

test('messages#dedup: 50 concurrent sends with one clientMsgId commit once', async () => {
  const id = await createGroup(servers[0], ['ann', 'bob']);
  for (const senderId of ['ann', 'bob', undefined]) {
    const answers = await Promise.all(
      times(50, (i) =>
        either(i)('POST', `/v1/conversations/${id}/messages`, {
          text: `try ${i}`,
          clientMsgId: 'same',
          ...(senderId === undefined ? {} : { senderId }),
        }),
      ),
    );
    assert.deepEqual(statuses(answers), { 201: 50 });
    const [one, ...others] = new Set(answers.map((a) => JSON.stringify(a.body)));
    assert.deepEqual(others, [], 'every answer is the one message');
    assert.equal((JSON.parse(one!) as Message).senderId, senderId ?? null);
  }
  const events = await allEvents(servers[0], id);
  assertContiguous(events.map((e) => e.seq));
  assert.equal(events.length, 4, 'one message a sender: the key is (conversation, sender, clientMsgId)');
});

describe('api#idempotency: one key, one act', () => {
  test('50 concurrent group creations with one Idempotency-Key make one group', async () => {
    const key = { 'idempotency-key': randomUUID() };
    const body = { type: 'group', members: ['hugo'], name: 'once' };
    const answers = await Promise.all(times(50, (i) => either(i)('POST', '/v1/conversations', body, key)));
    assert.deepEqual(statuses(answers), { 201: 50 });
    assert.equal(new Set(answers.map((a) => JSON.stringify(a.body))).size, 1);
    assert.equal(answers.filter((a) => a.headers.get('idempotent-replayed') !== 'true').length, 1);
    const list = (await servers[0]('GET', '/v1/conversations?userId=hugo')).body as { data: unknown[] };
    assert.equal(list.data.length, 1);
  });

  test('50 concurrent sends with one Idempotency-Key and no clientMsgId commit once', async () => {
    const id = await createGroup(servers[0], ['ann']);
    const key = { 'idempotency-key': randomUUID() };
    const path = `/v1/conversations/${id}/messages`;
    const answers = await Promise.all(times(50, (i) => either(i)('POST', path, { text: 'once' }, key)));
    assert.deepEqual(statuses(answers), { 201: 50 });
    assert.equal(new Set(answers.map((a) => (a.body as Message).id)).size, 1);
    assert.equal((await allMessages(servers[0], id)).length, 1);
  });

  test('the same key with two bodies: one acts, the other is refused', async () => {
    const id = await createGroup(servers[0], ['ann']);
    const key = { 'idempotency-key': randomUUID() };
    const path = `/v1/conversations/${id}/messages`;
    const answers = await Promise.all(times(20, (i) => either(i)('POST', path, { text: `t${i % 2}` }, key)));
    assert.deepEqual(statuses(answers), { 201: 10, 422: 10 });
    for (const answer of answers) if (answer.status === 422) assertError(answer, 422, 'idempotency_mismatch');
    assert.equal((await allMessages(servers[0], id)).length, 1);
  });
});

describe('members under races', () => {
  test('members#add: 20 concurrent additions of one user: one adds, the others are already_member', async () => {
    const id = await createGroup(servers[0], ['ann']);
    const add = (i: number) => either(i)('POST', `/v1/conversations/${id}/members`, { userIds: ['new'] });
    const answers = await Promise.all(times(20, add));
    assert.deepEqual(statuses(answers), { 200: 1, 409: 19 });
    for (const answer of answers) if (answer.status === 409) assertError(answer, 409, 'already_member');
    const remove = (i: number) => either(i)('DELETE', `/v1/conversations/${id}/members/new`);
    assert.deepEqual(statuses(await Promise.all(times(20, remove))), { 204: 1, 404: 19 });
    assert.deepEqual(
      (await allEvents(servers[0], id)).map((e) => e.type),
      ['conversation.created', 'member.added', 'member.removed'],
    );
  });

  test('members#add: concurrent additions never pass 500 members', async () => {
    const id = await createGroup(
      servers[0],
      times(490, (i) => `crowd-${i}`),
    );
    const answers = await Promise.all(
      times(8, (i) =>
        either(i)('POST', `/v1/conversations/${id}/members`, { userIds: [`x${i}`, `y${i}`, `z${i}`] }),
      ),
    );
    assert.deepEqual(statuses(answers), { 200: 3, 400: 5 });
    assert.equal(
      ((await servers[0]('GET', `/v1/conversations/${id}`)).body as Conversation).members.length,
      499,
    );
  });

  test('members#remove: nothing of a removed member is committed after its removal', async () => {
    const id = await createGroup(servers[0], ['ann', 'leaver']);
    const leaver = await clientApi(b.url, 'leaver');
    const sends = times(18, (i) =>
      leaver('POST', `/v1/conversations/${id}/messages`, { clientMsgId: `l${i}`, text: `l${i}` }),
    );
    const behalf = times(40, (i) =>
      either(i)('POST', `/v1/conversations/${id}/messages`, { senderId: 'leaver', text: `b${i}` }),
    );
    await Promise.race(sends);
    const [removed, ...answers] = await Promise.all([
      servers[0]('DELETE', `/v1/conversations/${id}/members/leaver`),
      ...sends,
      ...behalf,
    ]);
    assert.equal(removed!.status, 204);
    for (const answer of answers) if (answer.status !== 201) assertError(answer, 403, 'not_member');
    const events = await allEvents(servers[0], id);
    assertContiguous(events.map((e) => e.seq));
    const end = events.find((e) => e.type === 'member.removed')!;
    assert.equal(events.at(-1)!.seq, end.seq, 'the removal is the last event');
    assert.equal(
      events.filter((e) => e.type === 'message.new').length,
      answers.filter((a) => a.status === 201).length,
    );
    assertError(
      await leaver('POST', `/v1/conversations/${id}/messages`, { clientMsgId: 'late', text: 'late' }),
      403,
      'not_member',
    );
  });
});

test('receipts#unread: unread counts stay exact under concurrent sends, reads and deletes', async () => {
  const id = await createGroup(servers[0], ['reader', 'writer']);
  const reader = await clientApi(a.url, 'reader');
  const path = `/v1/conversations/${id}`;
  const sent = await Promise.all(
    times(40, (i) => either(i)('POST', `${path}/messages`, { text: `${i}`, senderId: 'writer' })),
  );
  const ids = sent.map((a) => (a.body as Message).id);
  await Promise.all([
    ...times(20, (i) => either(i)('DELETE', `/v1/messages/${ids[i * 2]}${i % 2 ? '?hard=true' : ''}`)),
    ...times(12, (i) => reader('POST', `${path}/read`, { seq: 3 * i })),
    ...times(20, (i) =>
      either(i)('POST', `${path}/messages`, {
        text: 'more',
        ...(i % 3 ? { senderId: i % 2 ? 'reader' : 'writer' } : {}),
      }),
    ),
  ]);
  const live = (await allMessages(servers[0], id)).filter((m) => !m.deletedAt);
  const list = (await reader('GET', '/v1/conversations')).body as {
    data: { unreadCount: number; lastReadSeq: number; lastMessage: { id: string } | null }[];
  };
  const [item] = list.data;
  assert.equal(item!.lastReadSeq, 33);
  assert.equal(item!.unreadCount, live.filter((m) => m.seq > 33 && m.senderId !== 'reader').length);
  assert.equal(item!.lastMessage!.id, live.at(-1)!.id);
});
