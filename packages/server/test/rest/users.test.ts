import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertError } from '../support/api.ts';
import { useService } from '../support/use.ts';

const { scene, server } = useService();

const nested = (depth: number): object => (depth === 1 ? {} : { a: nested(depth - 1) });
/** Metadata of exactly so many bytes when serialized. */
const sized = (bytes: number) => ({ k: 'x'.repeat(bytes - '{"k":""}'.length) });

describe('users#upsert: PUT /v1/users/{id}', () => {
  it('creates the user and returns it', async () => {
    const fields = { name: 'Ada', imageUrl: 'https://example.com/a.png', metadata: { level: 3 } };
    const { status, body } = await server('PUT', '/v1/users/ada', fields);
    assert.equal(status, 200);
    assert.deepEqual(
      { ...body, createdAt: undefined },
      {
        id: 'ada',
        ...fields,
        createdAt: undefined,
        deactivatedAt: null,
      },
    );
    assert.match(body.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual((await server('GET', '/v1/users/ada')).body, body);
  });

  it('users#upsert: sets the fields given and keeps the others; null empties', async () => {
    await server('PUT', '/v1/users/keep', {
      name: 'A',
      imageUrl: 'https://example.com/x',
      metadata: { a: 1 },
    });
    const first = await server('PUT', '/v1/users/keep', { name: 'B' });
    assert.deepEqual(
      [first.body.name, first.body.imageUrl, first.body.metadata],
      ['B', 'https://example.com/x', { a: 1 }],
    );
    const second = await server('PUT', '/v1/users/keep', { name: null, imageUrl: null, metadata: {} });
    assert.deepEqual([second.body.name, second.body.imageUrl, second.body.metadata], [null, null, {}]);
    assert.equal((await server('PUT', '/v1/users/keep', {})).body.createdAt, first.body.createdAt);
  });

  it('users#id: user ids have 1 to 128 characters of A-Z a-z 0-9 _ - @ . : (api#paths)', async () => {
    for (const id of ['a', 'Z9_-@.:', `${'long@ex.am:ple'.repeat(9)}xx`, '.', 'x'.repeat(128)]) {
      const path = `/v1/users/${id === '.' ? '%2E:' : id}`;
      assert.equal((await server('PUT', path, {})).status, 200, id);
      assert.equal((await server('GET', path)).status, 200, id);
    }
    for (const id of ['x'.repeat(129), 'a%20b', 'a%2Fb', 'a%00b', '%C3%A9', 'a+b', 'x'.repeat(600)])
      assertError(await server('PUT', `/v1/users/${id}`, {}), 400, 'invalid_request');
  });

  it('api#metadata: metadata is at most 4 KB serialized and 5 levels deep', async () => {
    const put = (metadata: unknown) => server('PUT', '/v1/users/meta', { metadata });
    assert.equal((await put(sized(4_096))).status, 200);
    assertError(await put(sized(4_097)), 422, 'metadata_too_large', 'metadata');
    assert.equal((await put({ k: 'é'.repeat(2_044) })).status, 200);
    assertError(await put({ k: 'é'.repeat(2_045) }), 422, 'metadata_too_large', 'metadata');
    assert.equal((await put(nested(5))).status, 200);
    assertError(await put(nested(6)), 422, 'metadata_too_large', 'metadata');
    assertError(await put({ a: [[[[[]]]]] }), 422, 'metadata_too_large', 'metadata');
    assert.deepEqual((await server('GET', '/v1/users/meta')).body.metadata, nested(5));
    for (const wrong of [null, [], 'x', 1]) assertError(await put(wrong), 400, 'invalid_request', 'metadata');
  });

  it('a deeply nested body is refused, not a failure', async () => {
    const body = `{"metadata":{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`;
    assertError(await server('PUT', '/v1/users/deep', body), 422, 'metadata_too_large');
  });

  it('name has at most 200 characters, imageUrl is an http URL', async () => {
    assert.equal((await server('PUT', '/v1/users/n', { name: '😀'.repeat(200) })).status, 200);
    assertError(
      await server('PUT', '/v1/users/n', { name: 'x'.repeat(201) }),
      400,
      'invalid_request',
      'name',
    );
    for (const imageUrl of ['javascript:alert(1)', 'nope', '', 7])
      assertError(await server('PUT', '/v1/users/n', { imageUrl }), 400, 'invalid_request', 'imageUrl');
  });

  it('api#unknown-fields: unknown fields are 400 unknown_field and change nothing', async () => {
    assertError(await server('PUT', '/v1/users/uf', { name: 'x', nick: 'y' }), 400, 'unknown_field', 'nick');
    assertError(await server('PUT', '/v1/users/uf', '{"__proto__":{"a":1}}'), 400, 'unknown_field');
    assertError(await server('GET', '/v1/users/uf'), 404, 'not_found');
  });

  it('api#validation: NUL characters and broken surrogates are 400 invalid_request', async () => {
    assertError(await server('PUT', '/v1/users/nul', { name: 'a\0' }), 400, 'invalid_request', 'name');
    assertError(
      await server('PUT', '/v1/users/nul', { metadata: { a: { b: ['\0'] } } }),
      400,
      'invalid_request',
      'metadata.a.b[0]',
    );
    assertError(await server('PUT', '/v1/users/nul', '{"name":"\\ud800"}'), 400, 'invalid_request', 'name');
    assertError(await server('GET', '/v1/users/nul'), 404, 'not_found');
  });
});

describe('users#visibility: GET', () => {
  it('an unknown user is 404 not_found to the server', async () => {
    assertError(await server('GET', '/v1/users/nobody-here'), 404, 'not_found');
  });

  it('users#visibility: a client reads itself and users it shares a live conversation with, others are forbidden', async () => {
    const [a, b, c] = [await scene.actor(), await scene.actor(), await scene.actor()];
    const { id } = await scene.group(null, [a, b]);
    assert.equal((await a.api('GET', `/v1/users/${a.id}`)).body.id, a.id);
    assert.equal((await a.api('GET', `/v1/users/${b.id}`)).body.id, b.id);
    const known = await a.api('GET', `/v1/users/${c.id}`);
    const unknown = await a.api('GET', '/v1/users/nobody-here');
    assertError(known, 403, 'forbidden');
    assertError(unknown, 403, 'forbidden');
    assert.equal(known.body.error.message, unknown.body.error.message);
    await server('DELETE', `/v1/conversations/${id}`);
    assertError(await a.api('GET', `/v1/users/${b.id}`), 403, 'forbidden');
  });

  it('users#list: the list is by id, in pages without repeats, to its end', async () => {
    const ids = Array.from({ length: 7 }, (_, i) => `page-${i}`);
    await Promise.all(ids.map((id) => server('PUT', `/v1/users/${id}`, {})));
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const { body } = await server('GET', `/v1/users?limit=3${query}`);
      assert.ok(body.data.length <= 3);
      seen.push(...body.data.map((u: { id: string }) => u.id));
      cursor = body.nextCursor;
    } while (cursor !== null);
    assert.deepEqual(seen, [...new Set(seen)].sort());
    assert.ok(ids.every((id) => seen.includes(id)));
  });

  it('api#paging: limit is 1 to 200, 50 when not given', async () => {
    await Promise.all(Array.from({ length: 201 }, (_, i) => server('PUT', `/v1/users/many-${i}`, {})));
    const list = (query: string) => server('GET', `/v1/users${query}`);
    assert.equal((await list('')).body.data.length, 50);
    assert.equal((await list('?limit=1')).body.data.length, 1);
    assert.equal((await list('?limit=200')).body.data.length, 200);
    for (const limit of ['0', '201', '-1', 'x', '1.5', ''])
      assertError(await list(`?limit=${limit}`), 400, 'invalid_request', 'limit');
  });

  it('a cursor that is not one of the list is 400 invalid_request', async () => {
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    for (const cursor of ['x', encode(5), encode('a\0'), encode({}), 'x'.repeat(8_193)])
      assertError(await server('GET', `/v1/users?cursor=${cursor}`), 400, 'invalid_request', 'cursor');
    const byName = `/v1/users?namePrefix=a&cursor=${encode(['a\0', 'a'])}`;
    assertError(await server('GET', byName), 400, 'invalid_request', 'cursor');
  });
});

