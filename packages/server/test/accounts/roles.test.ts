import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { accountRoles, operationList, roleMay } from '@parley/protocol';
import type { AccountRole, Operation } from '@parley/protocol';
import { assertError } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import { setUp, useService } from '../support/use.ts';
import { pretendNode, start } from '../calls/tools.ts';
import { createDashboard, foreignOwner, join, signedInOwner } from './dashboard.ts';
import type { Dashboard } from './dashboard.ts';

/**
 * The role walk: every operation that the dashboard may call, by every role, by somebody of another organization and by nobody.
 * Each call is one that works for whoever may make it.
 */

// Without a worker nothing changes by itself: no call ends because nobody answers, no delivery is tried, no socket is given up.
const { service, scene, sql, db } = useService({ env: { CHAT_ROLES: 'api,gateway' } });
let owner: Dashboard;
let organizationId: string;
const by = {} as Record<AccountRole, Dashboard>;
let foreigner: Dashboard & { organizationId: string };
let foreignEnvironment: string;
setUp(async () => {
  owner = await signedInOwner(service.url);
  organizationId = (await owner.api('GET', '/v1/session')).body.organizations[0].id;
  for (const role of accountRoles) by[role] = await join(service.url, owner, organizationId, role);
  foreigner = await foreignOwner(service.url, sql);
  foreignEnvironment = (
    await foreigner.api('POST', '/v1/environments', {
      organizationId: foreigner.organizationId,
      name: 'Theirs',
      kind: 'development',
    })
  ).body.id;
});

const walked = operationList.filter((op) => op.callers.includes('dashboard'));
const ofAPlace = walked.filter((op) => op.permission !== null);

/** What an id in a path names, made anew for each call: most operations change or remove it. */
const make: Record<string, () => Promise<string>> = {
  organizationId: () => Promise.resolve(organizationId),
  environmentId: async () =>
    (await owner.api('POST', '/v1/environments', { organizationId, name: 'walk', kind: 'development' })).body
      .id,
  accountId: async () => (await join(service.url, owner, organizationId, 'viewer')).id,
  invitationId: async () =>
    (
      await owner.api('POST', `/v1/organizations/${organizationId}/invitations`, {
        email: unique(),
        role: 'viewer',
      })
    ).body.id,
  keyId: async () => (await owner.in('env_dev')('POST', '/v1/keys', {})).body.id,
  webhookId: async () => {
    // An environment has at most 20.
    await sql('DELETE FROM webhook_endpoints');
    return (await owner.in('env_dev')('POST', '/v1/webhooks', endpoint)).body.id;
  },
  provider: async () => {
    await owner.in('env_dev')('PUT', '/v1/push/credentials/expo', expo);
    return 'expo';
  },
  slot: () => Promise.resolve('a'),
  name: async () => {
    await owner.in('env_dev')('PUT', '/v1/moderation/lists/walk', wordList());
    return 'walk';
  },
  kind: async () => {
    await owner.in('env_dev')('PUT', '/v1/hooks/before-send', hook());
    return 'before-send';
  },
  userId: async () => (await scene.actor()).id,
  reportId: async () => {
    const { id } = await conversation();
    const messageId = (await scene.send(null, id)).id;
    return (await scene.server('POST', '/v1/reports', { messageId, reason: 'spam' })).body.id;
  },
  conversationId: async () => (await conversation()).id,
  messageId: async () => {
    const { id } = await conversation();
    return (await scene.send(null, id, { text: 'hello' })).id;
  },
};
let count = 0;
const unique = () => `walk-${++count}@example.com`;
const endpoint = { url: 'https://hooks.example.com/x', events: ['sink.failing'] };
const nowhere = 'postgres://u:p@127.0.0.1:9/x?sslmode=disable';
/** Without a database of one's own they say so: history/endpoints.test.ts has them working. */
const needStorage = /^storage\.(rotateSecret|migrateDatabase|promote|resync|setMedia)$/;
/** The walk needs its organization, so it gives another name: delete-organization.test.ts has it working. */
const needName = /^organizations\.delete$/;
/** Nobody here is connected to media: calls/media.test.ts has it working. */
const needMedia = /^calls\.mute$/;
const expo = { credentials: { accessToken: 'expo-Secret-0123456789' } };
const wordList = () => ({ entries: [`walk${++count}`], action: 'mask', conversations: 'all' });
/** Messages of groups, which the walk sends, never reach it. */
const hook = () => ({ url: 'https://127.0.0.1:9/x', types: 'direct', timeoutMs: 100 + ++count });
const conversation = async () => scene.group(await scene.actor(), []);

/** Bodies and queries; those not named need none. */
const given: Record<
  string,
  () => Promise<{ body?: unknown; query?: string }> | { body?: unknown; query?: string }
