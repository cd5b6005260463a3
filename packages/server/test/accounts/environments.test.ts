import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertError, createApi } from '../support/api.ts';
import { parley } from '../support/cli.ts';
import { setUp, useService } from '../support/use.ts';
import { foreignOwner, owner as ownerIs, signedInOwner } from './dashboard.ts';
import type { Dashboard } from './dashboard.ts';

/** dashboard#environments: environments, keys, push credentials and webhooks from the dashboard. */

const { service, sql, restart } = useService({ own: true });
let owner: Dashboard;
let organizationId: string;
setUp(async () => {
  owner = await signedInOwner(service.url);
  organizationId = (await owner.api('GET', '/v1/session')).body.organizations[0].id;
});

const create = (fields: object) => owner.api('POST', '/v1/environments', { organizationId, ...fields });

describe('environments', () => {
  it('are created with their first key, read, renamed, suspended and set', async () => {
    const { status, body } = await create({ name: 'Shop', kind: 'development' });
    assert.equal(status, 201);
    const { secretKey, ...env } = body;
    assert.equal(env.plan, 'free');
    assert.equal((await createApi(service.url, secretKey)('GET', '/v1/users')).status, 200);
    assert.deepEqual((await owner.api('GET', `/v1/environments/${env.id}`)).body, env);
    const patch = (change: object) => owner.api('PATCH', `/v1/environments/${env.id}`, change);
    assert.equal((await patch({ name: 'Store' })).body.name, 'Store');
    assert.equal((await patch({ settings: { pushMode: 'off' } })).body.settings.pushMode, 'off');
    assert.equal((await patch({ status: 'suspended' })).body.status, 'suspended');
    assertError(await createApi(service.url, secretKey)('GET', '/v1/users'), 403, 'forbidden');
    assert.equal((await patch({ status: 'active' })).body.status, 'active');
    assertError(await patch({}), 400, 'invalid_request');
    assertError(await patch({ settings: { color: 'red' } }), 400, 'unknown_field');
    const { data } = (await owner.api('GET', '/v1/environments?limit=200')).body;
    assert.ok(data.some((e: { id: string; name: string }) => e.id === env.id && e.name === 'Store'));
    const session = (await owner.api('GET', '/v1/session')).body;
    assert.ok(session.organizations[0].environments.some((e: { id: string }) => e.id === env.id));
  });

  it('what the operator alone sets is refused', async () => {
    assertError(await create({ name: 'x', kind: 'development', id: 'env_mine' }), 403, 'forbidden', 'id');
    assertError(
      await owner.api('PATCH', '/v1/environments/env_dev', { plan: 'enterprise' }),
      403,
      'forbidden',
      'plan',
    );
    for (const plan of ['starter', 'enterprise', 'free'])
      assertError(await create({ name: 'x', kind: 'development', plan }), 403, 'forbidden', 'plan');
    assertError(
      await owner.api('PATCH', '/v1/environments/env_dev', { local: false }),
      403,
      'forbidden',
      'local',
    );
  });

  it('dashboard#environments: an organization has at most 20, also of requests at once; the operator may make more', async () => {
    const stranger = await foreignOwner(service.url, sql);
    const wanted = { organizationId: stranger.organizationId, name: 'x', kind: 'production' };
    const answers = await Promise.all(
      Array.from({ length: 24 }, () => stranger.api('POST', '/v1/environments', wanted)),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 20);
    for (const answer of answers)
      if (answer.status !== 201) assert.match(assertError(answer, 400, 'invalid_request').message, /20/);
    const made = await parley(
      service,
      'env',
      'create',
      '--name',
      'y',
      '--kind',
      'production',
      '--plan',
      'growth',
      '--organization',
      stranger.organizationId,
    );
    assert.equal(made.plan, 'growth');
  });

  it('suspending production needs its name, typed', async () => {
    const { body: env } = await create({ name: 'Live', kind: 'production' });
    const suspend = (more: object) =>
      owner.api('PATCH', `/v1/environments/${env.id}`, { status: 'suspended', ...more });
    for (const more of [{}, { confirm: 'live' }, { confirm: '' }])
      assertError(await suspend(more), 400, 'invalid_request', 'confirm');
    assert.equal((await owner.api('GET', `/v1/environments/${env.id}`)).body.status, 'active');
    assert.equal((await suspend({ confirm: 'Live' })).body.status, 'suspended');
    assert.equal((await owner.api('PATCH', `/v1/environments/${env.id}`, { status: 'active' })).status, 200);
  });

  it('of others do not exist', async () => {
    const stranger = await foreignOwner(service.url, sql);
    assertError(await stranger.api('GET', '/v1/environments/env_dev'), 404, 'not_found');
    assertError(await stranger.api('PATCH', '/v1/environments/env_dev', { name: 'x' }), 404, 'not_found');
    assertError(
      await stranger.api('POST', '/v1/environments', { organizationId, name: 'x', kind: 'development' }),
      404,
      'not_found',
    );
    assert.deepEqual((await stranger.api('GET', '/v1/environments')).body, { data: [], nextCursor: null });
    const made = await stranger.api('POST', '/v1/environments', {
      organizationId: stranger.organizationId,
      name: 'Theirs',
      kind: 'development',
    });
    assert.equal(made.status, 201);
    assertError(await owner.api('GET', `/v1/environments/${made.body.id}`), 404, 'not_found');
  });
});

