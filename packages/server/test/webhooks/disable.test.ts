import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../src/platform/logging.ts';
import { disableFailing } from '../../src/features/webhooks/disable.ts';
import { lockEnvironment } from '../../src/features/webhooks/sql.ts';
import { until } from '../start/npm-start.ts';
import { ok, startReceiver, status } from './receiver.ts';
import { startSmtp } from './smtp.ts';
import { addEndpoint, delivery, pass } from './tools.ts';
import { setUp, use, useService } from '../support/use.ts';

const receiver = use(startReceiver, (r) => r.close());
const smtp = use(startSmtp, (s) => s.close());
// The sweep that runs every minute runs at the start too, and so at a restart.
const { server, db, restart } = useService({
  env: () => ({ CHAT_SMTP_URL: smtp.url, CHAT_MAIL_FROM: 'chat@example.com' }),
});
let conversation: string;
setUp(async () => {
  conversation = (await server('POST', '/v1/conversations', { type: 'group', members: ['a'] })).body.id;
});

const send = (text: string) => server('POST', `/v1/conversations/${conversation}/messages`, { text });
const state = async (id: string) => (await server('GET', `/v1/webhooks/${id}`)).body;
const age = (hours: number) =>
  db.query(`UPDATE webhook_endpoints SET failing_since = failing_since - $1 * interval '1 hour'`, [hours]);

test('webhooks#disabled: 72 hours without success disable an endpoint and the owner gets an e-mail; idle ones stay', async () => {
  receiver.answer = status(500);
  const [failing, idle] = [
    await addEndpoint(server, receiver.url, ['message.created']),
    await addEndpoint(server, receiver.url, ['user.deleted']),
  ];
  await send('x');
  await delivery(server, failing.id, (d) => d.attempts.length === 1);
  await age(71.9);
  await db.query(`UPDATE webhook_endpoints SET created_at = created_at - interval '1 year'`);
  await restart();
  assert.equal((await state(failing.id)).status, 'enabled');
  await age(0.1);
  const mail = smtp.next();
  await restart();
  const text = await mail;
  assert.match(text, /^To: owner@example\.com$/m);
  assert.match(text, /^From: chat@example\.com$/m);
  assert.ok(text.includes(failing.id));
  const disabled = await state(failing.id);
  assert.deepEqual([disabled.status, disabled.disabledReason], ['disabled', 'failing']);
  assert.ok(disabled.disabledAt);
  assert.equal((await state(idle.id)).status, 'enabled', 'an idle endpoint is never disabled');

  receiver.answer = ok;
  await pass(db, '1 hour');
  const ended = await delivery(server, failing.id, (d) => d.status === 'failed');
  assert.equal(ended.payloadAvailable, true);
  await server('PATCH', `/v1/webhooks/${failing.id}`, { status: 'enabled' });
  await server('POST', `/v1/webhooks/${failing.id}/deliveries/${ended.id}/replay`);
  await receiver.next('message.created', (r) => r.id === ended.eventId);
  await restart();
  assert.equal((await state(failing.id)).status, 'enabled', 'enabling starts the 72 hours anew');
  for (const { id } of [failing, idle]) await server('DELETE', `/v1/webhooks/${id}`);
});

test('webhooks#disabled: the 72 hours count from the first failure after the last success', async () => {
  const { id } = await addEndpoint(server, receiver.url, ['message.created']);
  receiver.answer = status(500);
  await send('fails');
  await delivery(server, id, (d) => d.attempts.length === 1);
  await age(100);
  receiver.answer = ok;
  await send('succeeds');
  await delivery(server, id, (d) => d.status === 'succeeded');
  await restart();
  assert.equal((await state(id)).status, 'enabled');
  await server('DELETE', `/v1/webhooks/${id}`);
});

test('webhooks#disabled: an endpoint that succeeds while the sweep is about to disable it stays', async () => {
  const { id } = await addEndpoint(server, receiver.url, ['user.deleted']);
  await db.query(`UPDATE webhook_endpoints SET failing_since = now() - interval '73 hours' WHERE id = $1`, [
    id,
  ]);
  const sweep = await db.tx(async (tx) => {
    const [{ env }] = (await tx.query('SELECT env FROM webhook_endpoints WHERE id = $1', [id])) as [
      { env: number },
    ];
    await lockEnvironment(tx, env);
    const mailQueue = { enabled: false, send: () => Promise.resolve(), toOwners: () => Promise.resolve() };
    const running = disableFailing(db, mailQueue, createLogger('silent'));
    await until(
      async () =>
        (
          await db.query(
            `SELECT 1 FROM pg_locks WHERE NOT granted AND locktype IN ('transactionid', 'tuple')`,
          )
        ).length > 0,
    );
    await db.query('UPDATE webhook_endpoints SET failing_since = NULL WHERE id = $1', [id]);
    return { running };
  });
  await sweep.running;
  assert.equal((await state(id)).status, 'enabled');
});

test('A suspended environment’s deliveries pause without using up attempts, and go on afterwards', async () => {
  const { id } = await addEndpoint(server, receiver.url, ['message.created']);
  receiver.answer = status(500);
  await send('paused');
  await delivery(server, id, (d) => d.attempts.length === 1);
  await db.query(`UPDATE environments SET status = 'suspended' WHERE id = 'env_dev'`);
  receiver.answer = ok;
  const before = receiver.received.length;
  await pass(db, '1 minute');
  await untilPaused();
  assert.equal(receiver.received.length, before);
  await db.query(`UPDATE environments SET status = 'active' WHERE id = 'env_dev'`);
  await pass(db, '2 minutes');
  await receiver.wait(before + 1);
  await restart();
  const done = await delivery(server, id, (d) => d.status === 'succeeded');
  assert.deepEqual(
    done.attempts.map((a) => a.status),
    [500, 204],
  );
  await server('DELETE', `/v1/webhooks/${id}`);
});

/** The job was looked at and put off. */
async function untilPaused(): Promise<void> {
  for (;;) {
    const rows = await db.query(
      `SELECT 1 FROM jobs WHERE queue = 'webhook' AND claims = 2 AND NOT leased AND run_at > now()`,
    );
    if (rows.length > 0) return;
  }
}

test('webhooks#deliveries: the sweep removes older deliveries, but never a pending one', async () => {
  const { id } = await addEndpoint(server, receiver.url, ['message.created']);
  await send('old');
  const old = await delivery(server, id, (d) => d.status === 'succeeded');
  receiver.answer = status(500);
  await send('pending');
  const pending = await delivery(server, id, (d) => d.attempts.length === 1 && d.status === 'pending');
  await db.query(`UPDATE webhook_deliveries SET created_at = created_at - interval '73 hours'`);
  await restart();
  const left = await delivery(server, id, (d) => d.id === pending.id);
  assert.equal(left.status, 'pending');
  for (;;) {
    const { body } = await server('GET', `/v1/webhooks/${id}/deliveries`);
    if (!body.data.some((d: { id: string }) => d.id === old.id)) break;
  }
});
