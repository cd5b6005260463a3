import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { until } from '../push-feature/tools.ts';
import { assertError } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import { setUp, use, useService } from '../support/use.ts';
import { ok, startReceiver, verify } from '../webhooks/receiver.ts';
import { addEndpoint } from '../webhooks/tools.ts';
import { askedAbout, beforeSend, decide, json, say, setHook } from './tools.ts';

/** hooks.md over REST and the socket, with a receiver that answers. In an environment of its own: others send, too. */

const { service, sql } = useService();
const receiver = use(startReceiver, (r) => r.close());
let scene: ReturnType<typeof createScene>;
let secret: string;
setUp(async () => {
  scene = createScene(service.url, 'other');
  receiver.answer = decide;
  ({ secret } = await setHook(scene.server, receiver.url));
});

test('hooks#repeat, messages#dedup: a repetition that may be none when it is appended is asked about', async () => {
  const anna = await scene.actor('anna');
  const { id: cid } = await scene.group(anna, []);
  const clientMsgId = `old-${randomUUID()}`;
  assert.equal((await say(anna, cid, 'yes', clientMsgId)).status, 201);
  const age = "UPDATE sent_ids SET created_at = created_at - interval '47:59:30' WHERE client_msg_id = $1";
  await sql(age, [clientMsgId]);
  assertError(await say(anna, cid, 'no, never', clientMsgId), 403, 'message_rejected');
});

test('hooks#settings: the secret is shown once, defaults are filled in, and a kind that does not work is refused', async () => {
  const { server } = createScene(service.url, 'prod');
  assertError(await server('GET', beforeSend), 404, 'not_found');
  assertError(await server('POST', `${beforeSend}/test`), 404, 'not_found');
  assert.equal((await server('DELETE', beforeSend)).status, 204);
  for (const kind of ['translate', 'interactions', 'nonsense'])
    assertError(
      await server('PUT', `/v1/hooks/${kind}`, { url: receiver.url }),
      400,
      'invalid_request',
      'kind',
    );
  for (const [field, value] of [
    ['timeoutMs', 99],
    ['timeoutMs', 3_001],
    ['onFailure', 'maybe'],
    ['types', 'channel'],
    ['url', 'ftp://example.com'],
  ] as const)
    assertError(
      await server('PUT', beforeSend, { url: receiver.url, [field]: value }),
      400,
      'invalid_request',
      field,
    );
  const made = await server('PUT', beforeSend, { url: receiver.url });
  const { secret: first, createdAt, updatedAt, ...settings } = made.body;
  assert.match(first, /^whsec_/);
  assert.equal(createdAt, updatedAt);
  assert.deepEqual(settings, {
    kind: 'before-send',
    url: receiver.url,
    timeoutMs: 1_000,
    onFailure: 'allow',
    edits: true,
    servers: false,
    types: null,
    failingSince: null,
  });
  const again = await server('PUT', beforeSend, { url: receiver.url, onFailure: 'reject' });
  assert.equal(again.body.secret, undefined, 'replacing keeps the secret and does not show it');
  assert.deepEqual((await server('GET', beforeSend)).body, again.body);
  const client = await createScene(service.url, 'prod').actor();
  assertError(await client.api('GET', beforeSend), 403, 'forbidden');
  const [row] = await sql(
    'SELECT secret FROM hook_secrets s JOIN hooks h ON h.no = s.hook WHERE h.url = $1 LIMIT 1',
    [receiver.url],
  );
  assert.ok(!row!['secret'].includes(Buffer.from(first.slice(6), 'base64')), 'it is sealed in the store');

  receiver.received.length = 0;
  const test = await server('POST', `${beforeSend}/test`, undefined, { 'Idempotency-Key': randomUUID() });
  assert.deepEqual([test.body.verdict, test.body.status, test.body.error], ['allow', 204, null]);
  const [asked] = await receiver.wait(1, (r) => r.env === 'env_prod');
  assert.equal((JSON.parse(asked!.raw) as { test: boolean }).test, true);
  verify(first, asked!);
  const { secret: second } = (await server('POST', `${beforeSend}/rotate-secret`)).body;
  await server('POST', `${beforeSend}/test`);
  const rotated = (await receiver.wait(2, (r) => r.env === 'env_prod'))[1]!;
  for (const key of [first, second]) verify(key, rotated);
  assert.equal((await server('DELETE', beforeSend)).status, 204);
  assertError(await server('GET', beforeSend), 404, 'not_found');
});

