import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { assertError } from '../support/api.ts';
import { useService } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { decide, queue, report, world } from './report-tools.ts';

/** reports.md, over REST. */

const { scene, server, sql } = useService();

test('reports#create, reports#sees: a client reports what it sees, once while it is open, and learns only the status', async () => {
  const { owner, ben, carl, stranger, cid, message } = await world(scene);
  const first = await report(carl.api, { messageId: message.id, note: 'look' });
  assert.deepEqual([first.status, Object.keys(first.body).sort()], [201, ['id', 'status']]);
  assert.match(first.body.id, /^rep_/);
  const again = await report(carl.api, { messageId: message.id }, 'spam');
  assert.deepEqual([again.status, again.body], [200, first.body]);
  const other = await report(owner.api, { messageId: message.id }, 'spam');
  assert.equal(other.status, 201);
  assert.notEqual(other.body.id, first.body.id);
  for (const target of [{ userId: ben.id }, { conversationId: cid }])
    assert.equal((await report(carl.api, target)).status, 201);

  assertError(await report(stranger.api, { messageId: message.id }), 403, 'not_member');
  assertError(await report(stranger.api, { conversationId: cid }), 403, 'not_member');
  assertError(await report(stranger.api, { userId: ben.id }), 403, 'forbidden');
  assertError(await report(carl.api, { userId: `nobody-${randomUUID()}` }), 403, 'forbidden');
  assertError(await report(server, { userId: `nobody-${randomUUID()}` }), 404, 'not_found');
  assertError(await report(carl.api, { userId: carl.id }), 400, 'invalid_request', 'userId');
  for (const bad of [
    {},
    { messageId: message.id, userId: ben.id },
    { messageId: message.id, reason: 'list' },
    { messageId: message.id, note: 'x'.repeat(1_001) },
  ])
    assertError(await report(owner.api, bad), 400, 'invalid_request');
  assertError(await carl.api('GET', '/v1/reports'), 403, 'forbidden');
  assertError(await decide(carl.api, first.body.id, { status: 'dismissed' }), 403, 'forbidden');
  assertError(await carl.api('GET', `/v1/users/${ben.id}/restrictions`), 403, 'forbidden');

  // Who has left the group sees the message no more; who is silenced or blocked still reports.
  await owner.api('DELETE', `/v1/conversations/${cid}/members/${carl.id}`);
  assertError(await report(carl.api, { conversationId: cid }), 403, 'not_member');
  await server('PUT', `/v1/users/${owner.id}/silence`, {});
  assert.equal((await report(owner.api, { conversationId: cid })).status, 201);
  assert.equal((await queue(server, `conversationId=${cid}&targetUserId=${stranger.id}`)).length, 0);
  assert.equal((await report(server, { messageId: message.id }, 'illegal')).status, 201);

  const items = await queue(server, `conversationId=${cid}`);
  const about = items.find((item) => item.target.kind === 'message');
  assert.partialDeepStrictEqual(about, {
    id: first.body.id,
    target: { messageId: message.id, seq: message.seq, conversationId: cid, userId: ben.id },
    reports: 3,
    reasons: [{ count: 1 }, { count: 1 }, { count: 1 }],
    snapshot: {
      version: 1,
      text: 'a nasty word',
      mentions: [{ type: 'user', userId: carl.id }],
      files: [],
    },
    laterSnapshots: [],
    status: 'open',
    actions: [],
    resolvedAt: null,
  });
  const entry = about.latest.find((one: { id: string }) => one.id === first.body.id);
  assert.deepEqual([entry.note, entry.reporterId, entry.reason], ['look', carl.id, 'abuse']);
  assert.deepEqual([about.firstAt, about.lastAt], [about.latest.at(-1).at, about.latest[0].at]);
  assert.deepEqual(items.map((item) => item.target.kind).sort(), ['conversation', 'message']);
  const ofUser = await queue(server, `targetUserId=${ben.id}`);
  assert.deepEqual(ofUser.map((item) => item.target.kind).sort(), ['message', 'user']);
  const page = (await server('GET', `/v1/reports?targetUserId=${ben.id}&limit=1`)).body;
  const next = await queue(server, `targetUserId=${ben.id}&limit=1&cursor=${page.nextCursor}`);
  assert.deepEqual([page.data[0].id, next[0].id], [ofUser[0].id, ofUser[1].id]);
});

