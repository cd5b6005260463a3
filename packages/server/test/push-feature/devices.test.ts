import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { limits } from '@parley/protocol';
import { assertError } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import type { Actor } from '../support/scene.ts';
import { subscription } from './subscription.ts';
import { useService } from '../support/use.ts';

const { service, scene, db } = useService();

const path = (token: string) => `/v1/push/devices/${encodeURIComponent(token)}`;
const register = (by: Actor, token: string, provider = 'fcm') =>
  by.api('POST', '/v1/push/devices', { provider, token });
const tokensOf = async (user: Actor): Promise<string[]> =>
  (
    await db.query<{ token: string }>(
      `SELECT d.token FROM push_devices d JOIN users u ON u.env = d.env AND u.no = d.usr WHERE u.id = $1 ORDER BY d.no`,
      [user.id],
    )
  ).map((r) => r.token);

describe('push#devices: POST /v1/push/devices', () => {
  it('201 { provider, token, createdAt }, 200 with the same if known', async () => {
    const user = await scene.actor();
    for (const [provider, token] of [
      ['fcm', `fcm:${user.id}`],
      ['apns', user.id.replaceAll(/[^0-9a-f]/g, '')],
      ['expo', `ExponentPushToken[${user.id}]`],
      ['webpush', subscription(user.id)],
    ] as const) {
      const first = await register(user, token, provider);
      assert.equal(first.status, 201, JSON.stringify(first.body));
      assert.deepEqual(first.body, { provider, token, createdAt: first.body.createdAt });
      const again = await register(user, token, provider);
      assert.equal(again.status, 200);
      assert.deepEqual(again.body, first.body);
    }
    assert.equal((await tokensOf(user)).length, 4);
  });

  it('a token moves to the user who registered it last', async () => {
    const [a, b] = [await scene.actor(), await scene.actor()];
    const token = `shared:${a.id}`;
    await register(a, token);
    assert.equal((await register(b, token)).status, 201, 'new to this user');
    assert.deepEqual(await tokensOf(a), []);
    assert.deepEqual(await tokensOf(b), [token]);
    assertError(await a.api('DELETE', path(token)), 404, 'not_found');
    assert.equal((await register(b, token)).status, 200);
  });

  it('docs/push.md: a voipToken stays without the field, goes with null and with the user, and is for apns only', async () => {
    const [a, b] = [await scene.actor(), await scene.actor()];
    const token = 'c3'.repeat(32);
    const voip = 'e7'.repeat(32);
    const kept = async (by: Actor, fields: object) => {
      const { status } = await by.api('POST', '/v1/push/devices', { provider: 'apns', token, ...fields });
      assert.ok(status === 200 || status === 201);
      const rows = await db.query<{ voip: string | null }>(
        'SELECT voip_token AS voip FROM push_devices WHERE token = $1',
        [token],
      );
      return rows.map((r) => r.voip);
    };
    assert.deepEqual(await kept(a, { voipToken: voip }), [voip]);
    assert.deepEqual(await kept(a, {}), [voip]);
    assert.deepEqual(await kept(a, { voipToken: null }), [null]);
    assert.deepEqual(await kept(a, { voipToken: voip }), [voip]);
    assert.deepEqual(await kept(b, {}), [null]);
    const refused = (body: object) => a.api('POST', '/v1/push/devices', body);
    assertError(await refused({ provider: 'fcm', token: 'x', voipToken: voip }), 400, 'invalid_request');
    assertError(await refused({ provider: 'apns', token, voipToken: '../x' }), 400, 'invalid_request');
  });

  it('the same token in another environment is another device', async () => {
    const user = await scene.actor();
    const theirs = await createScene(service.url, 'other').actor();
    const token = `env:${user.id}`;
    await register(user, token);
    assert.equal((await register(theirs, token)).status, 201);
    assert.deepEqual(await tokensOf(user), [token]);
  });

  it('refuses what is no device, and keeps nothing of it', async () => {
    const user = await scene.actor();
    assertError(await register(user, 'x', 'pigeon'), 400, 'invalid_request', 'provider');
    assertError(await register(user, ''), 400, 'invalid_request', 'token');
    const long = 'x'.repeat(limits.pushTokenCharacters);
    assertError(await register(user, `${long}x`), 400, 'invalid_request', 'token');
    assertError(await register(user, '語'.repeat(2_000)), 400, 'invalid_request', 'token');
    assertError(await register(user, 'no subscription', 'webpush'), 400, 'invalid_request', 'token');
    assertError(
      await register(user, subscription('x', 'ftp://example.com/'), 'webpush'),
      400,
      'invalid_request',
      'token',
    );
    assertError(
      await scene.server('POST', '/v1/push/devices', { provider: 'fcm', token: 'x' }),
      403,
      'forbidden',
    );
    assert.deepEqual(await tokensOf(user), []);
  });

  it('a user has at most 50 devices: those registered longest ago go', async () => {
    const user = await scene.actor();
    const token = (i: number) => `many:${user.id}:${i}`;
    await db.query(
      `INSERT INTO push_devices (env, usr, provider, token, token_hash, created_at, registered_at)
       SELECT u.env, u.no, 'fcm', t.token, sha256(t.token::bytea), now() - interval '1 day', now() - (100 - t.i) * interval '1 minute'
       FROM users u, (SELECT i, 'many:' || $1 || ':' || i AS token FROM generate_series(0, 49) i) t WHERE u.id = $1`,
      [user.id],
    );
    assert.equal((await register(user, token(0))).status, 200, 'the oldest is used again');
    assert.equal((await register(user, token(50))).status, 201);
    const kept = await tokensOf(user);
    assert.equal(kept.length, limits.pushDevicesPerUser);
    assert.ok(kept.includes(token(0)) && kept.includes(token(50)) && !kept.includes(token(1)));
  });

  it('api#idempotency: a repeated registration gets the first answer, until the user is erased', async () => {
    const user = await scene.actor();
    const token = `idempotent:${user.id}`;
    const key = { 'idempotency-key': user.id };
    const send = () => user.api('POST', '/v1/push/devices', { provider: 'fcm', token }, key);
    const first = await send();
    assert.equal(first.status, 201);
    assert.deepEqual((await send()).body, first.body);
    await scene.server('DELETE', `/v1/users/${user.id}`);
    const rows = await db.query<{ body: Buffer | null }>('SELECT body FROM idempotency WHERE key = $1', [
      user.id,
    ]);
    assert.deepEqual(rows, [{ body: null }]);
  });
});

