import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { LogEntry } from '@parley/protocol';
import { keepPartitions } from '../../src/features/logs/sql.ts';
import { createDashboard, foreignOwner, signedInOwner } from '../accounts/dashboard.ts';
import { assertError, createApi } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import { environments } from '../support/service.ts';
import { signToken } from '../support/tokens.ts';
import { setUp, useService } from '../support/use.ts';
import { startReceiver, status } from '../webhooks/receiver.ts';
import { addEndpoint } from '../webhooks/tools.ts';
import { logged } from './tools.ts';

/** dashboard#logs: GET /v1/logs. */

const { service, scene, server, sql, db } = useService();
let dashboard: Api;
setUp(async () => {
  dashboard = (await signedInOwner(service.url)).in('env_dev');
});

const requestIdOf = (answer: { headers: Headers }): string => answer.headers.get('request-id')!;

describe('GET /v1/logs: requests', () => {
  it('finds the requestId of an error body, with all that is kept of it', async () => {
    const ann = await scene.actor('ann');
    const answer = await ann.api('GET', '/v1/messages/msg_none');
    const { requestId } = answer.body.error;
    const [row] = await logged(dashboard, `requestId=${requestId}`);
    const { id, at, durationMs, address, ...rest } = row!;
    assert.deepEqual(rest, {
      kind: 'request',
      requestId,
      method: 'GET',
      operation: 'messages.get',
      status: 404,
      code: 'not_found',
      caller: 'client',
      callerId: null,
      keyName: null,
      userId: ann.id,
      sessionId: null,
      webhookId: null,
      deliveryId: null,
    });
    assert.ok(id.length > 0 && Math.abs(Date.parse(at) - Date.now()) < 600_000 && durationMs >= 0);
    assert.match(address!, /127\.0\.0\.1|::1/);
  });

  it('servers by their key, the dashboard by its account, successes too', async () => {
    const byServer = await server('GET', '/v1/users?limit=1');
    const [mine] = await logged(dashboard, `requestId=${requestIdOf(byServer)}`);
    assert.deepEqual(
      [mine!.caller, mine!.callerId, mine!.status, mine!.code, mine!.operation],
      ['server', environments.dev.secretKey.split('_')[2], 200, null, 'users.list'],
    );
    const byDashboard = await dashboard('GET', '/v1/webhooks');
    const [theirs] = await logged(dashboard, `requestId=${requestIdOf(byDashboard)}`);
    assert.deepEqual([theirs!.caller, theirs!.callerId], ['dashboard', 'owner@example.com']);
  });

  it('a key by its name, as it is now; and who called is a filter', async () => {
    const { body: key } = await dashboard('POST', '/v1/keys', { name: 'checkout' });
    const byKey = await createApi(service.url, key.secretKey as string)('GET', '/v1/users?limit=1');
    const [row] = await logged(dashboard, `requestId=${requestIdOf(byKey)}`);
    assert.deepEqual([row!.callerId, row!.keyName], [key.id, 'checkout']);

    const byDashboard = await dashboard('GET', '/v1/webhooks');
    const byClient = await (await scene.actor('cat')).api('GET', '/v1/conversations');
    await logged(dashboard, `requestId=${requestIdOf(byClient)}`);
    const ids = [byKey, byDashboard, byClient].map(requestIdOf);
    const found = async (caller: string) => {
      const rows = await logged(dashboard, `caller=${caller}`);
      return ids.map((id) => rows.some(({ requestId }) => requestId === id));
    };
    assert.deepEqual(await found('app'), [true, false, true]);
    assert.deepEqual(await found('server'), [true, false, false]);
    assert.deepEqual(await found('client'), [false, false, true]);
    assert.deepEqual(await found('dashboard'), [false, true, false]);
  });

  it('a credential that is genuine but refused is in the log of its environment; a forged one is in none', async () => {
    const ann = await scene.actor('ann');
    const past = Math.floor(Date.now() / 1000) - 1_000;
    const expired = signToken({ sub: ann.id, iat: past, exp: past + 10 });
    const answer = await createApi(service.url, expired)('GET', '/v1/conversations');
    assertError(answer, 401, 'token_expired');
    const [row] = await logged(dashboard, `requestId=${requestIdOf(answer)}`);
    assert.deepEqual([row!.code, row!.userId, row!.caller], ['token_expired', ann.id, 'client']);

    const forged = await createApi(service.url, `${expired.slice(0, -4)}AAAA`)('GET', '/v1/conversations');
    assertError(forged, 401, 'token_invalid');
    const later = await server('GET', '/v1/users?limit=1');
    await logged(dashboard, `requestId=${requestIdOf(later)}`);
    assert.deepEqual(await sql('SELECT 1 FROM request_log WHERE request_id = $1', [requestIdOf(forged)]), []);
  });

  it('filters by status, class, code, operation, user, kind and time; pages newest first without a gap or repeat', async () => {
    const bob = await scene.actor('bob');
    for (let i = 0; i < 5; i++) await bob.api('GET', '/v1/conversations');
    await bob.api('GET', '/v1/conversations/conv_none');
    await bob.api('GET', '/v1/users');
    const all = await logged(dashboard, `userId=${bob.id}`, (rows) => rows.length === 7);
    assert.deepEqual(
      all.map((r) => r.at),
      [...all.map((r) => r.at)].sort().reverse(),
    );
    const codes = async (query: string) =>
      (await dashboard('GET', `/v1/logs?userId=${bob.id}&${query}`)).body.data.map((r: LogEntry) => r.code);
    assert.deepEqual((await codes('status=error')).sort(), ['forbidden', 'not_found']);
    assert.deepEqual(await codes('status=404'), ['not_found']);
    assert.deepEqual((await codes('status=4xx')).length, 2);
    assert.deepEqual((await codes('status=2xx')).length, 5);
    assert.deepEqual(await codes('code=forbidden'), ['forbidden']);
    assert.deepEqual(await codes('operation=users.list'), ['forbidden']);
    assert.deepEqual(await codes('kind=socket'), []);
    assert.deepEqual((await codes(`from=${all[6]!.at}`)).length, 7);
    assert.deepEqual(await codes(`to=${all[6]!.at}`), []);

    const paged: string[] = [];
    let cursor: string | null = '';
    do {
      const { body } = await dashboard(
        'GET',
        `/v1/logs?userId=${bob.id}&limit=3${cursor && `&cursor=${cursor}`}`,
      );
      paged.push(...body.data.map((r: LogEntry) => r.id));
      cursor = body.nextCursor;
    } while (cursor !== null);
    assert.deepEqual(
      paged,
      all.map((r) => r.id),
    );
  });

  it('a filter that fits little looks through a bounded number of rows, and says where to go on', async () => {
    await sql(
      `INSERT INTO request_log (env, at, kind, failed, operation, ms)
       SELECT (SELECT no FROM environments WHERE id = 'env_other'), now() - i * interval '1 millisecond', 'request', false,
         CASE WHEN i = 25000 THEN 'rare' ELSE 'common' END, 1 FROM generate_series(1, 30000) i`,
    );
    const other = (await signedInOwner(service.url)).in('env_other');
    const first = await other('GET', '/v1/logs?operation=rare');
    assert.deepEqual(first.body.data, []);
    assert.ok(first.body.nextCursor);
    const second = await other('GET', `/v1/logs?operation=rare&cursor=${first.body.nextCursor}`);
    assert.deepEqual(
      second.body.data.map((r: LogEntry) => r.operation),
      ['rare'],
    );
    assert.equal(second.body.nextCursor, null);
  });

  it('bad filters and foreign environments are refused', async () => {
    for (const query of [
      'status=9xx',
      'kind=x',
      'caller=x',
      'from=yesterday',
      'from=2026-02-31T99:00:00Z',
      'from=0000-01-01',
      'cursor=x',
      `cursor=${Buffer.from('["Feb 31 2026",1]').toString('base64url')}`,
      'limit=0',
    ])
      assertError(await dashboard('GET', `/v1/logs?${query}`), 400, 'invalid_request');
    const foreigner = await foreignOwner(service.url, sql);
    assertError(await foreigner.in('env_dev')('GET', '/v1/logs'), 404, 'not_found');
    assertError(await server('GET', '/v1/logs'), 403, 'forbidden');
    assertError(await createDashboard(service.url).in('env_dev')('GET', '/v1/logs'), 401, 'token_invalid');
  });

  it('an erased user is in the log under its alias', async () => {
    const eve = await scene.actor('eve');
    const answer = await eve.api('GET', '/v1/conversations');
    await logged(dashboard, `requestId=${requestIdOf(answer)}`);
    assert.equal((await server('DELETE', `/v1/users/${eve.id}`)).status, 204);
    const [row] = await logged(dashboard, `requestId=${requestIdOf(answer)}`);
    assert.match(row!.userId!, /^deleted:/);
    assert.deepEqual(await sql('SELECT 1 FROM request_log l WHERE l::text LIKE $1', [`%${eve.id}%`]), []);
  });
});

