import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import Fastify from 'fastify';
import { operationList, operations } from '@parley/protocol';
import type { Operation } from '@parley/protocol';
import { Idempotency } from '../../src/transport/rest/idempotency.ts';
import { createTurns } from '../../src/transport/turns.ts';
import { createRoute } from '../../src/transport/rest/route.ts';
import type { RestOptions } from '../../src/transport/rest/options.ts';
import { toApiError } from '../../src/transport/rest/reply.ts';
import { assertError, createApi } from '../support/api.ts';
import { environments } from '../support/service.ts';
import { signToken } from '../support/tokens.ts';
import { useService } from '../support/use.ts';

const { service, server } = useService({ env: { CHAT_LOG_LEVEL: 'trace' } });

const put = (body: string, headers: Record<string, string> = {}) =>
  server('PUT', '/v1/users/http', body, headers);

describe('api#validation: bodies and queries', () => {
  for (const operation of operationList.filter((o) =>
    o.callers.some((c) => c !== 'dashboard' && c !== 'operator'),
  )) {
    const path = operation.path
      .replace('{userId}', 'u')
      .replace('{kind}', 'before-send')
      .replaceAll(/\{\w+\}/g, 'x');
    const caller = () =>
      operation.callers.includes('server')
        ? server
        : createApi(service.url, signToken({ sub: `caller-${operation.name}` }));
    it(`api#unknown-fields: ${operation.name} refuses unknown query fields`, async () => {
      const body = operation.body ? {} : undefined;
      assertError(await caller()(operation.method, `${path}?nope=1`, body), 400, 'unknown_field', 'nope');
      assertError(await caller()(operation.method, `${path}?__proto__=1`, body), 400, 'unknown_field');
    });
    if (operation.method !== 'GET')
      it(`api#unknown-fields: ${operation.name} refuses unknown body fields`, async () => {
        // Also where required fields are missing.
        assertError(await caller()(operation.method, path, { nope: 1 }), 400, 'unknown_field', 'nope');
      });
  }

  it('who asks for the socket without an upgrade is told so', async () => {
    const answer = await createApi(service.url, null)('GET', '/v1?env=env_dev');
    assert.match(assertError(answer, 404, 'not_found').message, /a proxy in between drops the upgrade/);
  });

  it('errors#body: the message says what is wrong with the field', async () => {
    const told = async (path: string, body: unknown) =>
      assertError(await server('POST', path, body), 400, 'invalid_request').message;
    const group = { type: 'group', members: ['m'] };
    assert.equal(await told('/v1/tokens', {}), 'userId is required.');
    assert.equal(
      await told('/v1/conversations', { ...group, name: '' }),
      'name must have at least 1 character.',
    );
    assert.equal(await told('/v1/conversations', { ...group, name: 5 }), 'name must be string.');
    assert.equal(
      await told('/v1/conversations', { ...group, type: 'club' }),
      'type must be one of direct, group.',
    );
    const url = 'https://example.com/hook';
    assert.match(
      await told('/v1/webhooks', { url, events: ['nope'] }),
      /^events\[0\] must be one of message\.created, /,
    );
  });

  it('invalid JSON is 400 invalid_request', async () => {
    for (const body of ['{', '{"name":}', 'name=x', '{"name":"x"} x', "{'a':1}"])
      assertError(await put(body), 400, 'invalid_request');
  });

  it('a body that is no object is 400 invalid_request', async () => {
    for (const body of ['[]', '"x"', '5', 'null', 'true', '']) {
      const error = assertError(await put(body), 400, 'invalid_request');
      assert.equal(error.param, undefined, 'no field is to blame');
    }
  });

  it('another content type is 400 invalid_request; a charset is fine', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml'])
      assertError(await put('{"name":"x"}', { 'content-type': type }), 400, 'invalid_request');
    assert.equal(
      (await put('{"name":"x"}', { 'content-type': 'application/json; charset=utf-8' })).status,
      200,
    );
  });

  it('api#body-size: 64 KB bodies pass, one byte more is 413 body_too_large, with or without a length', async () => {
    const padded = (bytes: number) => '{"name":"padded"}'.padEnd(bytes, ' ');
    assert.equal((await put(padded(65_536))).status, 200);
    const answer = await put(padded(65_537));
    assertError(answer, 413, 'body_too_large');
    assert.equal(answer.body.error.type, 'payload_too_large');
    for (const [bytes, status] of [
      [65_536, 200],
      [65_537, 413],
    ] as const) {
      const response = await fetch(`${service.url}/v1/users/http`, {
        method: 'PUT',
        headers: {
          authorization: `Bearer ${environments.dev.secretKey}`,
          'content-type': 'application/json',
        },
        body: new Blob([padded(bytes)]).stream(),
        duplex: 'half',
      });
      assert.equal(response.status, status);
      await response.body?.cancel();
    }
  });

  it('a query field given twice is refused', async () => {
    assertError(await server('GET', '/v1/users?limit=1&limit=2'), 400, 'invalid_request', 'limit');
  });
});