describe('users#deactivate: deactivate, reactivate, revoke-tokens', () => {
  for (const action of ['deactivate', 'reactivate', 'revoke-tokens']) {
    it(`${action} answers 200 with the user, again and again`, async () => {
      const { id } = await scene.actor();
      for (let i = 0; i < 2; i++) {
        const { status, body } = await server('POST', `/v1/users/${id}/${action}`);
        assert.deepEqual([status, body.id], [200, id]);
        assert.equal(body.deactivatedAt !== null, action === 'deactivate');
      }
    });
    it(`${action} of an unknown user is 404 not_found and creates nobody`, async () => {
      assertError(await server('POST', `/v1/users/unknown-${action}/${action}`), 404, 'not_found');
      assertError(await server('GET', `/v1/users/unknown-${action}`), 404, 'not_found');
    });
    it(`${action} takes no body`, async () => {
      const { id } = await scene.actor();
      assert.equal((await server('POST', `/v1/users/${id}/${action}`, {})).status, 200);
      assertError(await server('POST', `/v1/users/${id}/${action}`, { a: 1 }), 400, 'unknown_field', 'a');
    });
  }

  it('a deactivated user stays a member and readable', async () => {
    const [a, b] = [await scene.actor(), await scene.actor()];
    const { id } = await scene.group(a, [b]);
    await server('POST', `/v1/users/${b.id}/deactivate`);
    const { body } = await a.api('GET', `/v1/conversations/${id}/members`);
    assert.equal(body.data.length, 2);
    assert.notEqual((await a.api('GET', `/v1/users/${b.id}`)).body.deactivatedAt, null);
  });
});

