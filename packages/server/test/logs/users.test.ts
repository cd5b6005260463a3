import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { AuditEntry, SocketSession, User } from '@parley/protocol';
import { createSocketHistory } from '../../src/features/live/history.ts';
import { closeLost } from '../../src/features/live/sql.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { signedInOwner } from '../accounts/dashboard.ts';
import { startWebpush } from '../push/vendors/webpush.ts';
import { assertError } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import { setUp, use, useService } from '../support/use.ts';

/** What those who run an environment see of its users, and do to them. */

const { service, scene, server, sql, db } = useService({ env: { CHAT_ALLOW_PRIVATE_TARGETS: 'true' } });
const vendor = use(
  () => startWebpush(() => Date.now()),
  (v) => v.close(),
);
let dashboard: Api;
setUp(async () => {
  dashboard = (await signedInOwner(service.url)).in('env_dev');
});

const audited = async (action: string): Promise<AuditEntry[]> =>
  (await dashboard('GET', `/v1/audit?action=${action}`)).body.data;

async function sessionsOf(
  userId: string,
  fits: (rows: SocketSession[]) => boolean,
): Promise<SocketSession[]> {
  for (;;) {
    const { status, body } = await dashboard('GET', `/v1/users/${userId}/sessions`);
    assert.equal(status, 200, JSON.stringify(body));
    if (fits(body.data)) return body.data;
    await delay(50);
  }
}

describe('GET /v1/users: search', () => {
  it('by the beginning of the id and of the name, page by page, and nobody who was erased', async () => {
    const names = ['Zoë Adams', 'zoe brown', 'ZOE_100%', 'Zo', 'Anna'];
    for (const [i, name] of names.entries()) await server('PUT', `/v1/users/find-${i}`, { name });
    await server('PUT', '/v1/users/find-9', { name: 'zoe gone' });
    await server('DELETE', '/v1/users/find-9');
    const found = async (query: string): Promise<string[]> => {
      const ids: string[] = [];
      let cursor: string | null = '';
      do {
        const { status, body } = await dashboard(
          'GET',
          `/v1/users?limit=2&${query}${cursor && `&cursor=${cursor}`}`,
        );
        assert.equal(status, 200, JSON.stringify(body));
        ids.push(...body.data.map((u: User) => u.id));
        cursor = body.nextCursor;
      } while (cursor !== null);
      return ids;
    };
    assert.deepEqual(await found('prefix=find-'), ['find-0', 'find-1', 'find-2', 'find-3', 'find-4']);
    assert.deepEqual(await found('prefix=find-4'), ['find-4']);
    assert.deepEqual(await found('prefix=find.'), []);
    assert.deepEqual((await found('namePrefix=ZO')).sort(), ['find-0', 'find-1', 'find-2', 'find-3']);
    assert.deepEqual((await found('namePrefix=zoe')).sort(), ['find-1', 'find-2']);
    assert.deepEqual(await found('namePrefix=zoe_'), ['find-2'], 'no pattern');
    assert.deepEqual(await found('namePrefix=zo&prefix=find-3'), ['find-3']);
    assertError(await dashboard('GET', '/v1/users?prefix=%00'), 400, 'invalid_request');
  });
});

describe('users from the dashboard', () => {
  it('deactivate, reactivate and revoke: as the server does it, and audited once', async () => {
    const { actor, socket } = await scene.person('managed');
    for (let i = 0; i < 2; i++)
      assert.equal((await dashboard('POST', `/v1/users/${actor.id}/deactivate`)).status, 200);
    assert.equal((await socket.closed).code, 4003);
    assertError(await actor.api('GET', '/v1/conversations'), 403, 'user_deactivated');
    assert.equal((await dashboard('POST', `/v1/users/${actor.id}/reactivate`)).status, 200);
    assert.equal((await dashboard('POST', `/v1/users/${actor.id}/revoke-tokens`)).status, 200);
    for (const action of ['users.deactivate', 'users.reactivate', 'users.revokeTokens']) {
      const entries = (await audited(action)).filter((e) => e.target === actor.id);
      assert.deepEqual([entries.length, entries[0]!.actor], [1, 'owner@example.com'], action);
    }
    await server('POST', `/v1/users/${actor.id}/deactivate`);
    assert.equal((await audited('users.deactivate')).filter((e) => e.target === actor.id).length, 1);
  });

  it('erase: production asks for the name of the environment; the audit keeps no name', async () => {
    const dev = await scene.actor('erased');
    assert.equal((await dashboard('DELETE', `/v1/users/${dev.id}`)).status, 204);
    const [entry] = await audited('users.erase');
    assert.match(entry!.target!, /^deleted:/);
    assert.ok(!JSON.stringify(entry).includes(dev.id));

    await sql(`UPDATE environments SET kind = 'production', name = 'Shop' WHERE id = 'env_other'`);
    const other = (await signedInOwner(service.url)).in('env_other');
    const { body } = await other('GET', '/v1/users?limit=1');
    assert.ok(body);
    await sql(`INSERT INTO users (env, id) SELECT no, 'prod-user' FROM environments WHERE id = 'env_other'`);
    assertError(await other('DELETE', '/v1/users/prod-user'), 400, 'invalid_request', 'confirm');
    assertError(await other('DELETE', '/v1/users/prod-user?confirm=shop'), 400, 'invalid_request', 'confirm');
    assert.equal((await other('DELETE', '/v1/users/prod-user?confirm=Shop')).status, 204);
  });
});

