import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { saveCredentials } from '../../src/features/push/sql/credentials.ts';
import { receiptQueue } from '../../src/features/push/send.ts';
import { findEnvironment } from '../../src/features/tenancy/sql/environments.ts';
import { enqueue } from '../../src/platform/jobs/sql/jobs.ts';
import type { PushCredentials } from '../../src/platform/push/credentials.ts';
import type { PushProviderName } from '../../src/platform/push/port.ts';
import { createVault, loadMasterKey } from '../../src/platform/secrets.ts';
import type { Vault } from '../../src/platform/secrets.ts';
import { startApns } from '../push/vendors/apns.ts';
import type { ApnsVendor } from '../push/vendors/apns.ts';
import { startExpo } from '../push/vendors/expo.ts';
import type { ExpoVendor } from '../push/vendors/expo.ts';
import { startFcm } from '../push/vendors/fcm.ts';
import type { Vendor } from '../push/vendors/vendor.ts';
import { startWebpush } from '../push/vendors/webpush.ts';
import type { Actor } from '../support/scene.ts';
import { act, done, pretendNode, start } from '../calls/tools.ts';
import { pass } from '../webhooks/tools.ts';
import { startPusher } from './pusher.ts';
import type { Pusher } from './pusher.ts';
import { jobs, pushesCounted, settled, until } from './tools.ts';
import type { WaitingJob } from './tools.ts';
import { setUp, useService } from '../support/use.ts';

/** The service without the role worker, and the part that pushes here, with the vendors' doubles. */

const { service, scene, db } = useService({ env: { CHAT_ROLES: 'api,gateway' } });
let vault: Vault;
let env: number;
let vendors: { fcm: Vendor; apns: ApnsVendor; expo: ExpoVendor; webpush: Vendor };
/** What is done later is done an hour later still, so that nothing runs again before a test says so. */
const ahead = 3_600_000;
const at = Date.now() + ahead;
/** The time of the pusher and of the vendors stands still. */
const now = (): number => at;
const laterMs = (job: WaitingJob | undefined): number => job!.at - at;

setUp(async () => {
  vault = createVault(await loadMasterKey(undefined, service.dataDir, false));
  env = (await findEnvironment(db, 'env_dev'))!.no;
});

let pusher: Pusher;
const harness = () => ({
  service,
  db,
  vault,
  now,
  vendors: Object.values(vendors),
  connected: () => connected,
});
/** Whether everybody has a socket. */
let connected = false;
beforeEach(async () => {
  connected = false;
  vendors = {
    fcm: await startFcm(now),
    apns: await startApns(now),
    expo: await startExpo(),
    webpush: await startWebpush(now),
  };
  for (const [name, vendor] of Object.entries(vendors)) await credentials(name, vendor.credentials);
  pusher = await startPusher(harness());
});
afterEach(async () => {
  await pusher.stop();
  await db.query('DELETE FROM push_devices');
  await db.query('DELETE FROM jobs');
  for (const vendor of Object.values(vendors)) {
    assert.deepEqual(vendor.violations, []);
    await vendor.close();
  }
});

const credentials = (name: string, value: PushCredentials) =>
  db.tx((tx) => saveCredentials(tx, vault, env, name as PushProviderName, value));

async function conversation(provider: PushProviderName, token: string) {
  const [sender, member] = [await scene.actor(), await scene.actor()];
  await register(member, provider, token);
  const { id } = await scene.group(sender, [member]);
  return { id, member, send: (text = 'hello') => scene.send(sender, id, { text }) };
}
async function register(
  member: Actor,
  provider: PushProviderName,
  token: string,
  more: { voipToken?: string } = {},
): Promise<void> {
  const { status } = await member.api('POST', '/v1/push/devices', { provider, token, ...more });
  assert.ok(status === 201 || status === 200);
}
/** Sent and failed, as the operator sees them. */
const figures = async (): Promise<[number, number]> => {
  const { pushSent, pushFailed } = (await scene.server('GET', '/v1/analytics')).body.totals;
  return [pushSent, pushFailed];
};
const more = async ([sent, failed]: [number, number]) => {
  const now = await figures();
  return { sent: now[0] - sent, failed: now[1] - failed };
};
const devices = async (): Promise<number> =>
  (await db.query<{ n: number }>('SELECT count(*) AS n FROM push_devices'))[0]!.n;