describe('users#erasure: DELETE /v1/users/{id} (erasure)', () => {
  it('anonymize is the default: the id becomes deleted:<random> in messages, members and events', async () => {
    const [a, b] = [await scene.actor('kept'), await scene.actor('erased')];
    const { id } = await scene.group(b, [a]);
    const message = await scene.send(b, id, { text: 'stays' });
    await server('POST', `/v1/conversations/${id}/members`, { userIds: ['third'] });
    assert.equal((await server('DELETE', `/v1/users/${b.id}`)).status, 204);
    const { body } = await a.api('GET', `/v1/messages/${message.id}`);
    assert.equal(body.text, 'stays');
    assert.match(body.senderId, /^deleted:\w+$/);
    const members = (await a.api('GET', `/v1/conversations/${id}/members`)).body;
    const events = await scene.events(id);
    const item = await scene.item(a, id);
    assert.ok(!JSON.stringify([members, events, item]).includes(b.id));
    assert.ok(members.data.some((m: { userId: string }) => m.userId === body.senderId));
    assertError(await server('GET', `/v1/users/${b.id}`), 404, 'not_found');
    assertError(await server('GET', `/v1/users/${body.senderId}`), 404, 'not_found');
    assertError(await server('PUT', `/v1/users/${body.senderId}`, {}), 404, 'not_found');
    assertError(await server('DELETE', `/v1/users/${b.id}`), 404, 'not_found');
  });

  it('delete: the messages are hard-deleted, the stream stays contiguous, the user leaves its groups', async () => {
    const [a, b] = [await scene.actor('kept'), await scene.actor('erased')];
    const { id } = await scene.group(a, [b]);
    const left = await scene.group(a, [b]);
    const gone = [await scene.send(b, id, { text: 'secret one' }), await scene.send(b, id, { text: 'two' })];
    const mine = await scene.send(a, id, { text: 'mine', replyTo: gone[0].id });
    const past = await scene.send(b, left.id, { text: 'secret three' });
    await server('DELETE', `/v1/conversations/${left.id}/members/${b.id}`);
    assert.equal((await server('DELETE', `/v1/users/${b.id}?messages=delete`)).status, 204);
    for (const { id } of [...gone, past])
      assertError(await server('GET', `/v1/messages/${id}`), 404, 'not_found');
    const history = (await a.api('GET', `/v1/conversations/${id}/messages`)).body.data;
    assert.deepEqual(
      history.map((m: { id: string }) => m.id),
      [mine.id],
    );
    const events = await scene.events(id);
    assert.deepEqual(
      events.map((e) => e.seq),
      events.map((_, i) => i + 1),
    );
    assert.ok(!/secret|two/.test(JSON.stringify(events)) && !JSON.stringify(events).includes(b.id));
    assert.deepEqual(
      events.slice(-3).map((e) => e.type),
      ['message.deleted', 'message.deleted', 'member.removed'],
    );
    assert.equal((await a.api('GET', `/v1/conversations/${id}/members`)).body.data.length, 1);
    assert.equal((await scene.item(a, id)).unreadCount, 0);
  });

  it('users#erased-id: an id that was erased and is used again opens no old conversation', async () => {
    const [a, b] = [await scene.actor(), await scene.actor('again')];
    const old = await scene.direct(a, b);
    await scene.send(a, old.id, { text: 'old secret' });
    await server('DELETE', `/v1/users/${b.id}`);
    const { status, body } = await server('POST', '/v1/conversations', {
      type: 'direct',
      members: [a.id, b.id],
    });
    assert.equal(status, 201);
    assert.notEqual(body.id, old.id);
    assert.deepEqual((await server('GET', `/v1/conversations/${body.id}/messages`)).body.data, []);
    assert.equal((await server('GET', `/v1/conversations?userId=${b.id}`)).body.data.length, 1);
  });

  it('messages is anonymize or delete', async () => {
    const { id } = await scene.actor();
    assertError(await server('DELETE', `/v1/users/${id}?messages=keep`), 400, 'invalid_request', 'messages');
    assert.equal((await server('GET', `/v1/users/${id}`)).status, 200);
    assertError(await server('DELETE', '/v1/users/nobody-here'), 404, 'not_found');
  });
});