describe('sessions', () => {
  it('are listed while they are open and for days after, with where they came from', async () => {
    const { actor, socket } = await scene.person('sess');
    const [open] = await sessionsOf(actor.id, (rows) => rows.length === 1);
    const { openedAt, node, address, ...rest } = open!;
    assert.deepEqual(rest, {
      id: socket.hello.sessionId,
      userId: actor.id,
      sdk: 'test/1',
      closedAt: null,
      closeCode: null,
    });
    assert.ok(node.length > 0 && Date.parse(openedAt) > 0);
    assert.match(address!, /127\.0\.0\.1|::1/);
    const live = async () => (await dashboard('GET', `/v1/live/sockets?userId=${actor.id}`)).body.data;
    assert.deepEqual(
      (await live()).map((s: SocketSession) => s.id),
      [open!.id],
    );
    const { data: nodes } = (await dashboard('GET', '/v1/live/nodes')).body;
    assert.deepEqual(
      nodes.map((n: { id: string }) => n.id),
      [node],
    );
    assert.ok(nodes[0].sockets >= 1 && nodes[0].roles.includes('gateway'));
    await socket.close();
    const [closed] = await sessionsOf(actor.id, (rows) => rows[0]!.closedAt !== null);
    assert.equal(closed!.closeCode, 1000);
    assert.deepEqual(await live(), []);
    assert.deepEqual((await dashboard('GET', `/v1/users/${actor.id}/sessions?live=true`)).body.data, []);
    assertError(await dashboard('GET', '/v1/users/nobody-here/sessions'), 404, 'not_found');
  });

  it('are ended one by one, which is audited; what is not open is not found', async () => {
    const { actor, socket } = await scene.person('ended');
    const second = await scene.online(actor);
    await sessionsOf(actor.id, (rows) => rows.length === 2);
    const path = `/v1/users/${actor.id}/sessions/${socket.hello.sessionId}`;
    assert.equal((await dashboard('DELETE', path)).status, 204);
    assert.equal((await socket.closed).code, 4001);
    await second.barrier();
    await sessionsOf(actor.id, (rows) => rows.some((r) => r.closeCode === 4001));
    assertError(await dashboard('DELETE', path), 404, 'not_found');
    const stranger = await scene.actor();
    const theirs = `/v1/users/${stranger.id}/sessions/${second.hello.sessionId}`;
    assertError(await dashboard('DELETE', theirs), 404, 'not_found');
    const entries = (await audited('users.endSession')).filter((e) => e.target === actor.id);
    assert.deepEqual(
      entries.map((e) => e.changes.before),
      [{ sessionId: socket.hello.sessionId }],
    );
    await second.close();
  });

  it('of a node that went without a word are closed when it was last seen', async () => {
    const user = await scene.actor('lost');
    await sql(
      `INSERT INTO nodes VALUES ('gone', 'h', '0', '{gateway}', now() - interval '1 hour', now() - interval '10 minutes')`,
    );
    await sql(
      `INSERT INTO socket_sessions (env, id, usr, node, opened_at)
       SELECT env, 'ses_lost', no, 'gone', now() - interval '30 minutes' FROM users WHERE id = $1`,
      [user.id],
    );
    assert.deepEqual((await dashboard('GET', `/v1/live/sockets?userId=${user.id}`)).body.data, []);
    await closeLost(db);
    const [row] = await sessionsOf(user.id, (rows) => rows[0]!.closedAt !== null);
    const [{ seen }] = (await sql(`SELECT seen_at AS seen FROM nodes WHERE id = 'gone'`)) as [
      { seen: string },
    ];
    assert.deepEqual([row!.closedAt, row!.closeCode], [seen, null]);
  });

  it('while the store is away a bounded number waits; what was lost beyond that is mended', async () => {
    const user = await scene.actor('away');
    const [{ env, no }] = (await sql('SELECT env, no FROM users WHERE id = $1', [user.id])) as [
      { env: number; no: number },
    ];
    let away = false;
    const open = new Set<string>();
    const history = createSocketHistory({
      db: { query: (text, values) => (away ? Promise.reject(new Error('away')) : db.query(text, values)) },
      clock: systemClock,
      logger: createLogger('silent'),
      node: 'tested',
      version: '0',
      roles: [],
      open: () => open,
      maxWaiting: 3,
    });
    const session = (i: number) => ({
      env,
      id: `ses_away${i}`,
      user: no,
      address: '::1',
      sdk: null,
      openedAt: Date.now(),
    });
    for (let i = 0; i < 3; i++) history.opened(session(i));
    await history.flush();
    away = true;
    for (let i = 3; i < 6; i++) history.opened(session(i));
    history.closed({ ...session(0), closeCode: 1000 });
    await assert.rejects(history.flush());
    for (let i = 1; i < 6; i++) open.add(`ses_away${i}`);
    away = false;
    await history.flush();
    const rows = await sessionsOf(user.id, () => true);
    assert.equal(rows.length, 6);
    assert.deepEqual(
      rows.filter((r) => r.closedAt !== null).map((r) => r.id),
      ['ses_away0'],
    );
  });
});