for (const name of ['fcm', 'apns', 'expo', 'webpush'] as const) {
  describe(`push by ${name}`, () => {
    it('delivers, counts and says so in the metrics', async () => {
      const vendor = vendors[name];
      const counted = await pushesCounted(db, 'env_dev');
      const { send } = await conversation(name, vendor.goodToken);
      const message = await send();
      await settled(db);
      assert.deepEqual(
        vendor.delivered.map((d) => [d.token, d.body, d.badge, d.data['messageId']]),
        [[vendor.goodToken, 'hello', 1, message.id]],
      );
      assert.equal(await pushesCounted(db, 'env_dev'), counted + 1);
      assert.match(
        await pusher.metrics.registry.metrics(),
        new RegExp(`parley_push_total{provider="${name}",result="sent"} 1`),
      );
    });

    it('removes a token that the provider calls dead', async () => {
      const vendor = vendors[name];
      const before = await figures();
      const { member, send } = await conversation(name, vendor.deadToken);
      await register(member, name, vendor.goodToken);
      await send();
      await settled(db);
      assert.equal(vendor.delivered.length, 1);
      assert.equal(await devices(), 1);
      assert.deepEqual(await more(before), { sent: 1, failed: 1 });
    });

    it('backs off on trouble, then delivers', async () => {
      const vendor = vendors[name];
      const before = await figures();
      const { send } = await conversation(name, vendor.goodToken);
      vendor.trouble.push({ status: 503 }, { status: 503 });
      await send();
      await settled(db);
      const [first, ...others] = await jobs(db, 'push');
      assert.deepEqual(others, []);
      assert.equal(first!.claims, 1);
      assert.ok(laterMs(first) < 6_000, 'at most 5 s and a fifth');
      await pass(db, '2 hours');
      await settled(db);
      const [second] = await jobs(db, 'push');
      assert.equal(second!.claims, 2);
      assert.ok(laterMs(second) > 6_000 && laterMs(second) < 24_000, `${laterMs(second)}`);
      await pass(db, '2 hours');
      await settled(db);
      assert.deepEqual([vendor.delivered.length, (await jobs(db, 'push')).length], [1, 0]);
      assert.equal(await devices(), 1);
      assert.deepEqual(await more(before), { sent: 1, failed: 0 }, 'what was tried again has not failed');
    });

    it('waits as long as the provider asks', async () => {
      const vendor = vendors[name];
      const { send } = await conversation(name, vendor.goodToken);
      vendor.trouble.push({ status: 429, retryAfter: '600' });
      await send();
      await settled(db);
      const [job] = await jobs(db, 'push');
      assert.ok(laterMs(job) > 500_000, `${laterMs(job)}`);
    });

    it('gives up after six attempts, and keeps the device', async () => {
      const vendor = vendors[name];
      const before = await figures();
      const { send } = await conversation(name, vendor.goodToken);
      vendor.trouble.push(...Array.from({ length: 10 }, () => ({ status: 500 })));
      await send();
      for (let i = 0; i < 6; i++) {
        await settled(db);
        await pass(db, '2 hours');
      }
      await settled(db);
      assert.equal(vendor.trouble.length, 4);
      assert.deepEqual(await jobs(db, 'push'), []);
      assert.equal(await devices(), 1);
      assert.match(
        await pusher.metrics.registry.metrics(),
        new RegExp(`parley_push_total{provider="${name}",result="failed"} 1`),
      );
      assert.deepEqual(await more(before), { sent: 0, failed: 1 });
    });

    it('logs rejected credentials once, retries nothing and removes nothing; new ones work at once', async () => {
      const vendor = vendors[name];
      await credentials(name, vendor.wrongCredentials);
      const before = await figures();
      const { send } = await conversation(name, vendor.goodToken);
      for (let i = 0; i < 3; i++) {
        await send();
        await settled(db);
      }
      assert.deepEqual(vendor.delivered, []);
      assert.deepEqual(await jobs(db, 'push'), []);
      assert.equal(await devices(), 1);
      assert.equal(pusher.warnings.length, 1, JSON.stringify(pusher.warnings));
      const { reason, ...about } = pusher.warnings[0]!;
      assert.deepEqual(about, { env: 'env_dev', provider: name }, 'and nothing of what was sent');
      assert.match(String(reason), /^[\w.-]+$/);
      assert.deepEqual(await more(before), { sent: 0, failed: 3 });
      await credentials(name, vendor.credentials);
      await send();
      await settled(db);
      assert.equal(vendor.delivered.length, 1);
    });
  });
}