test('hooks#before-send, T6.7: a message is allowed, rejected or rewritten; the original is stored nowhere', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.group(anna, [ben], { name: 'Tea', metadata: { room: 7 } });
  const socket = await scene.online(ben);
  const events = await startReceiver();
  try {
    await addEndpoint(scene.server, events.url, ['message.created', 'message.updated']);
    assert.equal((await say(anna, cid, 'hello')).body.text, 'hello');
    const [asked] = await receiver.wait(1, (r) => r.data.message.text === 'hello');
    verify(secret, asked!);
    const { clientMsgId, ...data } = asked!.data;
    assert.match(clientMsgId, /-/);
    assert.match(asked!.id, /^evt_/);
    assert.equal(asked!.type, 'message.before_send');
    assert.equal(asked!.env, 'env_other');
    assert.deepEqual(data, {
      conversation: { id: cid, type: 'group', name: 'Tea', metadata: { room: 7 } },
      senderId: anna.id,
      edit: null,
      message: { text: 'hello', replyTo: null, threadId: null, mentions: [], attachments: [], metadata: {} },
    });

    const { lastSeq } = (await scene.server('GET', `/v1/conversations/${cid}`)).body;
    const refused = await say(anna, cid, 'no way');
    assertError(refused, 403, 'message_rejected');
    assert.equal(refused.body.error.message, 'Be kind.');
    const frame = await (
      await scene.online(anna)
    ).refused('message.send', { cid, text: 'no, never', clientMsgId: randomUUID() }, 'message_rejected');
    assert.equal(frame.message, 'Be kind.');
    assert.equal(
      (await scene.server('GET', `/v1/conversations/${cid}`)).body.lastSeq,
      lastSeq,
      'not even a seq',
    );

    const original = `re ${randomUUID()}`;
    const rewritten = await say(anna, cid, original, 'written-anew');
    const text = `kind ${original.length}`;
    assert.equal(rewritten.body.text, text);
    const { id } = rewritten.body;
    const shown = await socket.next((f) => f.t === 'event' && f.d?.message?.id === id, 'the message');
    assert.equal(shown.d.message.text, text);
    const told = await events.next('message.created', (r) => r.data.message.id === id);
    assert.equal(told.data.message.text, text);
    assert.equal((await ben.api('GET', `/v1/messages/${id}`)).body.text, text);
    assert.equal((await scene.item(ben, cid)).lastMessage.text, text);
    const before = askedAbout(receiver, original);
    const again = await say(anna, cid, original, 'written-anew');
    assert.deepEqual([again.status, again.body.id, again.body.text], [201, id, text]);
    assert.equal(askedAbout(receiver, original), before, 'a repetition does not reach the hook');

    // An edit is decided on as well; what it wants is stored nowhere if the hook says otherwise.
    const wish = `re ${randomUUID()}, later`;
    const edited = await anna.api(
      'PATCH',
      `/v1/messages/${id}`,
      { text: wish, expectedVersion: 1 },
      {
        'Idempotency-Key': randomUUID(),
      },
    );
    assert.equal(edited.body.text, `kind ${wish.length}`);
    const [edit] = await receiver.wait(1, (r) => r.data.message.text === wish);
    assert.deepEqual(edit!.data.edit, { messageId: id, version: 1 });
    assertError(
      await anna.api('PATCH', `/v1/messages/${id}`, { text: 'no', expectedVersion: 2 }),
      403,
      'message_rejected',
    );
    await events.next('message.updated', (r) => r.data.message.id === id);
    const tables = await sql(
      `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace`,
    );
    for (const { relname } of tables)
      for (const gone of [original, wish]) {
        const found = await sql(`SELECT 1 FROM "${relname}" t WHERE t::text LIKE $1 LIMIT 1`, [
          `%${gone.slice(3, 39)}%`,
        ]);
        assert.equal(found.length, 0, `the original is in ${relname}`);
      }
  } finally {
    await Promise.all([socket.close(), events.close()]);
  }
});