test('reports#snapshot: an edit or a deletion hides nothing; deleting for good empties it, at rest it is sealed', async () => {
  const { owner, ben, carl, cid, message } = await world(scene, 'the first wording');
  await report(carl.api, { messageId: message.id });
  const edit = (text: string, expectedVersion: number) =>
    ben.api('PATCH', `/v1/messages/${message.id}`, { text, expectedVersion });
  await edit('the second wording', 1);
  await report(owner.api, { messageId: message.id });
  await edit('harmless', 2);
  await ben.api('DELETE', `/v1/messages/${message.id}`);
  assertError(await report(server, { messageId: message.id }), 404, 'not_found');
  const [item] = await queue(server, `conversationId=${cid}`);
  assert.equal(item.snapshot.text, 'the first wording');
  assert.deepEqual(
    item.laterSnapshots.map((s: any) => [s.version, s.text]),
    [[2, 'the second wording']],
  );
  const stored = await sql('SELECT * FROM reports WHERE message_id = $1', [message.id]);
  assert.equal(stored.length, 2);
  for (const row of stored) {
    assert.equal(row['snapshot'].includes('wording'), false);
    assert.doesNotMatch(JSON.stringify({ ...row, snapshot: null }), /wording/);
  }
  assert.equal((await server('DELETE', `/v1/messages/${message.id}?hard=true`)).status, 204);
  const [emptied] = await queue(server, `conversationId=${cid}`);
  assert.deepEqual([emptied.snapshot, emptied.laterSnapshots, emptied.reports], [null, [], 2]);
  assert.equal(
    (await decide(server, item.id, { status: 'resolved', actions: ['delete_message'] })).status,
    200,
  );
  // A poll says something, too.
  const poll = { question: 'How nasty?', options: [{ text: 'very' }, { text: 'most' }] };
  const asked = await scene.send(ben, cid, { poll });
  await report(carl.api, { messageId: asked.id });
  const [shown] = await queue(server, `conversationId=${cid}&status=open`);
  assert.deepEqual(shown.snapshot.poll, { question: 'How nasty?', options: ['very', 'most'] });
});

test('reports#snapshot, reports#erasure: a report that comes at the same time leaves nothing behind', async () => {
  for (let round = 0; round < 4; round++) {
    const { owner, ben, carl, cid, message } = await world(scene);
    const other = await scene.send(ben, cid, { text: 'another' });
    const answers = await Promise.all([
      report(carl.api, { messageId: message.id }),
      server('DELETE', `/v1/messages/${message.id}?hard=true`),
      report(owner.api, { messageId: other.id }),
      report(owner.api, { userId: carl.id }),
      server('DELETE', `/v1/users/${ben.id}?messages=delete`),
      server('DELETE', `/v1/users/${carl.id}`),
    ]);
    for (const { status, body } of answers) assert.ok(status < 500, JSON.stringify(body));
    const rows = await sql(
      `SELECT r.id, r.snapshot, r.kind, p.erased_at AS gone FROM reports r LEFT JOIN users p ON p.env = r.env AND p.no = r.reporter
       WHERE r.message_id = ANY($1) OR r.usr IN (SELECT no FROM users WHERE erased_at IS NOT NULL AND env = r.env AND r.kind = 'user')`,
      [[message.id, other.id]],
    );
    for (const row of rows)
      assert.deepEqual([row['snapshot'], row['gone'], row['kind']], [null, null, 'message']);
  }
});