> = {
  'organizations.update': () => ({ body: { name: 'walked' } }),
  'organizations.delete': () => ({ query: '?name=another' }),
  'organizations.updateMember': () => ({ body: { role: 'developer' } }),
  'invitations.create': () => ({ body: { email: unique(), role: 'viewer' } }),
  'environments.create': () => ({ body: { organizationId, name: 'walk', kind: 'development' } }),
  'environments.update': () => ({ body: { name: 'walked' } }),
  'keys.create': () => ({ body: {} }),
  'storage.update': () => ({ body: { bufferRetention: '72h' } }),
  'storage.setDatabase': () => ({ body: { url: nowhere } }),
  'storage.testDatabase': () => ({ body: {} }),
  'storage.migrateDatabase': () => ({ body: { adminUrl: nowhere } }),
  'storage.setMedia': () => ({ body: { provider: 'azure' } }),
  'storage.testMedia': () => ({ body: {} }),
  'push.setCredentials': () => ({ body: expo }),
  'webhooks.create': () => ({ body: endpoint }),
  'webhooks.update': () => ({ body: { description: 'walked' } }),
  'reports.update': () => ({ body: { status: 'resolved', actions: ['delete_message'] } }),
  'push.test': async () => ({ body: { userId: (await scene.actor()).id } }),
  'webhooks.replayFailed': () => ({ body: { since: '2026-01-01' } }),
  'live.trace': async () => ({ query: `?seconds=1&userId=${(await scene.actor()).id}` }),
  'diagnostics.delivery': async () => {
    const user = await scene.actor();
    const { id } = await scene.group(user, []);
    return { query: `?messageId=${(await scene.send(null, id)).id}&userId=${user.id}` };
  },
  'users.upsert': () => ({ body: { name: 'Walked' } }),
  'users.lookup': async () => ({ body: { userIds: [(await scene.actor()).id] } }),
  'conversations.create': () => ({ body: { type: 'group', members: [`walk-${++count}`] } }),
  'conversations.update': () => ({ body: { name: `walk-${++count}`, rules: { posting: 'moderators' } } }),
  'members.add': async () => ({ body: { userIds: [(await scene.actor()).id] } }),
  'messages.send': () => ({ body: { text: 'walked' } }),
  'wordLists.set': () => ({ body: wordList() }),
  'hooks.set': () => ({ body: hook() }),
  'conversations.list': async () => ({ query: `?userId=${(await scene.actor()).id}` }),
};

interface Call {
  path: string;
  body: unknown;
}

async function prepare(op: Operation): Promise<Call> {
  let path = op.path;
  if (path.includes('{callId}')) {
    // A call with the user of the path in it.
    const user = await scene.actor();
    await pretendNode(db);
    const { id } = await start(user, (await scene.group(user, [await scene.actor()])).id);
    path = path.replace('{callId}', id).replace('{userId}', user.id);
  }
  if (op.name === 'members.remove') {
    const user = await scene.actor();
    path = path.replace('{conversationId}', (await scene.group(user, [])).id).replace('{userId}', user.id);
  }
  for (const [, name] of path.matchAll(/\{(\w+)\}/g)) {
    if (name === 'deliveryId' || name === 'sessionId' || name === 'deviceId') continue;
    const maker = make[name!];
    assert.ok(maker, `say above how to make a ${name}`);
    path = path.replace(`{${name}}`, await maker());
  }
  if (path.includes('{deliveryId}')) {
    // A delivery that was made for the endpoint of the path.
    const id = path.split('/')[3]!;
    const { body } = await owner.in('env_dev')('POST', `/v1/webhooks/${id}/test`);
    path = path.replace('{deliveryId}', body.id);
  }
  // What belongs to the user of the path.
  const user = path.split('/')[3]!;
  if (path.includes('{sessionId}')) {
    const id = `ses_walk${++count}`;
    await sql(
      `INSERT INTO socket_sessions (env, id, usr, node, opened_at) SELECT env, $2, no, 'walk', now() FROM users WHERE id = $1`,
      [user, id],
    );
    path = path.replace('{sessionId}', id);
  }
  if (path.includes('{deviceId}')) {
    const [row] = await sql(
      `INSERT INTO push_devices (env, usr, provider, token, token_hash, created_at, registered_at)
       SELECT env, no, 'fcm', $1, sha256($1::text::bytea), now(), now() FROM users WHERE id = $1 RETURNING no`,
      [user],
    );
    path = path.replace('{deviceId}', `dev_${row!['no'] as number}`);
  }
  const { body, query = '' } = (await given[op.name]?.()) ?? {};
  return { path: path + query, body };
}

const call = (
  who: Dashboard,
  op: Operation,
  { path, body }: Call,
  environment = 'env_dev',
): Promise<Answer> =>
  op.scope === 'environment' ? who.in(environment)(op.method, path, body) : who.api(op.method, path, body);

/** They look something up, try something out, or have nothing to do here. */
const unrecorded = new Set([
  'users.lookup',
  'storage.testDatabase',
  'storage.testMedia',
  'users.reactivate',
  'users.unsilence',
  'webhooks.replayFailed',
  'storage.removeMedia',
]);

