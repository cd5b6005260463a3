import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { assertError, clientApi, createApi, serverApi } from '../support/api.ts';
import type { Answer, Api } from '../support/api.ts';
import { stores } from '../support/postgres.ts';
import { environments, startService } from '../support/service.ts';
import type { Service } from '../support/service.ts';
import { signToken } from '../support/tokens.ts';
import { use, useService } from '../support/use.ts';

const { service, sql, scene, server } = useService({ start: stores[1]!.start });
/** Another process on the same store. */
const second = use(
  () => {
    const { CHAT_DATA_DIR: _own, ...env } = service.env;
    return startService({ env });
  },
  (s) => s.dispose(),
);

const keyed = (key: string) => ({ 'idempotency-key': key });
const replayed = (answer: Answer) => answer.headers.get('idempotent-replayed');
const group = (name: string, members = ['m1']) => ({ type: 'group', members, name });
const create = (by: Api, body: unknown, key: string) => by('POST', '/v1/conversations', body, keyed(key));
const countNamed = async (name: string): Promise<number> =>
  (await sql('SELECT 1 FROM conversations WHERE name = $1', [name])).length;

describe('api#idempotency', () => {
  it('rule 2: a replay has the stored status and body, and Idempotent-Replayed: true', async () => {
    const [key, name] = [randomUUID(), randomUUID()];
    const first = await create(server, group(name), key);
    assert.deepEqual([first.status, replayed(first)], [201, null]);
    const again = await create(server, group(name), key);
    assert.deepEqual([again.status, again.body, replayed(again)], [201, first.body, 'true']);
    assert.notEqual(again.headers.get('request-id'), first.headers.get('request-id'));
    assert.equal(await countNamed(name), 1);
  });

  it('rule 1: on PATCH and DELETE too, without a body as well', async () => {
    const a = await scene.actor();
    const { id } = await scene.group(a, []);
    const message = await scene.send(a, id);
    const calls: [string, string, unknown?][] = [
      ['PATCH', `/v1/messages/${message.id}`, { text: 'x', expectedVersion: 1 }],
      ['DELETE', `/v1/messages/${message.id}?hard=true`],
      ['POST', `/v1/users/${a.id}/revoke-tokens`],
      ['DELETE', `/v1/conversations/${id}`],
    ];
    for (const [method, path, body] of calls) {
      const headers = keyed(randomUUID());
      const first = await server(method, path, body, headers);
      const again = await server(method, path, body, headers);
      assert.ok(first.status < 300, `${method} ${path}: ${first.status}`);
      assert.equal(again.status, first.status);
      assert.equal(replayed(again), 'true');
    }
  });

  it('rule 3: the same key with a different body is 422 idempotency_mismatch and does nothing', async () => {
    const [key, name, other] = [randomUUID(), randomUUID(), randomUUID()];
    await create(server, group(name), key);
    assertError(await create(server, group(other), key), 422, 'idempotency_mismatch');
    assert.equal(await countNamed(other), 0);
    assert.equal(replayed(await create(server, group(name), key)), 'true');
  });

  it('api#idempotency: a route is the method with the concrete path and query', async () => {
    const key = randomUUID();
    const [x, y] = [await scene.actor(), await scene.actor()];
    const revoke = (id: string, query = '') =>
      server('POST', `/v1/users/${id}/revoke-tokens${query}`, undefined, keyed(key));
    assert.deepEqual([(await revoke(x.id)).body.id, (await revoke(y.id)).body.id], [x.id, y.id]);
    assert.equal(replayed(await revoke(x.id, '?env=env_dev')), null);
    assert.equal(replayed(await revoke(x.id)), 'true');
  });

  it('PUT and GET do not take part', async () => {
    const headers = keyed(randomUUID());
    await server('PUT', '/v1/users/put', { name: 'A' }, headers);
    const again = await server('PUT', '/v1/users/put', { name: 'B' }, headers);
    assert.deepEqual([again.status, again.body.name, replayed(again)], [200, 'B', null]);
    assert.equal((await server('GET', '/v1/users/put', undefined, keyed(''))).status, 200);
  });

  it('a key is 1 to 255 visible characters', async () => {
    assert.equal((await create(server, group('k'), 'k'.repeat(255))).status, 201);
    for (const key of ['k'.repeat(256), '', 'a b'])
      assertError(await create(server, group('k'), key), 400, 'invalid_request', 'Idempotency-Key');
  });

  it('operations that change nothing run again and store nothing; their key is only checked for its form', async () => {
    const a = await scene.actor();
    const key = randomUUID();
    const sync = (cursor: string | null, h = keyed(key)) => a.api('POST', '/v1/sync', { cursor }, h);
    const first = await sync(null);
    assert.deepEqual([first.status, replayed(first), first.body.conversations], [200, null, []]);
    const { id } = await scene.group(a, []);
    const again = await sync(null);
    assert.deepEqual([again.status, replayed(again)], [200, null]);
    assert.deepEqual(
      again.body.conversations.map((c: { id: string }) => c.id),
      [id],
    );
    assert.equal((await sync(first.body.cursor)).status, 200, 'another body is another question');
    assertError(await sync(null, keyed('a b')), 400, 'invalid_request', 'Idempotency-Key');
    assert.deepEqual(await sql('SELECT 1 FROM idempotency WHERE key = $1', [key]), []);
  });

  it('concurrent duplicates act once, also through two processes', async () => {
    const [key, name] = [randomUUID(), randomUUID()];
    const elsewhere = serverApi(second.url);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => create(i % 2 ? server : elsewhere, group(name), key)),
    );
    assert.equal(new Set(answers.map((a) => `${a.status} ${a.body.id}`)).size, 1);
    assert.equal(answers.filter((a) => replayed(a) === null).length, 1);
    assert.equal(await countNamed(name), 1);
  });

  it('of concurrent requests with one key and different bodies one wins, the others mismatch', async () => {
    const key = randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) => create(server, group(`${key} ${i}`), key)),
    );
    assert.equal(answers.filter((a) => a.status === 201).length, 1);
    assert.equal(answers.filter((a) => a.status === 422).length, 5);
  });

  it('api#replay: another user, the server, or another environment never sees the answer', async () => {
    const [a, b] = [await scene.actor(), await scene.actor()];
    const key = randomUUID();
    const body = { type: 'group', members: [], name: 'private' };
    const first = await create(a.api, body, key);
    for (const other of [b.api, server]) {
      const answer = await create(other, body, key);
      assertError(answer, 422, 'idempotency_mismatch');
      assert.ok(!JSON.stringify(answer.body).includes(first.body.id));
    }
    const foreign = await create(serverApi(service.url, 'other'), { ...body, members: ['x'] }, key);
    assert.deepEqual([foreign.status, replayed(foreign)], [201, null]);
    const sameIdElsewhere = createApi(service.url, signToken({ sub: a.id }, { environment: 'other' }));
    const theirs = await create(sameIdElsewhere, body, randomUUID());
    assert.notEqual(theirs.body.id, first.body.id);
    assert.equal(replayed(await create(a.api, body, key)), 'true');
  });

  it('api#replay: a 4xx of the operation is stored', async () => {
    const a = await scene.actor();
    const message = await scene.send(null, (await scene.group(a, [])).id);
    const headers = keyed(randomUUID());
    const edit = (body: object, h = {}) => server('PATCH', `/v1/messages/${message.id}`, body, h);
    const conflict = await edit({ text: 'x', expectedVersion: 2 }, headers);
    assertError(conflict, 409, 'version_conflict');
    await edit({ text: 'y', expectedVersion: 1 });
    const again = await edit({ text: 'x', expectedVersion: 2 }, headers);
    assertError(again, 409, 'version_conflict');
    assert.deepEqual([again.body, replayed(again)], [conflict.body, 'true']);
    assert.equal((await edit({ text: 'x', expectedVersion: 2 })).status, 200);
  });

  it('a request that was refused before it ran (validation) does not use up its key', async () => {
    const [key, name] = [randomUUID(), randomUUID()];
    assertError(await create(server, { ...group(name), type: 'x' }, key), 400, 'invalid_request', 'type');
    assert.equal((await create(server, group(name), key)).status, 201);
  });

  it('api#replay: replays authenticate first', async () => {
    const key = randomUUID();
    const body = { type: 'group', members: [] };
    const client = await clientApi(service.url, 'replayer');
    assert.equal((await create(client, body, key)).status, 201);
    await server('POST', '/v1/users/replayer/revoke-tokens');
    assertError(await create(client, body, key), 401, 'token_invalid');
    assertError(await create(createApi(service.url, null), body, key), 401, 'token_invalid');
    assert.equal(replayed(await create(await clientApi(service.url, 'replayer'), body, key)), 'true');
    await server('POST', '/v1/users/replayer/deactivate');
    assertError(await create(client, body, key), 403, 'user_deactivated');
  });

  it('api#idempotency: a key is kept 24 hours', async () => {
    const [key, name] = [randomUUID(), randomUUID()];
    const first = await create(server, group(name), key);
    const age = (by: string) =>
      sql('UPDATE idempotency SET created_at = now() - $2::interval WHERE key = $1', [key, by]);
    await age('23 hours 59 minutes');
    assert.equal((await create(server, group(name), key)).body.id, first.body.id);
    await age('24 hours 1 minute');
    const next = await create(server, group(name), key);
    assert.deepEqual([next.status, replayed(next)], [201, null]);
    assert.notEqual(next.body.id, first.body.id);
    assert.equal(replayed(await create(server, group(name), key)), 'true');
  });

  it('a server’s send under a key is not doubled when the answer was lost before it was stored', async () => {
    const a = await scene.actor();
    const { id } = await scene.group(a, []);
    const headers = keyed(randomUUID());
    const send = () => server('POST', `/v1/conversations/${id}/messages`, { text: 'once' }, headers);
    const first = await send();
    // What a crash between the message's commit and the answer's leaves behind.
    await sql('DELETE FROM idempotency WHERE key = $1', [headers['idempotency-key']]);
    const again = await send();
    assert.deepEqual([again.status, again.body], [201, first.body]);
    assert.equal((await server('GET', `/v1/conversations/${id}`)).body.lastSeq, 2);
  });

  it('api#idempotency: after 24 hours a key is a new one for sends, too: the next message is stored', async () => {
    const a = await scene.actor();
    const { id } = await scene.group(a, []);
    const headers = keyed(randomUUID());
    const send = (text: string) => server('POST', `/v1/conversations/${id}/messages`, { text }, headers);
    const first = await send('of Monday');
    const age = async (by: string): Promise<void> => {
      await sql('UPDATE idempotency SET created_at = now() - $2::interval WHERE key = $1', [
        headers['idempotency-key'],
        by,
      ]);
      await sql(
        `UPDATE sent_ids SET created_at = now() - $2::interval
         WHERE conv = (SELECT no FROM conversations WHERE id = $1)`,
        [id, by],
      );
    };
    await age('23 hours 59 minutes');
    assert.equal((await send('of Monday')).body.id, first.body.id);
    await age('24 hours 1 minute');
    const next = await send('of Tuesday');
    assert.deepEqual([next.status, replayed(next), next.body.text], [201, null, 'of Tuesday']);
    assert.equal(replayed(await send('of Tuesday')), 'true');
    assert.equal((await server('GET', `/v1/conversations/${id}`)).body.lastSeq, 3);
  });

  it('api#replay: stored bodies are encrypted', async () => {
    const a = await scene.actor();
    const { id } = await scene.group(a, []);
    const headers = keyed(randomUUID());
    await server('POST', `/v1/conversations/${id}/messages`, { text: 'plainly visible' }, headers);
    const [row] = await sql('SELECT status, body FROM idempotency WHERE key = $1', [
      headers['idempotency-key'],
    ]);
    assert.equal(row!['status'], 201);
    assert.ok(row!['body'].length > 0 && !row!['body'].includes('visible') && !row!['body'].includes(id));
  });

  it('hard deletes and erasure empty the stored answers; the request still runs only once', async () => {
    const a = await scene.actor('erased');
    const { id } = await scene.group(a, []);
    const headers = keyed(randomUUID());
    const send = () =>
      server('POST', `/v1/conversations/${id}/messages`, { text: 'secret', senderId: a.id }, headers);
    const first = await send();
    await server('DELETE', `/v1/messages/${first.body.id}?hard=true`);
    const bodies = async () =>
      (await sql('SELECT body FROM idempotency WHERE key = $1', [headers['idempotency-key']]))[0]!['body'];
    assert.equal(await bodies(), null);
    const response = await fetch(`${service.url}/v1/conversations/${id}/messages`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${environments.dev.secretKey}`,
        'content-type': 'application/json',
        ...headers,
      },
      body: JSON.stringify({ text: 'secret', senderId: a.id }),
    });
    assert.equal(response.status, 201);
    assert.ok(!(await response.text()).includes('secret'));
    assert.equal((await server('GET', `/v1/conversations/${id}`)).body.lastSeq, 3);

    const key = randomUUID();
    await create(server, group('with the erased', [a.id]), key);
    await server('DELETE', `/v1/users/${a.id}`);
    const rows = await sql('SELECT body, subjects FROM idempotency WHERE key = $1', [key]);
    assert.deepEqual(rows, [{ body: null, subjects: null }]);
  });
});

describe('api#idempotency: a restart', () => {
  it('replays survive it', async () => {
    const own = await startService();
    let next: Service | undefined;
    try {
      const [key, body] = [randomUUID(), group('before the restart')];
      const first = await create(serverApi(own.url), body, key);
      assert.equal(await own.stop(), 0);
      next = await own.restart();
      const again = await create(serverApi(next.url), body, key);
      assert.deepEqual([again.status, again.body, replayed(again)], [201, first.body, 'true']);
    } finally {
      await (next ?? own).dispose();
    }
  });
});