test('reports#erasure: reports by and about an erased user go, and those of its messages are emptied', async () => {
  const { owner, ben, carl, cid, message } = await world(scene);
  const mentioning = await scene.send(owner, cid, {
    text: 'ask ben',
    mentions: [{ type: 'user', userId: ben.id }],
  });
  const first = await report(carl.api, { messageId: message.id });
  await report(owner.api, { messageId: message.id });
  await report(carl.api, { userId: ben.id });
  await report(ben.api, { messageId: mentioning.id, note: 'mine' });
  await report(carl.api, { messageId: mentioning.id });
  assert.equal((await server('DELETE', `/v1/users/${ben.id}`)).status, 204);
  assert.equal((await server('DELETE', `/v1/users/${carl.id}`)).status, 204);
  const items = await queue(server, `conversationId=${cid}`);
  assert.deepEqual(
    items.map(({ target, reports, snapshot }) => [target.messageId, reports, snapshot]),
    [[message.id, 1, null]],
  );
  assert.match(items[0].target.userId, /^deleted:/);
  const rows = await sql(
    `SELECT reporter FROM reports WHERE target IN (SELECT no FROM users WHERE env = (SELECT env FROM conversations WHERE id = $1)) AND kind = 'user' AND usr IN (SELECT sender FROM messages WHERE id = $2)`,
    [cid, message.id],
  );
  assert.deepEqual(rows, []);
  // The id of the first report still stands for all, although its reporter is gone.
  assert.equal(items[0].id, first.body.id);
  assert.equal((await decide(server, first.body.id, { status: 'dismissed' })).status, 200);
});

test('reports#decide, reports#actions: all is done in one transaction, or nothing, and webhooks hear of it', async () => {
  const { owner, ben, carl, cid, message } = await world(scene);
  const receiver = await startReceiver();
  try {
    const events = ['report.created', 'report.resolved', 'message.deleted', 'member.restricted'];
    const hook = await server('POST', '/v1/webhooks', { url: receiver.url, events });
    const { body } = await report(carl.api, { messageId: message.id, note: 'help' });
    const created = await receiver.next('report.created', (r) => r.data.reportId === body.id);
    const target = {
      kind: 'message',
      messageId: message.id,
      seq: message.seq,
      conversationId: cid,
      userId: ben.id,
    };
    assert.deepEqual(created.data, { reportId: body.id, ...target, reason: 'abuse', reporterId: carl.id });
    const second = await report(server, { messageId: message.id }, 'spam');
    const byServer = await receiver.next('report.created', (r) => r.data.reportId === second.body.id);
    assert.equal(byServer.data.reporterId, null);

    for (const [fields, param] of [
      [{ status: 'dismissed', actions: ['silence'] }, 'actions'],
      [{ status: 'resolved', until: '2099-01-01T00:00:00Z' }, 'until'],
      [{ status: 'resolved', actions: ['ban', 'ban'] }, 'actions'],
      [{ status: 'resolved', actions: ['explode'] }, 'actions[0]'],
      [{ status: 'open' }, 'status'],
    ] as const)
      assertError(await decide(server, body.id, fields), 400, 'invalid_request', param);
    assertError(await decide(server, 'rep_unknown', { status: 'dismissed' }), 404, 'not_found');

    const actions = ['delete_message', 'silence', 'ban'];
    const ends = new Date(Date.now() + 3_600_000).toISOString();
    // By the id of the later report.
    const done = await decide(server, second.body.id, {
      status: 'resolved',
      actions,
      until: ends,
      note: 'seen',
    });
    assert.equal(done.status, 200, JSON.stringify(done.body));
    assert.partialDeepStrictEqual(done.body, {
      id: body.id,
      target,
      reports: 2,
      status: 'resolved',
      actions,
    });
    const resolved = await receiver.next('report.resolved', (r) => r.data.reportId === body.id);
    assert.deepEqual(resolved.data, {
      reportId: body.id,
      ...target,
      status: 'resolved',
      actions,
      reports: 2,
    });
    await receiver.next('message.deleted', (r) => r.data.messageId === message.id);
    await receiver.wait(2, (r) => r.type === 'member.restricted' && r.data.userId === ben.id);
    assert.doesNotMatch(JSON.stringify(receiver.received), /nasty/);
    await server('DELETE', `/v1/webhooks/${hook.body.id}`);
  } finally {
    await receiver.close();
  }
  assert.equal((await owner.api('GET', `/v1/messages/${message.id}`)).body.text, null);
  const says = await ben.api('POST', `/v1/conversations/${cid}/messages`, { text: 'x', clientMsgId: 'x' });
  assertError(says, 403, 'not_member');
  const held = (await server('GET', `/v1/users/${ben.id}/restrictions`)).body.data;
  assert.deepEqual(held.map((r: any) => [r.kind, r.conversationId, r.until !== null]).sort(), [
    ['ban', cid, true],
    ['silence', null, true],
  ]);
  assert.equal(
    (await decide(server, (await queue(server, `conversationId=${cid}`))[0].id, { status: 'dismissed' }))
      .status,
    409,
  );
  const [item] = await queue(server, `conversationId=${cid}&status=resolved`);
  assert.partialDeepStrictEqual(item, { actions: ['delete_message', 'silence', 'ban'], resolution: 'seen' });
  assert.equal(item.snapshot.text, 'a nasty word', 'what was deleted can still be read');

  // What does not fit the target changes nothing.
  const { id: direct } = await scene.direct(owner, carl);
  const bad = await scene.send(carl, direct, { text: 'bad' });
  const inDirect = (await report(owner.api, { messageId: bad.id })).body.id;
  assertError(
    await decide(server, inDirect, { status: 'resolved', actions: ['delete_message', 'ban'] }),
    400,
    'invalid_request',
    'actions',
  );
  assert.equal((await owner.api('GET', `/v1/messages/${bad.id}`)).body.text, 'bad');
  const ofConversation = (await report(owner.api, { conversationId: cid })).body.id;
  for (const action of ['silence', 'delete_message', 'deactivate', 'ban'])
    assertError(
      await decide(server, ofConversation, { status: 'resolved', actions: [action] }),
      400,
      'invalid_request',
      'actions',
    );
  assert.equal((await decide(server, ofConversation, { status: 'dismissed' })).status, 200);
  const ofUser = (await report(owner.api, { userId: carl.id })).body.id;
  assert.equal((await decide(server, ofUser, { status: 'resolved', actions: ['deactivate'] })).status, 200);
  assert.notEqual((await server('GET', `/v1/users/${carl.id}`)).body.deactivatedAt, null);
  // The same target again is a new item.
  const later = (await report(owner.api, { userId: carl.id })).body.id;
  assert.notEqual(later, ofUser);
  assert.deepEqual(
    (await queue(server, `targetUserId=${carl.id}&status=open`)).map((i) => i.id).sort(),
    [inDirect, later].sort(),
  );
});