describe('api#request-id: Request-Id', () => {
  it('is on every response, new each time, and in the error body', async () => {
    const seen = new Set<string>();
    for (const [method, path] of [
      ['GET', '/healthz'],
      ['GET', '/v1/users'],
      ['GET', '/v1/users/nobody-here'],
      ['GET', '/nowhere'],
    ] as const) {
      const answer = await server(method, path);
      const id = answer.headers.get('request-id')!;
      assert.match(id, /^req_[0-9a-hjkmnp-tv-z]{26}$/);
      if (answer.status >= 400) assert.equal(answer.body.error.requestId, id);
      seen.add(id);
    }
    assert.equal(seen.size, 4);
  });

  it('a caller cannot choose it', async () => {
    const answer = await server('GET', '/v1/users', undefined, { 'request-id': 'req_mine' });
    assert.notEqual(answer.headers.get('request-id'), 'req_mine');
  });
});

/** api#request-id and plans#rate-headers: these headers are on every response. */
function carriesAll(headers: Headers, what: string): void {
  assert.match(headers.get('request-id') ?? '', /^req_/, what);
  for (const name of ['limit', 'remaining', 'reset'])
    assert.match(headers.get(`ratelimit-${name}`) ?? '', /^\d+$/, `${what}: ${name}`);
}

describe('no answer of the API is stored by a cache or taken for something else', () => {
  it('no-store and nosniff are on answers, refusals and what was never a request', async () => {
    const answers = [
      await server('GET', '/v1/users'),
      await server('PUT', '/v1/users/http', { name: 'x' }),
      await server('GET', '/v1/users/nobody-here'),
      await server('GET', '/nowhere'),
      await server('GET', '/v1/users/%zz'),
      await createApi(service.url, null)('GET', '/v1/users'),
    ];
    for (const { headers, status } of answers) {
      assert.equal(headers.get('cache-control'), 'no-store', String(status));
      assert.equal(headers.get('x-content-type-options'), 'nosniff', String(status));
    }
    const { headers } = await fetch(`${service.url}/docs`);
    assert.match(headers.get('cache-control')!, /^public, max-age=\d+$/);
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
  });
});

