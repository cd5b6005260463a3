import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createApi } from '../support/api.ts';
import { setUp, useService } from '../support/use.ts';
import { dump } from '../core/tools.ts';
import { createDashboard, join, owner as ownerIs, signedInOwner } from './dashboard.ts';
import type { Dashboard } from './dashboard.ts';
import { totpApp } from './totp-app.ts';

/** What the audit log says, who reads what people wrote, and that no secret is in the store, the log or an answer. */

const { service, scene, db, sql } = useService({ env: { CHAT_LOG_LEVEL: 'trace' } });
let owner: Dashboard;
let organizationId: string;
setUp(async () => {
  owner = await signedInOwner(service.url);
  organizationId = (await owner.api('GET', '/v1/session')).body.organizations[0].id;
});

interface Entry {
  at: string;
  actor: string;
  action: string;
  target: string | null;
  environmentId: string | null;
  ip: string | null;
  requestId: string;
  changes: { before: object | null; after: object | null };
}
const audit = async (query = ''): Promise<Entry[]> =>
  (await owner.api('GET', `/v1/audit?limit=200${query}`)).body.data;

describe('GET /v1/audit', () => {
  it('has every change: who, from where, what, before and after, and the request', async () => {
    const api = owner.in('env_dev');
    const known = new Set((await audit()).map((e) => e.requestId));
    const calls = [
      await owner.api('PATCH', `/v1/organizations/${organizationId}`, { name: 'Renamed' }),
      await owner.api('PATCH', '/v1/environments/env_dev', { name: 'dev', settings: { pushMode: 'off' } }),
      await api('POST', '/v1/keys', { name: 'k' }),
      await api('POST', '/v1/webhooks', { url: 'https://hooks.example.com/a', events: ['message.created'] }),
    ];
    const webhook = `/v1/webhooks/${calls[3]!.body.id}`;
    calls.push(await api('PATCH', webhook, { url: 'https://hooks.example.com/b' }));
    calls.push(await api('POST', `${webhook}/rotate-secret`));
    calls.push(await api('DELETE', webhook));
    calls.push(await api('DELETE', `/v1/keys/${calls[2]!.body.id}`));
    calls.push(await owner.api('PATCH', '/v1/account', { name: 'Olga' }));
    for (const { status } of calls) assert.ok(status < 300);
    const entries = (await audit()).filter((e) => !known.has(e.requestId)).reverse();
    assert.deepEqual(
      entries.map((e) => e.action),
      [
        'organizations.update',
        'environments.update',
        'keys.create',
        'webhooks.create',
        'webhooks.update',
        'webhooks.rotateSecret',
        'webhooks.delete',
        'keys.revoke',
        'account.update',
      ],
    );
    for (const [i, entry] of entries.entries()) {
      assert.equal(entry.actor, ownerIs.email);
      assert.equal(entry.ip, '127.0.0.1');
      assert.equal(entry.requestId, calls[i]!.headers.get('request-id'));
    }
    assert.deepEqual(entries[0]!.changes, { before: { name: 'Parley' }, after: { name: 'Renamed' } });
    assert.deepEqual(entries[4]!.changes, {
      before: { url: 'https://hooks.example.com/a' },
      after: { url: 'https://hooks.example.com/b' },
    });
    assert.equal(entries[2]!.environmentId, 'env_dev');
  });

  it('a change that changes nothing, and one that fails, leave no entry', async () => {
    await owner.api('PATCH', `/v1/organizations/${organizationId}`, { name: 'Same' });
    const before = (await audit()).length;
    await owner.api('PATCH', `/v1/organizations/${organizationId}`, { name: 'Same' });
    await owner.in('env_dev')('POST', '/v1/webhooks', { url: 'not a url', events: ['message.created'] });
    assert.equal((await audit()).length, before);
  });

  it('is filtered, paged, and exported as CSV and JSON lines', async () => {
    await owner.in('env_dev')('POST', '/v1/keys', { name: '=cmd()' });
    const keys = await audit('&action=keys.create');
    assert.ok(keys.length > 0 && keys.every((e) => e.action === 'keys.create'));
    assert.deepEqual(await audit('&actor=somebody-else'), []);
    const raw = (query: string) =>
      fetch(`${service.url}/v1/audit?${query}`, { headers: { cookie: `parley_session=${owner.cookie}` } });
    const all = await audit();
    const lines = await raw('format=jsonl');
    assert.equal(lines.headers.get('content-type'), 'application/jsonl; charset=utf-8');
    const parsed = (await lines.text())
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry);
    assert.deepEqual(parsed.slice(0, all.length), all);
    const csv = await raw('format=csv&action=keys.create');
    assert.equal(csv.headers.get('content-type'), 'text/csv; charset=utf-8');
    assert.match(csv.headers.get('content-disposition')!, /^attachment; filename="audit\.csv"$/);
    const [head, ...rows] = (await csv.text()).trimEnd().split('\r\n');
    assert.equal(head, 'at,actor,action,target,organizationId,environmentId,ip,requestId,changes');
    assert.equal(rows.length, (await audit('&action=keys.create')).length);
  });

  it('cannot be changed through the API', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
      assert.equal((await owner.api(method, '/v1/audit')).status, 405);
  });
});