test('reports#decide: of two who decide at once one succeeds, and the other did nothing', async () => {
  for (let round = 0; round < 3; round++) {
    const { owner, ben, carl, message } = await world(scene);
    const { body } = await report(carl.api, { messageId: message.id });
    const [a, b, late] = await Promise.all([
      decide(server, body.id, { status: 'resolved', actions: ['silence'] }),
      decide(server, body.id, { status: 'dismissed' }),
      report(owner.api, { messageId: message.id }),
    ]);
    assert.deepEqual([a.status, b.status].sort(), [200, 409], JSON.stringify([a.body, b.body]));
    const [lost] = [a, b].filter((answer) => answer.status === 409);
    assertError(lost!, 409, 'state_conflict');
    const silenced = (await server('GET', `/v1/users/${ben.id}/restrictions`)).body.data.length === 1;
    assert.equal(silenced, a.status === 200);
    // Who reported meanwhile is in the decision, or has an open report of its own.
    assert.equal(late.status, 201);
    const items = await queue(server, `targetUserId=${ben.id}`);
    assert.equal(
      items.reduce((n, item) => n + item.reports, 0),
      2,
    );
    assert.equal(items.filter((item) => item.status === 'open').length, items.length - 1);
  }
});

test('reports#create: of many reports of one reporter at once one is made', async () => {
  const { carl, message } = await world(scene);
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => report(carl.api, { messageId: message.id })),
  );
  assert.deepEqual(answers.map((a) => a.status).sort(), [200, 200, 200, 200, 200, 201]);
  assert.equal(new Set(answers.map((a) => a.body.id)).size, 1);
  for (let i = 6; i < 10; i++) await report(carl.api, { messageId: message.id });
  assertError(await report(carl.api, { messageId: message.id }), 429, 'rate_limited');
});
