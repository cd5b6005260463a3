import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { ApiError, operation, plans, Type } from '@parley/protocol';
import type { Operation } from '@parley/protocol';
import { serverCaller } from '../../src/features/callers.ts';
import type { Environment, HttpContext, Person } from '../../src/features/context.ts';
import type { Sessions } from '../../src/features/accounts/authenticate.ts';
import { createIds, pooledRandom, systemClock } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import { memoryRateLimiter } from '../../src/platform/rate-limit/memory.ts';
import type { RestOptions } from '../../src/transport/rest/options.ts';
import { readCookie } from '../../src/transport/rest/planes.ts';
import { createRest } from '../../src/transport/rest/server.ts';

/** dashboard#csrf: how the dashboard comes in over HTTP, shown on sample operations. */

const sample = { summary: '', text: '', tag: 'Samples', response: Type.Object({}) };
const operations: readonly Operation[] = [
  operation('samples.list', 'GET /v1/samples', {
    ...sample,
    callers: ['dashboard'],
    scope: 'organizations',
  }),
  operation('samples.create', 'POST /v1/samples', {
    ...sample,
    callers: ['dashboard'],
    scope: 'organizations',
    body: { name: Type.Optional(Type.String()) },
  }),
  operation('samples.delete', 'DELETE /v1/samples', { ...sample, callers: ['dashboard'] }),
  operation('things.create', 'POST /v1/things', { ...sample, callers: ['server', 'dashboard'] }),
  operation('users.create', 'POST /v1/others', { ...sample, callers: ['server', 'client'] }),
];

const env = { no: 7, id: 'env_ours', plan: 'free' } as Environment;
const ann: Person = {
  account: { no: 3, id: 'acc_ann', email: 'ann@example.com' },
  session: { id: 'sess_1', signedInAt: new Date().toISOString() },
};
const missing = () => Promise.reject(new ApiError('not_found'));
const sessions: Sessions = {
  authenticate: (cookie) =>
    cookie === 'good' ? Promise.resolve(ann) : Promise.reject(new ApiError('token_invalid')),
  environment: (_caller, id) =>
    id === env.id ? Promise.resolve({ env, role: 'viewer' as const }) : missing(),
  organization: missing,
};

/** The sample operations take no turns. */
const atOnce = (work: () => unknown) => work();

const ran: HttpContext[] = [];
const app = createRest({
  operations,
  handlers: Object.fromEntries(
    operations.map(({ name }) => [name, (ctx: HttpContext) => (ran.push(ctx), Promise.resolve({}))]),
  ),
  sessions,
  authenticator: {
    authenticate: (credential: string | undefined) =>
      credential === 'key'
        ? Promise.resolve({ caller: serverCaller(env, 'k') })
        : Promise.reject(new ApiError('token_invalid')),
  },
  services: { clock: systemClock, ids: createIds(systemClock, pooledRandom()), plans },
  limiter: memoryRateLimiter(systemClock),
  turns: { of: () => ({ turn: atOnce, briefly: atOnce }), waiting: 0 },
  logger: createLogger('silent'),
  metrics: createMetrics(),
  recorder: { add: () => undefined },
  trustProxy: false,
  readiness: () => Promise.resolve({ status: 'ready' }),
  started: () => true,
  pages: [],
} as unknown as RestOptions);
after(() => app.close());

type Method = 'GET' | 'POST' | 'DELETE' | 'OPTIONS';
const cookie = 'theme=dark; parley_session=good; x=1';
const same = { 'sec-fetch-site': 'same-origin' };
const ask = async (method: Method, url: string, headers: Record<string, string>, body?: string) => {
  ran.length = 0;
  const {
    statusCode,
    headers: sent,
    body: text,
  } = await app.inject({
    method,
    url,
    headers,
    ...(body === undefined ? {} : { payload: body }),
  });
  const code = text ? (JSON.parse(text) as { error?: { code: string } }).error?.code : undefined;
  return { status: statusCode, code, headers: sent, ctx: ran[0] };
};