describe('push by apns: a token that Apple does not know', () => {
  it('is kept, tried once and reported as wrong settings: it may be of the other environment', async () => {
    const { send } = await conversation('apns', 'ee'.repeat(32));
    for (let i = 0; i < 2; i++) {
      await send();
      await settled(db);
    }
    assert.equal(await devices(), 1);
    assert.deepEqual(await jobs(db, 'push'), []);
    assert.deepEqual(pusher.warnings, [{ env: 'env_dev', provider: 'apns', reason: 'BadDeviceToken' }]);
  });
});

describe('push: receipts of Expo', () => {
  it('a quarter of an hour later a token that turned out dead goes', async () => {
    const { send } = await conversation('expo', vendors.expo.goodToken);
    await send();
    await settled(db);
    assert.equal(await devices(), 1);
    const [job] = await jobs(db, 'push_receipts');
    assert.ok(laterMs(job) >= 15 * 60_000 && laterMs(job) < 16 * 60_000, 'at a whole minute');
    vendors.expo.receipts['receipt-1'] = { status: 'error', details: { error: 'DeviceNotRegistered' } };
    await pass(db, '2 hours');
    await until(async () => (await jobs(db, 'push_receipts')).length === 0, 'the receipts');
    assert.equal(await devices(), 0);
  });

  it('are asked for together, up to 1,000 in one request', async () => {
    const { send } = await conversation('expo', vendors.expo.goodToken);
    for (let i = 0; i < 3; i++) {
      await send();
      await settled(db);
    }
    const own = await db.query<{ data: [string, number, string][]; key: number }>(
      `SELECT key, data FROM jobs WHERE queue = 'push_receipts'`,
    );
    assert.equal(own.length, 3);
    const [[, device, registeredAt]] = own[0]!.data as [[string, number, string]];
    const many = (from: number): unknown =>
      Array.from({ length: 400 }, (_, i) => [`many-${from + i}`, device, registeredAt]);
    await enqueue(
      db,
      receiptQueue,
      [0, 400, 800].map((from) => ({ key: own[0]!.key, data: many(from) })),
      new Date(at),
    );
    for (let i = 0; i < 1_200; i++) vendors.expo.receipts[`many-${i}`] = { status: 'ok' };
    for (let i = 1; i <= 3; i++) vendors.expo.receipts[`receipt-${i}`] = { status: 'ok' };
    await pass(db, '2 hours');
    await until(async () => (await jobs(db, 'push_receipts')).length === 0, 'the receipts');
    assert.equal(
      vendors.expo.receiptCalls.reduce((sum, n) => sum + n, 0),
      1_203,
    );
    assert.equal(vendors.expo.receiptCalls.length, 2, JSON.stringify(vendors.expo.receiptCalls));
    assert.equal(await devices(), 1);
  });

  it('one registered anew since then stays', async () => {
    const { member, send } = await conversation('expo', vendors.expo.goodToken);
    await send();
    await settled(db);
    await register(member, 'expo', vendors.expo.goodToken);
    vendors.expo.receipts['receipt-1'] = { status: 'error', details: { error: 'DeviceNotRegistered' } };
    await pass(db, '2 hours');
    await until(async () => (await jobs(db, 'push_receipts')).length === 0, 'the receipts');
    assert.equal(await devices(), 1);
  });

  it('a receipt that is not there yet is asked for four times', async () => {
    const { send } = await conversation('expo', vendors.expo.goodToken);
    await send();
    await settled(db);
    for (let claims = 1; claims < 4; claims++) {
      await pass(db, '2 hours');
      await until(async () => {
        const [job] = await jobs(db, 'push_receipts');
        return job!.claims === claims && laterMs(job) > 14 * 60_000;
      }, `receipt attempt ${claims}`);
    }
    await pass(db, '2 hours');
    await until(async () => (await jobs(db, 'push_receipts')).length === 0, 'the end of the receipts');
    assert.equal(await devices(), 1);
  });
});