describe('the explorer', () => {
  it('reads users, conversations and members; what people wrote is noted once per conversation and hour', async () => {
    const [ann, bob] = [await scene.actor('ann'), await scene.actor('bob')];
    const { id } = await scene.group(ann, [bob]);
    const message = await scene.send(ann, id, { text: 'between us' });
    const developer = await join(service.url, owner, organizationId, 'developer');
    const viewer = await join(service.url, owner, organizationId, 'viewer');
    const reads = async () => (await audit('&action=messages.list')).filter((e) => e.target === id);
    for (const who of [developer, viewer]) {
      const api = who.in('env_dev');
      for (const path of [
        '/v1/users',
        `/v1/users/${ann.id}`,
        `/v1/conversations/${id}`,
        `/v1/conversations/${id}/members`,
        `/v1/conversations?userId=${ann.id}`,
      ]) {
        const { status, body } = await api('GET', path);
        assert.equal(status, 200, path);
        assert.ok(!JSON.stringify(body).includes('between us'), path);
      }
    }
    assert.deepEqual(await reads(), []);
    const content = [
      `/v1/conversations/${id}/messages`,
      `/v1/messages/${message.id}`,
      `/v1/conversations/${id}/events`,
    ];
    for (const path of content) {
      assert.equal((await viewer.in('env_dev')('GET', path)).status, 403, 'a viewer never reads content');
      const answer = await developer.in('env_dev')('GET', path);
      assert.ok(JSON.stringify(answer.body).includes('between us'));
    }
    assert.deepEqual(
      (await reads()).map((e) => [e.actor, e.environmentId]),
      [[developer.email, 'env_dev']],
    );
    await sql(`UPDATE content_reads SET hour = hour - interval '1 hour'`);
    await Promise.all(content.map((path) => developer.in('env_dev')('GET', path)));
    assert.equal((await reads()).length, 2);
    const other = await scene.group(ann, []);
    await owner.in('env_dev')('GET', `/v1/conversations/${other.id}/messages`);
    assert.equal(
      (await audit('&action=messages.list')).find((e) => e.target === other.id)!.actor,
      ownerIs.email,
    );
  });

  it('what servers and clients read is their own business', async () => {
    const ann = await scene.actor('ann');
    const { id } = await scene.group(ann, []);
    await ann.api('GET', `/v1/conversations/${id}/messages`);
    await scene.server('GET', `/v1/conversations/${id}/messages`);
    assert.ok(!(await audit('&action=messages.list')).some((e) => e.target === id));
  });
});

it('no secret is in the audit log, in the store, in the log, or in an answer that should not have it', async () => {
  const secrets: Record<string, string> = { ownerPassword: ownerIs.password };
  const me = await join(service.url, owner, organizationId, 'developer');
  secrets['password'] = me.password;
  secrets['firstToken'] = me.cookie!;
  const { body: totp } = await me.api('POST', '/v1/account/totp');
  secrets['totp'] = totp.secret;
  const { body: confirmed } = await me.api('POST', '/v1/account/totp/confirm', { code: totpApp(totp.uri)() });
  confirmed.recoveryCodes.forEach((code: string, i: number) => (secrets[`recovery${i}`] = code));
  await createDashboard(service.url).signIn(me.email, me.password, secrets['recovery0']);
  const api = me.in('env_dev');
  secrets['key'] = (await api('POST', '/v1/keys', { name: 'x' })).body.secretKey;
  await createApi(service.url, secrets['key']!)('GET', '/v1/users');
  const hook = { url: 'https://hooks.example.com/s', events: ['message.created'] };
  const { body: webhook } = await api('POST', '/v1/webhooks', hook);
  secrets['webhook'] = webhook.secret;
  secrets['rotated'] = (await api('POST', `/v1/webhooks/${webhook.id}/rotate-secret`)).body.secret;
  secrets['push'] = 'expo-Secret-0123456789';
  await api('PUT', '/v1/push/credentials/expo', { credentials: { accessToken: secrets['push'] } });
  const made = await owner.api('POST', '/v1/environments', {
    organizationId,
    name: 'n',
    kind: 'development',
  });
  secrets['firstKey'] = made.body.secretKey;
  const link = (
    await owner.api('POST', `/v1/organizations/${organizationId}/invitations`, {
      email: 'i@example.com',
      role: 'viewer',
    })
  ).body.link as string;
  secrets['invitation'] = new URL(link).hash.slice(1);
  await me.api('POST', '/v1/session/reauth', { password: me.password, code: secrets['recovery1'] });
  secrets['secondToken'] = me.cookie!;

  const answers = [];
  for (const path of [
    '/v1/session',
    '/v1/account',
    '/v1/account/sessions',
    '/v1/account/passkeys',
    '/v1/audit?limit=200',
  ])
    answers.push((await me.api('GET', path)).body);
  for (const path of ['/v1/keys', '/v1/webhooks', '/v1/push/credentials'])
    answers.push((await api('GET', path)).body);
  answers.push((await owner.api('GET', `/v1/organizations/${organizationId}/invitations`)).body);
  const places = { answers: JSON.stringify(answers), store: await dump(db), log: service.output() };
  assert.ok(places.log.includes('session.create'), 'the log is there');
  for (const [name, secret] of Object.entries(secrets))
    for (const [place, text] of Object.entries(places))
      for (const form of [secret, Buffer.from(secret).toString('hex')])
        assert.ok(!text.includes(form), `${name} is in the ${place}`);
});