describe('keys', () => {
  it('dashboard#reauth: a new one needs a recent sign-in', async () => {
    const late = await signedInOwner(service.url);
    await sql(`UPDATE account_sessions SET signed_in_at = now() - interval '16 minutes'`);
    assertError(await late.in('env_dev')('POST', '/v1/keys', {}), 403, 'reauth_required');
    assert.equal((await late.api('POST', '/v1/session/reauth', { password: ownerIs.password })).status, 200);
    assert.equal((await late.in('env_dev')('POST', '/v1/keys', {})).status, 201);
    await owner.api('POST', '/v1/session/reauth', { password: ownerIs.password });
  });

  it('are made, named, listed without secrets, used and revoked', async () => {
    const api = owner.in('env_dev');
    const { status, body: key } = await api('POST', '/v1/keys', { name: 'backend' });
    assert.equal(status, 201);
    assert.match(key.secretKey, /^sk_live_\w{16}_\w{32}$/);
    const server = createApi(service.url, key.secretKey);
    assert.equal((await server('GET', '/v1/users')).status, 200);
    const listed = async () =>
      (await api('GET', '/v1/keys?limit=200')).body.data.find((k: { id: string }) => k.id === key.id);
    const { secretKey: _, ...shown } = key;
    assert.deepEqual(await listed(), { ...shown, lastUsedAt: null, revokedAt: null });
    assert.equal((await api('DELETE', `/v1/keys/${key.id}`)).status, 204);
    assertError(await server('GET', '/v1/users'), 401, 'key_revoked');
    assert.ok((await listed()).revokedAt);
    assertError(await api('DELETE', '/v1/keys/nothere'), 404, 'not_found');
    const madeUp = Buffer.from('["Feb 31 2026","x"]').toString('base64url');
    assertError(await api('GET', `/v1/keys?cursor=${madeUp}`), 400, 'invalid_request', 'cursor');
    const large = Buffer.from(String(2 ** 31)).toString('base64url');
    assertError(await api('GET', `/v1/environments?cursor=${large}`), 400, 'invalid_request', 'cursor');
    assertError(await owner.in('env_other')('DELETE', `/v1/keys/${key.id}`), 404, 'not_found');
  });

  it('say when they were last used, their tokens included; written when the process ends, too', async () => {
    const { body: key } = await owner.in('env_dev')('POST', '/v1/keys', { name: 'used' });
    const { body: unused } = await owner.in('env_dev')('POST', '/v1/keys', { name: 'unused' });
    const { body } = await createApi(service.url, key.secretKey)('POST', '/v1/tokens', { userId: 'ann' });
    assert.equal((await createApi(service.url, body.token)('GET', '/v1/conversations')).status, 200);
    await restart();
    owner = await signedInOwner(service.url);
    const { data } = (await owner.in('env_dev')('GET', '/v1/keys?limit=200')).body;
    const lastUsed = (id: string) => data.find((k: { id: string }) => k.id === id).lastUsedAt;
    assert.ok(Date.now() - Date.parse(lastUsed(key.id)) < 5 * 60_000);
    assert.equal(lastUsed(unused.id), null);
  });
});

describe('push credentials and webhooks', () => {
  it('are set from the dashboard, and never shown', async () => {
    const api = owner.in('env_dev');
    const credentials = { accessToken: 'expo-Secret-0123456789' };
    const set = await api('PUT', '/v1/push/credentials/expo', { credentials });
    assert.equal(set.status, 200, JSON.stringify(set.body));
    const list = await api('GET', '/v1/push/credentials');
    assert.ok(!JSON.stringify([set.body, list.body]).includes('Secret'));
    assert.equal((await api('DELETE', '/v1/push/credentials/expo')).status, 204);
  });

  it('webhooks: all that a server may', async () => {
    const api = owner.in('env_dev');
    const made = await api('POST', '/v1/webhooks', {
      url: 'https://hooks.example.com/x',
      events: ['message.created'],
    });
    assert.equal(made.status, 201);
    const path = `/v1/webhooks/${made.body.id}`;
    assert.equal((await api('GET', path)).body.secret, undefined);
    assert.equal((await api('PATCH', path, { description: 'mine' })).body.description, 'mine');
    assert.equal((await api('POST', `${path}/rotate-secret`)).status, 200);
    assert.equal((await api('GET', `${path}/deliveries`)).status, 200);
    assertError(await owner.in('env_other')('GET', path), 404, 'not_found');
    assert.equal((await api('DELETE', path)).status, 204);
  });
});