describe('the caller', () => {
  it('is whoever the session says; an operation of the organizations has no environment', async () => {
    const { status, ctx } = await ask('GET', '/v1/samples', { cookie });
    assert.equal(status, 200);
    assert.deepEqual(ctx!.caller.person, ann);
    assert.equal('env' in ctx!, false);
    assert.equal(ctx!.ip, '127.0.0.1');
  });

  it('names the environment in Chat-Env, on the control plane and on the tenant’s', async () => {
    for (const [method, url] of [
      ['DELETE', '/v1/samples'],
      ['POST', '/v1/things'],
    ] as const) {
      const ours = await ask(method, url, { cookie, ...same, 'chat-env': env.id });
      assert.deepEqual([ours.status, ours.ctx!.env], [200, env]);
      const foreign = await ask(method, url, { cookie, ...same, 'chat-env': 'env_theirs' });
      assert.deepEqual([foreign.status, foreign.code], [404, 'not_found']);
      const none = await ask(method, url, { cookie, ...same });
      assert.deepEqual([none.status, none.code], [400, 'invalid_request']);
      const two = await ask(method, `${url}?env=env_theirs`, { cookie, ...same, 'chat-env': env.id });
      assert.deepEqual([two.status, two.code], [400, 'invalid_request']);
    }
  });

  it('is nobody without a session', async () => {
    for (const headers of [{}, { cookie: 'parley_session=bad' }, { cookie: 'session=good' }] as {
      cookie?: string;
    }[])
      assert.equal((await ask('GET', '/v1/samples', headers)).code, 'token_invalid');
  });

  it('is the key where there is an Authorization header, whatever the cookie says', async () => {
    const { ctx } = await ask('POST', '/v1/things', { cookie, authorization: 'Bearer key' });
    assert.equal(ctx!.caller.kind, 'server');
    const wrong = await ask('POST', '/v1/things', { cookie, ...same, authorization: 'Bearer other' });
    assert.equal(wrong.code, 'token_invalid');
    const control = await ask('GET', '/v1/samples', { cookie, authorization: 'Bearer key' });
    assert.deepEqual([control.status, control.code], [403, 'forbidden']);
  });

  it('does not come with a cookie to what is not for the dashboard', async () => {
    const answer = await ask('POST', '/v1/others', { cookie, ...same, 'chat-env': env.id });
    assert.deepEqual([answer.status, answer.code, answer.ctx], [401, 'token_invalid', undefined]);
  });

  it('counts against the account', async () => {
    const { headers } = await ask('GET', '/v1/samples', { cookie });
    assert.equal(headers['ratelimit-limit'], '100');
  });
});

describe('a change with the cookie', () => {
  const post = (headers: Record<string, string>, body?: string) =>
    ask('POST', '/v1/samples', { cookie, ...headers }, body);
  const json = { 'content-type': 'application/json' };

  it('is taken from our own pages', async () => {
    for (const headers of [same, { origin: 'http://localhost:8080', host: 'localhost:8080' }])
      assert.equal((await post({ ...headers, ...json }, '{}')).status, 200, JSON.stringify(headers));
  });

  it('is refused from anywhere else, and does not run', async () => {
    for (const headers of [
      {},
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
      { 'sec-fetch-site': 'cross-site', origin: 'http://localhost:8080', host: 'localhost:8080' },
      { origin: 'https://evil.example', host: 'localhost:8080' },
      { origin: 'http://localhost:8081', host: 'localhost:8080' },
      { origin: 'null', host: 'localhost:8080' },
    ] as Record<string, string>[]) {
      const answer = await post({ ...headers, ...json }, '{}');
      assert.deepEqual([answer.status, answer.code, answer.ctx], [403, 'forbidden', undefined]);
    }
  });

  it('has a JSON body or none', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'application/jsonp',
    ])
      assert.equal((await post({ ...same, 'content-type': type }, 'a=b')).code, 'forbidden', type);
    assert.equal(
      (await post({ ...same, 'content-type': 'application/json; charset=utf-8' }, '{}')).status,
      200,
    );
    const none = await ask('DELETE', '/v1/samples', { cookie, ...same, 'chat-env': env.id });
    assert.equal(none.status, 200);
  });

  it('on the tenant plane obeys the same rule; with a key there is none', async () => {
    const things = (headers: Record<string, string>) =>
      ask('POST', '/v1/things', { 'chat-env': env.id, 'sec-fetch-site': 'cross-site', ...headers });
    assert.equal((await things({ cookie })).code, 'forbidden');
    assert.equal((await things({ authorization: 'Bearer key' })).status, 200);
  });
});

describe('answers', () => {
  const origin = 'https://elsewhere.example';

  it('of the control plane may be read by no other origin, errors included', async () => {
    for (const headers of [{ cookie, origin }, { origin }] as Record<string, string>[]) {
      const answer = await ask('GET', '/v1/samples', headers);
      assert.equal(answer.headers['access-control-allow-origin'], undefined);
    }
    const preflight = await ask('OPTIONS', '/v1/samples', {
      origin,
      'access-control-request-method': 'POST',
    });
    assert.equal(preflight.status, 204);
    for (const name of Object.keys(preflight.headers)) assert.doesNotMatch(name, /^access-control/);
  });

  it('of the tenant plane may be read by any', async () => {
    const answer = await ask('POST', '/v1/things', { authorization: 'Bearer key', origin });
    assert.equal(answer.headers['access-control-allow-origin'], '*');
    const preflight = await ask('OPTIONS', '/v1/things', { origin, 'access-control-request-method': 'POST' });
    assert.equal(preflight.headers['access-control-allow-methods'], 'GET, PUT, POST, PATCH, DELETE');
  });
});

it('cookies are read by their whole name', () => {
  assert.equal(readCookie('a=1; parley_session=x=y ; b', 'parley_session'), 'x=y');
  for (const header of [undefined, '', 'parley_session', 'xparley_session=1', '=1'])
    assert.equal(readCookie(header, 'parley_session'), undefined);
});