/** What was changed is in the audit, once, under the request that changed it. */
async function assertRecorded(op: Operation, answer: Answer): Promise<void> {
  const rows = await sql('SELECT action FROM audit WHERE request_id = $1 ORDER BY no', [
    answer.headers.get('request-id'),
  ]);
  assert.deepEqual(
    rows.map(({ action }) => action),
    unrecorded.has(op.name) ? [] : [op.name, ...(op.name === 'environments.create' ? ['keys.create'] : [])],
  );
}

for (const op of ofAPlace)
  describe(`${op.name} (${op.permission})`, () => {
    for (const role of accountRoles)
      it(roleMay(role, op.permission!) ? `${role}: works` : `${role}: 403`, async () => {
        const who =
          op.name === 'organizations.leave' ? await join(service.url, owner, organizationId, role) : by[role];
        const answer = await call(who, op, await prepare(op));
        const lacks = [needStorage, needMedia, needName].some((pattern) => pattern.test(op.name));
        if (roleMay(role, op.permission!) && lacks) assertError(answer, 400, 'invalid_request');
        else if (roleMay(role, op.permission!)) {
          assert.ok(answer.status < 300, JSON.stringify(answer.body));
          if (op.method !== 'GET' && role === 'owner') await assertRecorded(op, answer);
        } else assertError(answer, 403, 'forbidden');
      });

    it('another organization: 404, as for what does not exist; nobody: 401', async () => {
      const prepared = await prepare(op);
      const foreign = await call(foreigner, op, prepared);
      assertError(foreign, 404, 'not_found');
      if (op.scope === 'environment' && op.path.includes('{')) {
        // Its own environment, with an id of ours.
        const mixed = await call(foreigner, op, prepared, foreignEnvironment);
        const chosen = /\{(userId|provider|slot|name|kind)\}/.test(op.path);
        if (!chosen) assertError(mixed, 404, 'not_found');
        else assert.ok(!JSON.stringify(mixed.body).includes('env_dev'));
      }
      assertError(await call(createDashboard(service.url), op, prepared), 401, 'token_invalid');
    });

    it('an attempt that was refused changed nothing', async () => {
      if (op.method === 'GET') return;
      const prepared = await prepare(op);
      const before = await state();
      for (const who of [foreigner, createDashboard(service.url)]) await call(who, op, prepared);
      for (const role of accountRoles) if (!roleMay(role, op.permission!)) await call(by[role], op, prepared);
      assert.deepEqual(await state(), before);
    });
  });

/** All that the walk could change, but when a session was last used. */
async function state(): Promise<unknown> {
  const tables = [
    'organizations',
    'organization_accounts',
    'environments',
    'webhook_endpoints',
    'webhook_deliveries',
    'users',
    'push_devices',
    'socket_sessions',
    'storage',
    'storage_slots',
    'media_storages',
    'conversations',
    'members',
    'messages',
    'calls',
    'call_participants',
    'reports',
    'restrictions',
  ];
  const rows = [];
  for (const table of [...tables, 'invitations', 'push_credentials', 'audit'])
    rows.push(await sql(`SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) AS sum FROM ${table} t`));
  rows.push(await sql(`SELECT id, name, revoked_at FROM secret_keys ORDER BY id`));
  return rows;
}

describe('what concerns the caller alone', () => {
  for (const op of walked.filter((o) => o.permission === null))
    it(`${op.name}: 401 for nobody`, async () => {
      const path = op.path.replaceAll(/\{\w+\}/g, 'x');
      assertError(await createDashboard(service.url).api(op.method, path), 401, 'token_invalid');
    });

  it('lists show what the account belongs to, and nothing else', async () => {
    const names = async (who: Dashboard, path: string) =>
      (await who.api('GET', path)).body.data.map(
        (e: { id: string; organizationId?: string }) => e.organizationId ?? e.id,
      );
    assert.deepEqual(await names(foreigner, '/v1/environments'), [foreignEnvironment]);
    assert.deepEqual([...new Set(await names(foreigner, '/v1/audit'))], [foreigner.organizationId]);
    assert.ok(!(await names(by.viewer, '/v1/environments?limit=200')).includes(foreignEnvironment));
    assert.ok(!(await names(by.viewer, '/v1/audit?limit=200')).includes(foreigner.organizationId));
    for (const [path, headers] of [
      ['/v1/audit', { 'chat-env': 'env_dev' }],
      ['/v1/audit?environmentId=env_dev', {}],
    ] as [string, Record<string, string>][]) {
      assertError(await foreigner.api('GET', path, undefined, headers), 404, 'not_found');
      assert.equal((await by.viewer.api('GET', path, undefined, headers)).status, 200);
    }
  });
});

it('every operation of the dashboard was walked', () => {
  assert.ok(ofAPlace.length >= 35, String(ofAPlace.length));
});
