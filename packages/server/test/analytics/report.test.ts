import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { createScene } from '../support/scene.ts';
import { useService } from '../support/use.ts';

const { service, scene, server, db } = useService();
const today = (): string => new Date().toISOString().slice(0, 10);

test('analytics#response: every figure of what happened just now', async () => {
  const [anna, bert] = [await scene.actor('anna'), await scene.actor('bert')];
  const idle = await scene.actor('idle');
  const group = await scene.group(anna, [bert, idle], { name: 'Team' });
  const direct = await scene.direct(anna, bert);
  const before = (await server('GET', '/v1/analytics')).body;
  const first = await scene.send(anna, group.id);
  await scene.send(bert, group.id, { text: 'yes', replyTo: first.id });
  await scene.send(null, group.id, { text: 'system' });
  await scene.send(anna, direct.id, { metadata: { poll: 1 } });
  const edited = await anna.api('PATCH', `/v1/messages/${first.id}`, { text: 'better', expectedVersion: 1 });
  assert.equal(edited.status, 200);
  assert.equal((await anna.api('DELETE', `/v1/messages/${first.id}`)).status, 200);
  assert.equal((await bert.api('POST', `/v1/conversations/${group.id}/read`, { seq: 3 })).status, 200);

  const { status, body } = await server('GET', '/v1/analytics');
  assert.equal(status, 200);
  const difference = (name: string): number => body.totals[name] - before.totals[name];
  const expected = {
    messages: 4,
    textMessages: 3,
    attachmentMessages: 0,
    customMessages: 1,
    replies: 1,
    systemMessages: 1,
    edits: 1,
    deletions: 1,
    reads: 0,
    activeUsers: 2,
    calls: 0,
  };
  assert.deepEqual(
    Object.fromEntries(Object.keys(expected).map((name) => [name, difference(name)])),
    expected,
  );
  assert.equal(before.totals.newUsers, 3);
  assert.equal(before.totals.conversations, 2);
  assert.equal(body.totals.mauThisMonth, 2);
  assert.equal(body.totals.messagesPerActiveUser, 2);
  assert.ok(body.totals.apiRequests >= 10, JSON.stringify(body.totals));
  assert.ok(body.totals.requests2xx >= 10);
  assert.equal(body.series.length, 30);
  const last = body.series.at(-1);
  assert.equal(last.t, `${today()}T00:00:00.000Z`);
  assert.equal(last.messages, 4);
  assert.equal(last.activeUsers, 2);
  assert.equal(body.range.timezone, 'UTC');
  assert.equal(body.range.granularity, 'day');
  assert.deepEqual(
    body.topConversations.map((c: Record<string, unknown>) => [
      c['id'],
      c['name'],
      c['type'],
      c['messages'],
      c['senders'],
    ]),
    [
      [group.id, 'Team', 'group', 3, 2],
      [direct.id, null, 'direct', 1, 1],
    ],
  );
  assert.deepEqual(
    body.topSenders.map((s: Record<string, unknown>) => [s['userId'], s['messages']]),
    [
      [anna.id, 2],
      [bert.id, 1],
    ],
  );
  assert.equal(body.heatmap.length, 7);
  assert.ok(body.heatmap.every((row: number[]) => row.length === 24));
  const now = new Date();
  assert.equal(
    body.heatmap.flat().reduce((a: number, b: number) => a + b, 0),
    4,
  );
  assert.ok(body.heatmap[(now.getUTCDay() + 6) % 7].some((n: number) => n > 0));
  assert.deepEqual(body.live, { connections: 0 });
  assert.deepEqual(body.plan, { name: 'enterprise', mauLimit: null, connectionLimit: null });
  assert.deepEqual(body.storage, { mode: 'managed', sink: { status: 'idle', lagSeconds: 0 } });

  const usage = (await server('GET', '/v1/usage')).body;
  assert.equal(usage.data.length, 30);
  const row = usage.data.at(-1);
  assert.deepEqual(Object.keys(row), [
    'date',
    'mau',
    'peakConnections',
    'messages',
    'apiRequests',
    'webhookDeliveries',
    'pushSent',
  ]);
  assert.deepEqual([row.mau, row.messages], [2, 4]);
  assert.deepEqual(usage.plan, body.plan);
});

test('analytics#active: connecting makes a user active, once however often; sockets, acks and fan-out are measured', async () => {
  const other = createScene(service.url, 'other');
  const [a, b] = [await other.person('a'), await other.person('b')];
  const again = await other.online(a.actor);
  const conversation = await other.direct(a.actor, b.actor);
  const seen = b.socket.event('message.new');
  await a.socket.request('message.send', { cid: conversation.id, clientMsgId: randomUUID(), text: 'hi' });
  await seen;
  const { body } = await other.server('GET', '/v1/analytics?granularity=hour');
  assert.equal(body.totals.activeUsers, 2);
  assert.equal(body.totals.socketsOpened, 3);
  assert.equal(body.totals.peakConnections, 3);
  assert.equal(body.live.connections, 3);
  assert.ok(body.totals.avgAckMs > 0, 'ack');
  assert.ok(body.totals.avgFanoutMs > 0, 'fan-out');
  assert.equal(body.series.length, 7 * 24);
  assert.equal(body.series.at(-1).activeUsers + body.series.at(-2).activeUsers, 2);
  await Promise.all([a.socket, b.socket, again].map((s) => s.close()));
});

test('analytics#callers: a key sees its own environment alone, and clients see nothing', async () => {
  const mine = (await server('GET', '/v1/analytics')).body.totals.messages;
  const prod = createScene(service.url, 'prod');
  assert.equal((await prod.server('GET', '/v1/analytics')).body.totals.messages, 0);
  assert.equal(mine, 4);
  const someone = await scene.actor();
  assert.equal((await someone.api('GET', '/v1/analytics')).status, 403);
  assert.equal((await someone.api('GET', '/v1/usage')).status, 403);
  const [{ n }] = (await db.query<{ n: number }>('SELECT count(*)::int AS n FROM activity_notes')) as [
    { n: number },
  ];
  assert.ok(n >= 0);
});