describe('push: workers', () => {
  it('without a worker a message waits; deleted before one comes, it is not pushed', async () => {
    await pusher.stop();
    const { send } = await conversation('fcm', vendors.fcm.goodToken);
    const doomed = await send('doomed');
    await send('kept');
    assert.equal((await scene.server('DELETE', `/v1/messages/${doomed.id}`)).status, 200);
    const [waiting] = await db.query<{ n: number }>(
      `SELECT count(*) AS n FROM outbox WHERE type = 'message.created'`,
    );
    assert.equal(waiting!.n, 2);
    pusher = await startPusher(harness());
    await settled(db);
    assert.deepEqual(
      vendors.fcm.delivered.map((d) => d.body),
      ['kept'],
    );
  });

  it('one who came online before a later attempt is not told', async () => {
    const { send } = await conversation('fcm', vendors.fcm.goodToken);
    vendors.fcm.trouble.push({ status: 503 });
    await send();
    await settled(db);
    connected = true;
    await pass(db, '2 hours');
    await settled(db);
    assert.deepEqual(await jobs(db, 'push'), []);
    assert.deepEqual(vendors.fcm.delivered, []);
  });

  it('an older message is dropped when a newer one of its conversation was sent: it would replace it', async () => {
    const { member, send } = await conversation('fcm', vendors.fcm.goodToken);
    const other = await scene.group(null, [member]);
    vendors.fcm.trouble.push({ status: 503 });
    await send('older');
    await settled(db);
    await send('newer');
    await settled(db);
    await pass(db, '2 hours');
    await settled(db);
    assert.deepEqual(await jobs(db, 'push'), []);
    assert.deepEqual(
      vendors.fcm.delivered.map((d) => d.body),
      ['newer'],
    );
    vendors.fcm.trouble.push({ status: 503 });
    await scene.send(null, other.id, { text: 'of another conversation' });
    await settled(db);
    await pass(db, '2 hours');
    await settled(db);
    assert.equal(vendors.fcm.delivered.at(-1)!.body, 'of another conversation');
  });

  it('what stood still for a day is no news', async () => {
    await pusher.stop();
    const { send } = await conversation('fcm', vendors.fcm.goodToken);
    const message = await send();
    await db.query(`UPDATE messages SET created_at = created_at - interval '25 hours' WHERE id = $1`, [
      message.id,
    ]);
    pusher = await startPusher(harness());
    await settled(db);
    assert.deepEqual(vendors.fcm.delivered, []);
  });

  it('a process that is killed leaves a push under way with a lease of seconds', async () => {
    const { send } = await conversation('apns', vendors.apns.goodToken);
    vendors.apns.hold = true;
    const held = new Promise<void>((resolve) => (vendors.apns.onHeld = resolve));
    await send();
    await held;
    const [{ left }] = (await db.query<{ left: number }>(
      `SELECT extract(epoch FROM run_at - clock_timestamp())::float8 AS left FROM jobs WHERE queue = 'push' AND leased`,
    )) as [{ left: number }];
    assert.ok(left <= 8, `a killed process leaves a lease of ${left} s`);
    vendors.apns.hold = false;
    vendors.apns.held.forEach((release) => release());
    await settled(db);
  });

  it('a push under way when its worker stops is done by the next', async () => {
    const { send } = await conversation('apns', vendors.apns.goodToken);
    vendors.apns.hold = true;
    const held = new Promise<void>((resolve) => (vendors.apns.onHeld = resolve));
    await send();
    await held;
    await pusher.stop();
    assert.equal((await jobs(db, 'push')).length, 1);
    vendors.apns.hold = false;
    await pass(db, '2 hours');
    pusher = await startPusher(harness());
    await settled(db);
    assert.equal(vendors.apns.delivered.length, 1);
  });

  it('one provider in trouble delays no other', async () => {
    await pusher.stop();
    const [sender, member] = [await scene.actor(), await scene.actor()];
    await register(member, 'apns', vendors.apns.goodToken);
    await register(member, 'fcm', vendors.fcm.goodToken);
    // Of one conversation, a push that is made again would give way to a newer one.
    for (let i = 0; i < 25; i++) await scene.send(null, (await scene.group(sender, [member])).id);
    vendors.apns.hold = true;
    let most = 0;
    vendors.apns.onHeld = () => (most = Math.max(most, vendors.apns.held.length));
    pusher = await startPusher(harness());
    await until(() => vendors.fcm.delivered.length === 25, 'the other provider');
    await until(() => most >= 20, 'its own');
    assert.equal(vendors.apns.delivered.length, 0);
    assert.equal(most, 20, 'as many as the lane is wide');
    vendors.apns.hold = false;
    for (const release of vendors.apns.held.splice(0)) release();
    // On a slow machine an attempt may have run out of time; it is made again later.
    await until(async () => {
      await pass(db, '2 hours');
      await settled(db);
      return vendors.apns.delivered.length >= 25;
    }, 'all pushes of the provider that was in trouble');
  });
});

