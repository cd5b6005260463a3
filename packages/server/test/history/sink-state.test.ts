import assert from 'node:assert/strict';
import { test } from 'node:test';
import { use, useService } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { addEndpoint } from '../webhooks/tools.ts';
import pg from 'pg';
import { news, nextStatus } from '../../src/features/storage/state.ts';
import type { SinkStatus } from '../../src/features/storage/sql.ts';
import { freePort } from '../storage/process.ts';
import { startCustomerPostgres } from './servers.ts';
import { eventually, inspect, openStorage } from './world.ts';

/** storage#sink: what it writes, what it does with what is refused, and how it tells of its trouble. */

const metricsPort = await freePort();
/** Three changes that wait are an alarm. */
const { service, scene, server, db, sql } = useService({
  env: { CHAT_METRICS_PORT: String(metricsPort), CHAT_SINK_ALARM: '3' },
});
const customer = use(startCustomerPostgres, (c) => c.stop());
const receiver = use(startReceiver, (r) => r.close());
const it = use(
  async () => {
    const url = await customer.createDatabase();
    const storage = await openStorage(service, db);
    return { url, storage };
  },
  () => undefined,
);

const minute = 60_000;

test('an hour of outage in made-up time: each piece of news once, in its order', () => {
  const told: string[] = [];
  let status: SinkStatus = 'healthy';
  const at = (minutes: number, oldest: number | null, failingSince: number | null) => {
    const time = (minutes: number) => new Date(minutes * minute).toISOString();
    const signs = {
      now: time(minutes),
      oldest: oldest === null ? null : time(oldest),
      since: failingSince === null ? null : time(failingSince),
    };
    const next = nextStatus(signs);
    const what = news(status, next, signs, 'unreachable');
    if (what)
      told.push(
        `${minutes} ${what.type} ${'lagSeconds' in what.data ? what.data.lagSeconds : what.data.since}`,
      );
    status = next;
  };
  // A database that dies at minute 10 and comes back at minute 90; it takes five minutes to catch up.
  for (let m = 0; m <= 120; m++) {
    const dead = m >= 10 && m < 90;
    const catchingUp = m >= 90 && m < 95;
    at(m, dead ? 10 : catchingUp ? 10 + (m - 90) * 16 : null, dead ? 10 : null);
  }
  assert.deepEqual(told, [
    '16 sink.degraded 360',
    '71 sink.failing 1970-01-01T00:10:00.000Z',
    '95 sink.recovered 0',
  ]);
});

test('what the store holds is copied, what changes follows, conversations and members too', async () => {
  const [writer, reader] = [await scene.actor(), await scene.actor()];
  const { id: cid } = await scene.group(writer, [reader], { name: 'Before' });
  const before = await scene.send(writer, cid, { text: 'before' });
  await it.storage.connect(it.url);
  const after = await scene.send(reader, cid, { text: 'after', replyTo: before.id });
  await server('PATCH', `/v1/conversations/${cid}`, { name: 'After', rules: { posting: 'moderators' } });
  await server('DELETE', `/v1/conversations/${cid}/members/${reader.id}`);
  await it.storage.settled();
  const history = await inspect(it.url);
  const { data } = await history.read({ conversationId: cid, limit: 10 });
  assert.deepEqual(
    data.map((m) => [m.id, m.text, m.senderId, m.replyTo]),
    [
      [after.id, 'after', reader.id, before.id],
      [before.id, 'before', writer.id, null],
    ],
  );
  await history.close();
  const client = new pg.Client(it.url.replace('?sslmode=disable', ''));
  await client.connect();
  const rows = async (text: string) => (await client.query(text, [cid])).rows as Record<string, unknown>[];
  assert.deepEqual(await rows('SELECT name, type, extras FROM parley_conversations WHERE id = $1'), [
    { name: 'After', type: 'group', extras: '{"rules":{"posting":"moderators"}}' },
  ]);
  assert.deepEqual(
    (await rows('SELECT user_id, role, removed FROM parley_members WHERE conversation_id = $1')).sort(
      (a, b) => Number(a['removed']) - Number(b['removed']),
    ),
    [
      { user_id: writer.id, role: 'owner', removed: false },
      { user_id: reader.id, role: 'member', removed: true },
    ],
  );
  await client.end();
});

test('a row that the database refuses is set aside with an alarm, and its neighbours are written', async () => {
  const client = new pg.Client(it.url.replace('?sslmode=disable', ''));
  await client.connect();
  await client.query(`ALTER TABLE parley_messages ADD CONSTRAINT taste CHECK (text NOT LIKE '%poison%')`);
  const writer = await scene.actor();
  const { id: cid } = await scene.group(writer, []);
  const sent = [];
  for (const text of ['one', 'two', 'poison', 'three', 'four'])
    sent.push(await scene.send(writer, cid, { text }));
  const record = await eventually(async () => {
    const now = await it.storage.record();
    return now.sink.backlog === 0 && now.sink.refused === 1 ? now : null;
  }, 'it is set aside');
  assert.equal(record.sink.status, 'healthy');
  await eventually(() => Promise.resolve(/refuses a record/.test(service.output())), 'it is in the log');
  assert.ok(!service.output().includes('poison'), 'what people wrote is in no log');
  const history = await inspect(it.url);
  const texts = async () =>
    (await history.read({ conversationId: cid, limit: 10 })).data.map((m) => m.text).reverse();
  assert.deepEqual(await texts(), ['one', 'two', 'three', 'four']);
  // It never leaves our store.
  await it.storage.cool([cid], 2);
  const { body } = await server('GET', `/v1/conversations/${cid}/messages`);
  assert.deepEqual(body.data.map((m: { text: string }) => m.text).reverse(), [
    'one',
    'two',
    'poison',
    'three',
    'four',
  ]);
  await client.query('ALTER TABLE parley_messages DROP CONSTRAINT taste');
  await client.end();
  assert.equal((await it.storage.api('POST', '/v1/storage/database/resync')).status, 202);
  await eventually(async () => (await it.storage.record()).sink.refused === 0, 'a resync writes it');
  assert.deepEqual(await texts(), ['one', 'two', 'poison', 'three', 'four']);
  await history.close();
});