describe('devices', () => {
  const register = (api: Api, token: string, provider = 'webpush') =>
    api('POST', '/v1/push/devices', { provider, token });

  it('are listed without their tokens, and removed', async () => {
    const actor = await scene.actor('dev');
    const token = `fcm-${'x'.repeat(40)}-secret-ABCDEF`;
    await register(actor.api, token, 'fcm');
    await register(actor.api, 'short', 'fcm');
    const { body } = await dashboard('GET', `/v1/users/${actor.id}/devices`);
    assert.deepEqual(
      body.data.map((d: { tokenEnd: string; provider: string }) => [d.provider, d.tokenEnd]),
      [
        ['fcm', ''],
        ['fcm', 'ABCDEF'],
      ],
    );
    assert.ok(!JSON.stringify(body).includes('secret'));
    const path = `/v1/users/${actor.id}/devices/${body.data[1].id}`;
    assert.equal((await dashboard('DELETE', path)).status, 204);
    assertError(await dashboard('DELETE', path), 404, 'not_found');
    assertError(await dashboard('DELETE', `/v1/users/${actor.id}/devices/1;2`), 404, 'not_found');
    assert.equal((await dashboard('GET', `/v1/users/${actor.id}/devices`)).body.data.length, 1);
    assert.equal((await audited('users.removeDevice')).filter((e) => e.target === actor.id).length, 1);
  });

  it('get a test push, and what the provider said is the answer', async () => {
    const { provider: _, ...credentials } = vendor.credentials;
    assert.equal((await dashboard('PUT', '/v1/push/credentials/webpush', { credentials })).status, 200);
    const actor = await scene.actor('pushed');
    await register(actor.api, 'no-credentials', 'fcm');
    await register(actor.api, vendor.deadToken);
    await register(actor.api, vendor.tokenOf(actor.id));
    const { status, body } = await dashboard('POST', '/v1/push/test', { userId: actor.id });
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(
      body.data.map((d: { provider: string; result: string }) => [d.provider, d.result]),
      [
        ['webpush', 'sent'],
        ['webpush', 'dead'],
        ['fcm', 'rejected'],
      ],
    );
    assert.equal(vendor.delivered.filter((d) => d.token === vendor.tokenOf(actor.id)).length, 1);
    const { data: left } = (await dashboard('GET', `/v1/users/${actor.id}/devices`)).body;
    assert.equal(left.length, 2, 'the dead one is gone');
    const one = await dashboard('POST', '/v1/push/test', { userId: actor.id, deviceId: left[0].id });
    assert.equal(one.body.data.length, 1);
    assertError(
      await dashboard('POST', '/v1/push/test', { userId: actor.id, deviceId: 'dev_1' }),
      404,
      'not_found',
    );
  });
});