describe('push#calls', () => {
  async function ringing(kind: 'audio' | 'video', callees: Actor[]) {
    await pretendNode(db);
    const caller = await scene.actor();
    await scene.server('PUT', `/v1/users/${caller.id}`, { name: 'Ada' });
    const { id: cid } = await scene.group(caller, callees, { name: 'Engine' });
    return { caller, cid, call: await start(caller, cid, { kind }) };
  }
  /** By the clock of the pusher, which is ahead, the call has just begun to ring. */
  const ringOn = () =>
    db.query(
      `UPDATE jobs SET data = data || jsonb_build_object('expiresAt', $1::text) WHERE queue = 'push' AND data ? 'call'`,
      [new Date(at + 45_000).toISOString()],
    );

  it('an incoming call names the caller, and lives as long as it rings', async () => {
    await pusher.stop();
    const [one, two] = [await scene.actor(), await scene.actor()];
    await register(one, 'fcm', vendors.fcm.goodToken);
    await register(one, 'webpush', vendors.webpush.goodToken);
    await register(two, 'apns', vendors.apns.goodToken, { voipToken: vendors.apns.voipToken });
    const { call, cid, caller } = await ringing('video', [one, two]);
    await ringOn();
    pusher = await startPusher(harness());
    await settled(db);
    const told = [...vendors.fcm.delivered, ...vendors.webpush.delivered, ...vendors.apns.delivered];
    assert.equal(told.length, 3);
    for (const { priority, ttlSeconds, data, title, body } of told) {
      const { title: inData, body: also, ...about } = data;
      assert.deepEqual(about, {
        type: 'call.incoming',
        callId: call.id,
        conversationId: cid,
        kind: 'video',
        callerId: caller.id,
      });
      assert.deepEqual([title ?? inData, body ?? also], ['Engine (Ada)', 'Incoming video call']);
      assert.deepEqual([priority, ttlSeconds], ['high', 45]);
    }
    assert.equal(vendors.apns.delivered[0]!.apple!.type, 'voip');
    assert.equal(vendors.fcm.delivered[0]!.collapse, call.id);
  });

  it('a missed call has a text; one that is over or was answered meanwhile rings no more', async () => {
    await pusher.stop();
    const [missing, answering] = [await scene.actor(), await scene.actor()];
    await register(missing, 'apns', vendors.apns.goodToken);
    await register(answering, 'expo', vendors.expo.goodToken);
    const { call, caller } = await ringing('audio', [missing, answering]);
    await done(act(answering, call.id, 'join'));
    for (const one of [answering, caller]) await done(act(one, call.id, 'leave'));
    pusher = await startPusher(harness());
    await settled(db);
    assert.deepEqual(vendors.expo.delivered, []);
    const [missed, ...more] = vendors.apns.delivered;
    assert.deepEqual(more, []);
    assert.deepEqual([missed!.title, missed!.body], ['Engine (Ada)', 'Missed audio call']);
    assert.deepEqual([missed!.apple!.type, missed!.apple!.priority], ['alert', '10']);
    assert.deepEqual([missed!.data['type'], missed!.collapse], ['call.missed', call.id]);
  });
});