describe('GET /v1/logs: sockets', () => {
  it('has frames that failed, refused logins and sockets that were put out', async () => {
    const { actor, socket } = await scene.person('sam');
    await socket.refused('read', { cid: 'conv_none', seq: 1 }, 'not_found');
    const [failed] = await logged(dashboard, `userId=${actor.id}&kind=socket`);
    assert.deepEqual(
      [failed!.operation, failed!.code, failed!.status, failed!.sessionId, failed!.caller],
      ['conversations.read', 'not_found', null, socket.hello.sessionId, 'client'],
    );
    assert.equal((await server('POST', `/v1/users/${actor.id}/deactivate`)).status, 200);
    assert.equal((await socket.closed).code, 4003);
    await scene.online(actor).catch(() => undefined);
    const rows = await logged(dashboard, `userId=${actor.id}&kind=socket`, (found) => found.length === 3);
    assert.deepEqual(
      rows.map((r) => [r.operation, r.code, r.status]).sort(),
      [
        ['auth', 'user_deactivated', 4003],
        ['close', 'forbidden', 4003],
        ['conversations.read', 'not_found', null],
      ].sort(),
    );
  });
});

describe('GET /v1/logs: webhooks', () => {
  it('has every attempt, with the id of the request that the receiver saw', async (t) => {
    const receiver = await startReceiver();
    t.after(() => receiver.close());
    receiver.answer = status(500);
    const { id } = await addEndpoint(server, receiver.url, ['message.created']);
    const group = await scene.group(await scene.actor(), []);
    await scene.send(null, group.id);
    const received = await receiver.next('message.created');
    const [row] = await logged(dashboard, `requestId=${received.headers['request-id']}`);
    assert.deepEqual(
      [row!.kind, row!.operation, row!.status, row!.code, row!.webhookId],
      ['webhook', 'message.created', 500, 'not_accepted', id],
    );
    const deliveries = (await dashboard('GET', `/v1/webhooks/${id}/deliveries`)).body.data;
    assert.equal(row!.deliveryId, deliveries[0].id);
    await server('DELETE', `/v1/webhooks/${id}`);
  });
});