test('webhooks#sink-events: sink.degraded, sink.failing and sink.recovered arrive once each', async () => {
  await addEndpoint(server, receiver.url, ['sink.degraded', 'sink.failing', 'sink.recovered']);
  const writer = await scene.actor();
  const { id: cid } = await scene.group(writer, []);
  await it.storage.settled();
  await customer.kill();
  for (const text of ['waits', 'waits too']) await scene.send(writer, cid, { text });
  await eventually(async () => (await it.storage.record()).sink.error, 'the first failure');
  const alarms = () => service.output().split('backlog of a history database is very long').length - 1;
  // A slow machine may have had as many waiting in the tests before.
  const earlier = alarms();
  for (const text of ['third', 'fourth']) await scene.send(writer, cid, { text });
  await sql(`UPDATE sink_log SET at = at - interval '6 minutes'`);
  await sql(`UPDATE storage SET due_at = '-infinity'`);
  const degraded = await receiver.next('sink.degraded', () => true);
  assert.ok(degraded.data.lagSeconds > 300);
  assert.equal((await it.storage.record()).sink.status, 'degraded');
  const inAnalytics = async () => (await server('GET', '/v1/analytics')).body.storage;
  const { mode, sink } = await inAnalytics();
  assert.deepEqual([mode, sink.status], ['byo_db', 'degraded'], 'analytics#response');
  assert.ok(sink.lagSeconds > 300);
  await eventually(() => Promise.resolve(alarms() === earlier + 1), 'three wait: one alarm');
  const gauges = await eventually(async () => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    const value = (name: string) => Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]);
    return (
      value('parley_sinks_degraded') === 1 && {
        lag: value('parley_sink_lag_seconds'),
        backlog: value('parley_sink_backlog'),
        others: value('parley_sinks_healthy') + value('parley_sinks_failing'),
      }
    );
  }, 'the metrics say so');
  assert.ok(gauges.lag > 300, `${gauges.lag}`);
  assert.deepEqual([gauges.backlog, gauges.others], [3, 0], 'counted as far as the alarm');
  await sql(`UPDATE storage SET since = since - interval '61 minutes', due_at = '-infinity'`);
  const failing = await receiver.next('sink.failing', () => true);
  assert.ok(
    ['unreachable', 'overloaded', 'timeout'].includes(failing.data.errorClass),
    failing.data.errorClass,
  );
  assert.ok(Date.parse(failing.data.since) < Date.now() - 60 * minute);
  await customer.start();
  await sql(`UPDATE storage SET due_at = '-infinity'`);
  const recovered = await receiver.next('sink.recovered', () => true);
  assert.equal(recovered.data.lagSeconds, 0);
  await it.storage.settled();
  assert.deepEqual(await inAnalytics(), { mode: 'byo_db', sink: { status: 'healthy', lagSeconds: 0 } });
  assert.equal(alarms(), earlier + 1, 'once, however often it was tried');
  const kinds = receiver.received.map((r) => r.type);
  assert.deepEqual(
    kinds.filter((t) => t.startsWith('sink.')),
    ['sink.degraded', 'sink.failing', 'sink.recovered'],
  );
});

test('promoting another database moves all history there, the cold part too', async () => {
  const writer = await scene.actor();
  const { id: cid } = await scene.group(writer, []);
  const sent: { id: string; seq: number; text: string }[] = [];
  for (let i = 0; i < 5; i++) sent.push(await scene.send(writer, cid, { text: `t${i}` }));
  await it.storage.cool([cid]);
  const url = await customer.createDatabase();
  const { body } = await it.storage.api('POST', '/v1/storage/database/migrate', { adminUrl: url });
  assert.match(body.notes.join(), /slot b/);
  const promoted = await it.storage.api('POST', '/v1/storage/database/promote/b');
  assert.equal(promoted.status, 200, JSON.stringify(promoted.body));
  const page = async () =>
    (await server('GET', `/v1/conversations/${cid}/messages`)).body.data?.map(
      (m: { text: string }) => m.text,
    );
  assert.deepEqual(await page(), ['t4', 't3', 't2', 't1', 't0'], 'nothing is missing meanwhile');
  await it.storage.settled();
  const history = await inspect(url);
  assert.deepEqual(
    (await history.read({ conversationId: cid, limit: 10 })).data.map((m) => m.text),
    ['t4', 't3', 't2', 't1', 't0'],
  );
  await history.close();
  assert.deepEqual(await page(), ['t4', 't3', 't2', 't1', 't0']);
});