test('hooks#scope: edits, servers and the type of conversations are asked about as set', async () => {
  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  const [{ id: group }, { id: direct }] = await Promise.all([
    scene.group(anna, [ben]),
    scene.direct(anna, ben),
  ]);
  const toServer = `/v1/conversations/${group}/messages`;
  try {
    assert.equal(
      (await scene.server('POST', toServer, { text: 'no system' })).status,
      201,
      'servers are not asked',
    );
    await setHook(scene.server, receiver.url, { servers: true, edits: false, types: 'group' });
    assertError(await scene.server('POST', toServer, { text: 'no system' }), 403, 'message_rejected');
    assertError(
      await scene.server(
        'POST',
        toServer,
        { text: 'no user', senderId: anna.id },
        { 'Idempotency-Key': randomUUID() },
      ),
      403,
      'message_rejected',
    );
    assertError(await say(anna, group, 'no'), 403, 'message_rejected');
    assert.equal((await say(anna, direct, 'no')).status, 201, 'only groups');
    const { body } = await say(anna, group, 'fine');
    const edited = await anna.api('PATCH', `/v1/messages/${body.id}`, { text: 'no', expectedVersion: 1 });
    assert.equal(edited.status, 200, 'edits are not asked about');
    const { id: poll } = await scene.group(anna, []);
    await say(anna, poll, { poll: { question: 'no tea?', options: [{ text: 'yes' }, { text: 'maybe' }] } });
    const [asked] = await receiver.wait(1, (r) => r.data.message.poll);
    assert.equal(asked!.data.message.poll.question, 'no tea?', 'what a poll asks can be seen');
    assertError(await say(ben, poll, 'no'), 403, 'not_member');
    assertError(await say(ben, 'conv_unknown', 'no'), 404, 'not_found');
  } finally {
    await setHook(scene.server, receiver.url);
  }
});

test('hooks#answer: mentions and metadata are rewritten, and checked as those of the sender are', async () => {
  const [anna, ben, cleo] = await Promise.all([scene.actor(), scene.actor(), scene.actor()]);
  const { id: cid } = await scene.group(anna, [ben, cleo]);
  const mention = { type: 'user', userId: ben.id, offset: 0, length: 3 };
  const answers = new Map<string, object>([
    ['Ben A', { text: 'Hi' }],
    [
      'Ben B',
      { mentions: [{ type: 'user', userId: cleo.id, offset: 0, length: 3 }], metadata: { seen: true } },
    ],
    ['Ben C', { mentions: [{ type: 'user', userId: 'nobody-at-all' }] }],
    ['Ben D', { mentions: [{ type: 'user', userId: cleo.id, offset: 3, length: 30 }] }],
    ['Ben E', { text: null }],
    ['Ben F', { text: null, metadata: {} }],
  ]);
  receiver.answer = ({ data }, res) => json(res, { action: 'rewrite', ...answers.get(data.message.text) });
  try {
    const send = (text: string) => say(ben, cid, { text, mentions: [mention] });
    const first = await send('Ben A');
    assert.deepEqual([first.body.text, first.body.mentions], ['Hi', [{ type: 'user', userId: ben.id }]]);
    const second = await send('Ben B');
    assert.deepEqual(second.body.mentions, [{ type: 'user', userId: cleo.id, offset: 0, length: 3 }]);
    assert.deepEqual([second.body.text, second.body.metadata], ['Ben B', { seen: true }]);
    for (const text of ['Ben C', 'Ben D', 'Ben E', 'Ben F'])
      assert.equal((await send(text)).body.text, text, 'a rewrite that is not valid is a failure');
    await setHook(scene.server, receiver.url, { onFailure: 'reject' });
    for (const text of ['Ben C', 'Ben D', 'Ben F']) {
      const refused = await send(text);
      assertError(refused, 503, 'hook_unavailable');
      assert.ok(refused.body.error.retryAfterMs > 0);
    }
    const edit = { text: 'Ben C', mentions: [mention], expectedVersion: 1 };
    const { id } = first.body;
    assertError(await ben.api('PATCH', `/v1/messages/${id}`, edit), 503, 'hook_unavailable');
    const changed = await ben.api('PATCH', `/v1/messages/${id}`, { ...edit, text: 'Ben A' });
    assert.deepEqual([changed.body.text, changed.body.mentions], ['Hi', [{ type: 'user', userId: ben.id }]]);
  } finally {
    receiver.answer = decide;
    await setHook(scene.server, receiver.url);
  }
});