describe('push#devices: DELETE /v1/push/devices/{token}', () => {
  it('204, then 404; another user’s is 404 and stays', async () => {
    const [a, b] = [await scene.actor(), await scene.actor()];
    const token = `mine:${a.id}`;
    await register(a, token);
    assertError(await b.api('DELETE', path(token)), 404, 'not_found');
    assert.equal((await a.api('DELETE', path(token))).status, 204);
    assertError(await a.api('DELETE', path(token)), 404, 'not_found');
    assertError(await a.api('DELETE', path('never seen')), 404, 'not_found');
  });

  it('a token may be long and hold any character', async () => {
    const user = await scene.actor();
    const long = `${user.id}/${'x'.repeat(limits.pushTokenCharacters)}`.slice(0, limits.pushTokenCharacters);
    const encoded = `${'"'.repeat(4_000)}${user.id}`;
    for (const token of [long, encoded, `a/b?c=d#e%20f+g&h;i "{}[]\\ 語👋 ${user.id}`]) {
      assert.equal((await register(user, token)).status, 201);
      assert.equal((await user.api('DELETE', path(token))).status, 204);
    }
    const web = subscription(user.id);
    assert.equal((await register(user, web, 'webpush')).status, 201);
    assert.equal((await user.api('DELETE', path(web))).status, 204);
    assert.deepEqual(await tokensOf(user), []);
  });
});

describe('push#erasure', () => {
  it('devices vanish with the user', async () => {
    const user = await scene.actor();
    const token = `erased:${user.id}`;
    await register(user, token);
    assert.equal((await scene.server('DELETE', `/v1/users/${user.id}`)).status, 204);
    assert.deepEqual(await db.query('SELECT 1 FROM push_devices WHERE token = $1', [token]), []);
  });

  it('deactivation keeps them for a reactivation', async () => {
    const user = await scene.actor();
    await register(user, `deactivated:${user.id}`);
    await scene.server('POST', `/v1/users/${user.id}/deactivate`);
    assert.equal((await tokensOf(user)).length, 1);
  });
});