it('no row holds a text, a key or a token', async () => {
  const ann = await scene.actor('ann');
  const { id } = await scene.group(ann, []);
  const words = 'Hidden-Words-of-Ann';
  await scene.send(ann, id, { text: words, metadata: { words } });
  await ann.api('POST', `/v1/conversations/${id}/messages`, { clientMsgId: 'x', text: words, nope: words });
  const last = await ann.api('GET', `/v1/conversations/${id}/messages?${words}=1`);
  await logged(dashboard, `requestId=${requestIdOf(last)}`);
  for (const secret of [words, environments.dev.secretKey.split('_')[3]!, scene.token(ann).split('.')[1]!])
    assert.deepEqual(
      await sql('SELECT 1 FROM request_log l WHERE position($1 in l::text) > 0', [secret]),
      [],
    );
});

it('rows go after 7 days, with the partition of their day; a clock that runs ahead takes nothing away', async () => {
  const day = (ago: number) =>
    new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '');
  const partitions = async () =>
    (
      await sql(
        `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'request_log'::regclass`,
      )
    ).map((row) => row['name'] as string);
  for (const ago of [9, 7]) await keepPartitions(db, Date.now() - ago * 86_400_000);
  const before = await partitions();
  assert.ok(before.includes(`request_log_${day(7)}`) && before.includes(`request_log_${day(0)}`));
  assert.ok(!before.includes(`request_log_${day(8)}`) && !before.includes(`request_log_${day(10)}`));
  await keepPartitions(db, Date.now() + 365 * 86_400_000);
  assert.ok((await partitions()).includes(`request_log_${day(7)}`));
});

describe('GET /v1/overview', () => {
  it('counts connections, messages, requests and errors, and knows what the environment has', async () => {
    const { actor, socket } = await scene.person('ov');
    const { id } = await scene.group(actor, []);
    for (let i = 0; i < 3; i++) await scene.send(actor, id);
    let overview;
    for (;;) {
      const answer = await dashboard('GET', '/v1/overview');
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      overview = answer.body;
      if (overview.series.reduce((n: number, s: { messages: number }) => n + s.messages, 0) >= 3) break;
      await delay(200);
    }
    assert.ok(overview.connections >= 1);
    assert.equal(overview.series.length, 60);
    assert.deepEqual(overview.has, { users: true, conversations: true, messages: true, webhooks: false });
    const sum = (name: string) =>
      overview.series.reduce((n: number, s: Record<string, number>) => n + s[name]!, 0);
    assert.ok(sum('requests') > 3 && sum('errors') > 0 && sum('socketErrors') > 0);
    socket.ws.terminate();
  });
});