describe('api#paths: what is not there', () => {
  it('unknown paths are 404 not_found, with and without a credential', async () => {
    for (const by of [server, createApi(service.url, null)])
      for (const [method, path] of [
        ['GET', '/v1'],
        ['GET', '/v2/users'],
        ['GET', '/v1/nothing'],
        ['GET', '/V1/users'],
        ['QUERY', '/v1/nothing'],
        ['PURGE', '/nowhere'],
      ] as const)
        assertError(await by(method, path), 404, 'not_found');
  });

  it('RFC 9110, 15.5.6: a wrong method on a path that exists is 405 method_not_allowed with Allow', async () => {
    for (const by of [server, createApi(service.url, null)])
      for (const [method, path, allow] of [
        ['POST', '/v1/users?limit=1', 'GET, HEAD, OPTIONS'],
        ['PATCH', '/v1/users/u', 'DELETE, GET, HEAD, OPTIONS, PUT'],
        ['DELETE', '/healthz', 'GET, HEAD, OPTIONS'],
        ['QUERY', '/healthz', 'GET, HEAD, OPTIONS'],
        ['PURGE', '/healthz', 'GET, HEAD, OPTIONS'],
        ['GET', '/v1/tokens', 'OPTIONS, POST'],
        ['POST', '/dashboard/keys', 'GET, HEAD, OPTIONS'],
      ] as const) {
        const answer = await by(method, path);
        assertError(answer, 405, 'method_not_allowed');
        assert.equal(answer.body.error.type, 'invalid_request');
        assert.equal(answer.headers.get('allow'), allow, `${method} ${path}`);
      }
  });

  it('a body in any form is refused in the same way where the method or the path is wrong', async () => {
    for (const headers of [{ 'content-type': 'text/plain' }, { 'content-type': ';' }] as Record<
      string,
      string
    >[])
      for (const method of ['POST', 'QUERY']) {
        assertError(await server(method, '/healthz', 'x', headers), 405, 'method_not_allowed');
        assertError(await server(method, '/nowhere', 'x', headers), 404, 'not_found');
      }
  });

  it('RFC 9110, 9.3: HEAD is GET without a body, OPTIONS names the methods of a path', async () => {
    const authorization = `Bearer ${environments.dev.secretKey}`;
    const head = (path: string) => fetch(service.url + path, { method: 'HEAD', headers: { authorization } });
    for (const path of ['/healthz', '/v1/users', '/v1/users/nobody-here', '/nowhere']) {
      const answer = await head(path);
      assert.equal(answer.status, (await server('GET', path)).status, path);
      assert.equal(await answer.text(), '');
      carriesAll(answer.headers, path);
    }
    const post = await head('/v1/tokens');
    assert.deepEqual([post.status, post.headers.get('allow')], [405, 'OPTIONS, POST']);
    const options = await server('OPTIONS', '/v1/users');
    assert.deepEqual([options.status, options.headers.get('allow')], [204, 'GET, HEAD, OPTIONS']);
    assert.equal((await server('OPTIONS', '/nowhere')).headers.get('allow'), null);
  });

  it('no error of the framework becomes internal', () => {
    for (const Kind of Object.values(Fastify.errorCodes)) {
      const error = new (Kind as unknown as new () => { statusCode?: number })();
      if (error.statusCode === undefined || error.statusCode >= 500) continue;
      assert.notEqual(toApiError(error).code, 'internal', String(error));
    }
    // Nor does a body that ends too early, which is no loss of the store either.
    const lost = Object.assign(new Error('aborted'), { code: 'ECONNRESET', statusCode: 400 });
    assert.equal(toApiError(lost).code, 'invalid_request');
    assert.equal(toApiError(new Error('ours')).code, 'internal');
    assert.equal(
      toApiError(Object.assign(new Error('gone'), { code: 'ECONNRESET' })).code,
      'service_unavailable',
    );
  });

  it('malformed URLs are 400 invalid_request with all headers', async () => {
    for (const path of ['/v1/users/%zz', '/%', '/v1/users/%E0%A4%A', `/v1/users/${'x'.repeat(600)}`]) {
      const answer = await server('GET', path);
      assertError(answer, 400, 'invalid_request');
      assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    }
  });

  it('what is no HTTP, or has headers too large, gets the error body too', async () => {
    for (const text of [
      'nonsense\r\n\r\n',
      `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      // RFC 9112: one Host, no HTTP/0.9. A proxy in front may have read another request.
      'GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
      'GET /nowhere HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n',
      'GET /media/x HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n',
      'GET /healthz\r\n\r\n',
      'GET /healthz HTTP/0.9\r\nHost: a\r\n\r\n',
      [
        'GET /v1 HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: Upgrade\r\nUpgrade: websocket',
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==',
        'Sec-WebSocket-Protocol: chat.v1\r\n\r\n',
      ].join('\r\n'),
    ]) {
      const socket = connect(service.port, '127.0.0.1');
      let answer = '';
      socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
      // What the service did not read is answered with a reset, after the answer.
      socket.on('error', () => undefined);
      socket.write(text);
      await new Promise((resolve) => socket.once('close', resolve));
      assert.match(answer, /^HTTP\/1\.1 400 /);
      assert.match(answer, /\r\nRequest-Id: req_/i);
      assert.match(answer, /\r\nRateLimit-Remaining: \d+/i);
      assert.match(answer, /\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n/i);
      const { error } = JSON.parse(answer.split('\r\n\r\n')[1]!);
      assert.equal(error.code, 'invalid_request');
      assert.match(answer, new RegExp(`Request-Id: ${error.requestId}`, 'i'));
    }
  });
});

describe('browsers', () => {
  it('a preflight is answered for every path, without a credential', async () => {
    for (const path of ['/v1/sync', '/v1/users/u', '/nowhere']) {
      const answer = await createApi(service.url, null)('OPTIONS', path, undefined, {
        origin: 'https://app.example',
        'access-control-request-method': 'PATCH',
        'access-control-request-headers': 'authorization, chat-env, idempotency-key',
      });
      assert.equal(answer.status, 204);
      assert.equal(answer.headers.get('access-control-allow-origin'), '*');
      for (const method of ['GET', 'PUT', 'POST', 'PATCH', 'DELETE'])
        assert.ok(answer.headers.get('access-control-allow-methods')!.includes(method));
      for (const name of ['Authorization', 'Content-Type', 'Chat-Env', 'Idempotency-Key'])
        assert.ok(answer.headers.get('access-control-allow-headers')!.includes(name));
    }
  });

  it('answers, errors included, may be read from any origin, with our headers exposed', async () => {
    for (const path of ['/v1/users', '/v1/users/nobody-here', '/nowhere']) {
      const { headers } = await server('GET', path);
      assert.equal(headers.get('access-control-allow-origin'), '*');
      for (const name of ['Request-Id', 'RateLimit-Remaining', 'Retry-After', 'Idempotent-Replayed'])
        assert.ok(headers.get('access-control-expose-headers')!.includes(name));
    }
  });
});

describe('api#health; pages', () => {
  it('api#request-id, plans#rate-headers: pages, their files and what a browser has already carry Request-Id and the rate headers', async () => {
    for (const path of [
      '/',
      '/docs',
      '/docs/reference/messages',
      '/dashboard',
      '/dashboard/keys',
      '/connection-test',
    ]) {
      const page = await fetch(service.url + path);
      await page.arrayBuffer();
      carriesAll(page.headers, path);
      const [method, headers] = ['HEAD', { 'if-none-match': page.headers.get('etag') ?? '' }];
      carriesAll((await fetch(service.url + path, { method })).headers, `HEAD ${path}`);
      carriesAll((await fetch(service.url + path, { headers })).headers, `${path} again`);
    }
  });

  it('/healthz and /readyz are 200 without authentication', async () => {
    for (const path of ['/healthz', '/readyz'])
      assert.equal((await createApi(service.url, null)('GET', path)).status, 200);
  });

  it('/openapi.json names every operation with its method and path, /asyncapi.json the socket', async () => {
    const { body } = await createApi(service.url, null)('GET', '/openapi.json');
    assert.match(body.openapi, /^3\.1\./);
    for (const { method, path } of operationList)
      assert.ok(body.paths[path]?.[method.toLowerCase()], `${method} ${path}`);
    assert.match((await server('GET', '/asyncapi.json')).body.asyncapi, /^3\./);
  });

  it('/docs is a page of our own, with the standard headers and no outside network', async () => {
    const response = await fetch(`${service.url}/docs`);
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type')!, /^text\/html/);
    assert.match(response.headers.get('request-id')!, /^req_/);
    const html = await response.text();
    assert.ok(html.includes('/v1/conversations'));
    assert.doesNotMatch(html, /<(script|link|img)[^>]+(src|href)="(https?:)?\/\//);
  });
});

describe('api#deprecation: deprecated endpoints', () => {
  it('carry Deprecation and Sunset', async () => {
    const deprecated = { since: '@1767225600', sunset: 'Fri, 01 Jan 2027 00:00:00 GMT' };
    const route = (operation: Operation) => {
      const options = {
        handlers: { 'users.list': () => Promise.resolve({ data: [], nextCursor: null }) },
        authenticator: {
          authenticate: () =>
            Promise.resolve({ caller: { kind: 'server', keyId: 'k', env: { no: 1, plan: 'free' } } }),
        },
        limiter: { take: () => [{ allowed: true, limit: 1, remaining: 1, resetMs: 0, retryAfterMs: 0 }] },
        services: { plans: { free: {} } },
        turns: createTurns(10),
      } as unknown as RestOptions;
      const app = Fastify();
      app.get(
        '/',
        createRoute('users.list', operation, options, {
          idempotency: new Idempotency(options.limiter),
          slow: { refuseFull: () => undefined },
        }),
      );
      return app.inject('/');
    };
    const old = await route({ ...operations['users.list'], deprecated });
    assert.deepEqual(
      [old.statusCode, old.headers['deprecation'], old.headers['sunset']],
      [200, deprecated.since, deprecated.sunset],
    );
    const current = await route(operations['users.list']);
    assert.deepEqual([current.headers['deprecation'], current.headers['sunset']], [undefined, undefined]);
  });
});

describe('logs', () => {
  it('hold no secret, token or message text, and do hold the request id', async () => {
    const token = signToken({ sub: 'logged' });
    const client = createApi(service.url, token);
    const { body } = await client('POST', '/v1/conversations', {
      type: 'group',
      members: [],
      name: 'quiet name',
    });
    await client('POST', `/v1/conversations/${body.id}/messages`, { text: 'quiet words', clientMsgId: 'c' });
    await createApi(service.url, `${token}x`)('GET', '/v1/conversations');
    const { headers } = await server('GET', '/v1/users/nobody-here');
    const requestId = headers.get('request-id')!;
    while (!service.output().includes(requestId)) await once(service.process.stderr!, 'data');
    const output = service.output();
    for (const secret of [
      token,
      token.split('.')[2]!,
      environments.dev.secretKey,
      'quiet words',
      'quiet name',
    ])
      assert.ok(!output.includes(secret), secret);
    assert.ok(output.includes('env_dev'));
  });
});