test('hooks#order: messages of one user to one conversation keep their order, and others pass', async () => {
  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  const [{ id: cid }, { id: other }] = await Promise.all([scene.group(anna, [ben]), scene.group(anna, [])]);
  const socket = await scene.online(anna);
  const held: (() => void)[] = [];
  // The answers come in the opposite order, after all questions.
  receiver.answer = (received, res) => {
    if (!/^\d$/.test(received.data.message.text)) return ok(received, res);
    held.push(() => ok(received, res));
    if (held.length === 6) for (const answer of held.splice(0).reverse()) answer();
  };
  try {
    const acks = [0, 1, 2, 3, 4].map((i) =>
      socket.request('message.send', { cid, text: String(i), clientMsgId: `o-${cid}-${i}` }),
    );
    await receiver.wait(5, (r) => r.data.conversation.id === cid);
    assert.equal((await say(ben, cid, 'mine')).status, 201, 'another user is not held up');
    assert.equal((await say(anna, other, 'there')).status, 201, 'nor is another conversation');
    assert.equal((await say(anna, cid, '5')).status, 201);
    await Promise.all(acks);
    const { data } = (await anna.api('GET', `/v1/conversations/${cid}/messages`)).body;
    assert.deepEqual(data.map((m: { text: string }) => m.text).reverse(), [
      'mine',
      '0',
      '1',
      '2',
      '3',
      '4',
      '5',
    ]);
  } finally {
    for (const answer of held) answer();
    receiver.answer = decide;
    await socket.close();
  }
});

test('hooks#log: calls are counted, logged without what was said, and summed up', async () => {
  const { server } = scene;
  const anna = await scene.actor();
  const { id: cid } = await scene.group(anna, []);
  const before = (await server('GET', '/v1/analytics')).body.totals;
  await say(anna, cid, 'fine words');
  await say(anna, cid, 'no words');
  const after = (await server('GET', '/v1/analytics')).body.totals;
  assert.deepEqual(
    [
      after.hookCalls - before.hookCalls,
      after.rejected - before.rejected,
      after.hookFailures - before.hookFailures,
    ],
    [2, 1, 0],
  );
  await until(async () => {
    const { body } = await server('GET', `${beforeSend}/stats`);
    return body.rejected > 0 && body.rewritten > 0 && body.failures > 0 && body.p99Ms !== null;
  }, 'the figures of the dashboard');
  const rows = await sql(
    `SELECT l::text AS row FROM request_log l JOIN environments e ON e.no = l.env WHERE e.id = 'env_other' AND l.kind = 'hook'`,
  );
  assert.ok(rows.length > 0);
  for (const { row } of rows) assert.doesNotMatch(row, /words|whsec|v1,/);
});
