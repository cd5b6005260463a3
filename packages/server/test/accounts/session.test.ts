import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rateLimits } from '@parley/protocol';
import { assertError, createApi } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import { environments } from '../support/service.ts';
import { lazy, useService } from '../support/use.ts';
import { createDashboard, owner, signedInOwner } from './dashboard.ts';

const { service, server, sql } = useService({ env: { CHAT_TRUST_PROXY: 'true' } });

/** So that wrong tries of one test do not count against another's. */
let addresses = 0;
const from = () => ({ 'x-forwarded-for': `198.51.100.${++addresses}` });

describe('dashboard#sign-in: POST /v1/session', () => {
  it('the owner of the first start signs in with the password, and sees organizations and environments', async () => {
    const dashboard = createDashboard(service.url);
    const { body, headers } = await dashboard.signIn(owner.email, owner.password);
    assert.equal(body.account.email, owner.email);
    assert.equal(body.account.twoFactor, false);
    assert.ok(Math.abs(Date.parse(body.signedInAt) - Date.now()) < 60_000);
    const [organization] = body.organizations;
    assert.equal(organization.role, 'owner');
    assert.deepEqual(
      organization.environments.map((env: { id: string }) => env.id),
      Object.values(environments).map((env) => env.id),
    );
    assert.deepEqual(headers.getSetCookie(), [
      `parley_session=${dashboard.cookie}; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax`,
    ]);
    assert.equal(Buffer.from(dashboard.cookie!, 'base64url').length, 32);
    assert.deepEqual((await dashboard.api('GET', '/v1/session')).body, body);
  });

  it('the cookie is Secure where the request came over https', async () => {
    const dashboard = createDashboard(service.url);
    const answer = await dashboard.api('POST', '/v1/session', owner, { 'x-forwarded-proto': 'https' });
    assert.match(answer.headers.getSetCookie()[0]!, /; HttpOnly; SameSite=Lax; Secure$/);
  });

  it('a wrong password, an unknown address: the same 401, in the same words', async () => {
    const dashboard = createDashboard(service.url);
    const answers = [];
    for (const given of [
      { ...owner, password: 'correct horses' },
      { ...owner, password: 'CORRECT HORSE' },
      { email: 'nobody@example.com', password: 'correct horse' },
    ])
      answers.push(await dashboard.api('POST', '/v1/session', given, from()));
    for (const answer of answers) {
      assertError(answer, 401, 'invalid_credentials');
      assert.equal(answer.body.error.message, answers[0]!.body.error.message);
      assert.deepEqual(answer.headers.getSetCookie(), []);
    }
    assert.equal(dashboard.cookie, null);
  });

  it('10 wrong tries per account: then 429 with Retry-After, known or not', async () => {
    const anybody = createDashboard(service.url);
    for (const email of ['nobody2@example.com', 'Nobody3@example.com']) {
      for (let i = 0; i < 10; i++)
        assertError(
          await anybody.api('POST', '/v1/session', { email, password: 'x' }, from()),
          401,
          'invalid_credentials',
        );
      const refused = await anybody.api(
        'POST',
        '/v1/session',
        { email: email.toLowerCase(), password: 'x' },
        from(),
      );
      const { retryAfterMs } = assertError(refused, 429, 'rate_limited');
      assert.equal(Number(refused.headers.get('retry-after')), Math.ceil(retryAfterMs! / 1000));
    }
  });

  it('unknown fields, missing ones and nonsense are refused as everywhere', async () => {
    const { api } = createDashboard(service.url);
    assertError(await api('POST', '/v1/session', { ...owner, extra: 1 }), 400, 'unknown_field', 'extra');
    assertError(await api('POST', '/v1/session', { email: owner.email }), 400, 'invalid_request', 'password');
    assertError(
      await api('POST', '/v1/session', { ...owner, email: 'a\0b@c' }),
      400,
      'invalid_request',
      'email',
    );
    assertError(await api('POST', '/v1/session', '[1'), 400, 'invalid_request');
  });

  it('a sign-in ends the session that the browser had before (no fixation)', async () => {
    const dashboard = await signedInOwner(service.url);
    const before = dashboard.cookie!;
    await dashboard.signIn(owner.email, owner.password);
    assert.notEqual(dashboard.cookie, before);
    assertError(
      await createDashboard(service.url).api('GET', '/v1/session', undefined, {
        cookie: `parley_session=${before}`,
      }),
      401,
      'token_invalid',
    );
  });

  it('an Idempotency-Key never gives a session out again', async () => {
    const dashboard = createDashboard(service.url);
    const key = { 'idempotency-key': 'the-same' };
    const first = await dashboard.api('POST', '/v1/session', owner, key);
    const second = await dashboard.api('POST', '/v1/session', owner, key);
    assert.deepEqual([first.status, second.status], [200, 200]);
    assert.equal(second.headers.get('idempotent-replayed'), null);
    assert.equal((await sql(`SELECT 1 FROM idempotency WHERE key = 'the-same'`)).length, 0);
  });
});

describe('dashboard#session: GET, DELETE and reauth', () => {
  it('without a cookie, with a wrong one, after the sign-out: 401', async () => {
    const dashboard = await signedInOwner(service.url);
    const { cookie } = dashboard;
    const stranger = createDashboard(service.url);
    assertError(await stranger.api('GET', '/v1/session'), 401, 'token_invalid');
    const tried = (value: string) =>
      stranger.api('GET', '/v1/session', undefined, { cookie: `other=1; parley_session=${value}` });
    assert.equal((await tried(cookie!)).status, 200);
    for (const wrong of ['', 'x', `${cookie}A`, cookie!.slice(1), `"${cookie}"`])
      assertError(await tried(wrong), 401, 'token_invalid');
    const out = await dashboard.api('DELETE', '/v1/session');
    assert.equal(out.status, 204);
    assert.equal(out.headers.getSetCookie()[0], 'parley_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax');
    assertError(await tried(cookie!), 401, 'token_invalid');
  });

  it('reauth renews signedInAt and the cookie; wrong ones are counted by session', async () => {
    const dashboard = await signedInOwner(service.url);
    const other = await signedInOwner(service.url);
    await sql(`UPDATE account_sessions SET signed_in_at = now() - interval '1 hour'`);
    const before = dashboard.cookie;
    assertError(await dashboard.api('POST', '/v1/account/totp'), 403, 'reauth_required');
    const { status, body } = await dashboard.api('POST', '/v1/session/reauth', { password: owner.password });
    assert.equal(status, 200);
    assert.ok(Date.now() - Date.parse(body.signedInAt) < 60_000);
    assert.notEqual(dashboard.cookie, before);
    assert.equal((await dashboard.api('POST', '/v1/account/totp')).status, 200);
    assertError(await other.api('POST', '/v1/account/totp'), 403, 'reauth_required');
    for (let i = 0; i < 10; i++)
      assertError(
        await other.api('POST', '/v1/session/reauth', { password: 'wrong' }),
        401,
        'invalid_credentials',
      );
    assertError(
      await other.api('POST', '/v1/session/reauth', { password: owner.password }),
      429,
      'rate_limited',
    );
    assert.equal((await other.api('GET', '/v1/session')).status, 200, 'the session goes on');
    await createDashboard(service.url).signIn(owner.email, owner.password);
  });

  it('12 h without use, and 30 days in all', async () => {
    for (const [column, age] of [
      ['used_at', '12 hours'],
      ['created_at', '30 days'],
    ]) {
      const dashboard = await signedInOwner(service.url);
      const [row] = await sql('SELECT id FROM account_sessions ORDER BY created_at DESC, id DESC LIMIT 1');
      const shift = (by: string) =>
        sql(`UPDATE account_sessions SET ${column} = now() - interval '${by}' WHERE id = $1`, [row!['id']]);
      await shift(`${age}' + interval '1 minute`);
      assert.equal((await dashboard.api('GET', '/v1/session')).status, 200);
      await shift(age!);
      assertError(await dashboard.api('GET', '/v1/session'), 401, 'token_invalid');
    }
  });
});

describe('dashboard#csrf: requests that another site may have caused', () => {
  const change = (headers: Record<string, string | undefined>, body: unknown = { name: 'x' }) =>
    signedInOwner(service.url).then(({ cookie }) =>
      createDashboard(service.url, { ...headers, cookie: `parley_session=${cookie}` }).api(
        'PATCH',
        '/v1/account',
        body,
      ),
    );

  it('from our own page: accepted', async () => {
    for (const headers of [
      { 'sec-fetch-site': 'same-origin' },
      { origin: service.url },
      { 'sec-fetch-site': 'same-origin', origin: 'https://told-otherwise.example.com' },
    ])
      assert.equal((await change(headers)).status, 200, JSON.stringify(headers));
  });

  it('from elsewhere, or from nowhere: 403', async () => {
    for (const headers of [
      {},
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
      { 'sec-fetch-site': 'cross-site', origin: service.url },
      { origin: 'https://evil.example.com' },
      { origin: 'null' },
      { origin: `${service.url}.evil.example.com` },
      { origin: 'http://127.0.0.1:1' },
    ])
      assertError(await change(headers), 403, 'forbidden');
  });

  it('with a body that is not JSON, as a form sends it: 403, and nothing changes', async () => {
    const { cookie } = await signedInOwner(service.url);
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x'])
      assertError(
        await createApi(service.url, null)('PATCH', '/v1/account', '{"name":"evil"}', {
          cookie: `parley_session=${cookie}`,
          'sec-fetch-site': 'same-origin',
          'content-type': type,
        }),
        403,
        'forbidden',
      );
    const [account] = await sql('SELECT name FROM accounts WHERE email = $1', [owner.email]);
    assert.notEqual(account!['name'], 'evil');
  });

  it('nobody is signed in by another site', async () => {
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example.com' }])
      assertError(
        await createDashboard(service.url, headers).api('POST', '/v1/session', owner),
        403,
        'forbidden',
      );
    assert.equal(
      (await createDashboard(service.url, {}).api('POST', '/v1/session', owner)).status,
      200,
      'a program',
    );
  });

  it('other sites may not read the control plane, and browsers that ask beforehand are told so', async () => {
    const { api } = await signedInOwner(service.url);
    const answer = await api('GET', '/v1/session', undefined, { origin: 'https://evil.example.com' });
    assert.equal(answer.headers.get('access-control-allow-origin'), null);
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    for (const path of ['/v1/session', '/v1/account', '/v1/organizations/x/members']) {
      const asked = await api('OPTIONS', path, undefined, {
        origin: 'https://evil.example.com',
        'access-control-request-method': 'POST',
      });
      assert.equal(asked.headers.get('access-control-allow-origin'), null, path);
      assert.equal(asked.headers.get('access-control-allow-methods'), null, path);
    }
  });
});

describe('identity#credentials: which credential counts', () => {
  it('a request with an Authorization header ignores the cookie', async () => {
    const dashboard = await signedInOwner(service.url);
    const as = (authorization: string) =>
      dashboard.in('env_dev')('GET', '/v1/webhooks', undefined, { authorization });
    assertError(await as('Bearer nonsense'), 401, 'token_invalid');
    assertError(await as('Basic x'), 401, 'token_invalid');
    assertError(await as(`Bearer ${environments.other.secretKey}`), 403, 'forbidden');
    assert.equal((await as(`Bearer ${environments.dev.secretKey}`)).status, 200);
    assertError(
      await dashboard.api('GET', '/v1/session', undefined, {
        authorization: `Bearer ${environments.dev.secretKey}`,
      }),
      403,
      'forbidden',
    );
  });

  it('the cookie opens nothing that is for servers or clients alone', async () => {
    const api = (await signedInOwner(service.url)).in('env_dev');
    for (const [method, path, body] of [
      ['POST', '/v1/tokens', { userId: 'a' }],
      ['PATCH', '/v1/conversations/conv_x/members/a', { role: 'owner' }],
      ['POST', '/v1/sync', { cursor: null }],
      ['DELETE', '/v1/conversations/conv_x', undefined],
    ] as const)
      assertError(await api(method, path, body), 401, 'token_invalid');
  });

  it('Chat-Env: missing is 400, another organization’s and unknown ones are 404', async () => {
    const dashboard = await signedInOwner(service.url);
    assertError(await dashboard.api('GET', '/v1/webhooks'), 400, 'invalid_request', 'Chat-Env');
    for (const id of ['env_nothere', 'x', '', "env_'", 'env_dev,env_other'])
      assert.ok([400, 404].includes((await dashboard.in(id)('GET', '/v1/webhooks')).status), id);
    assertError(await dashboard.in('env_nothere')('GET', '/v1/webhooks'), 404, 'not_found');
    await server('GET', '/v1/users');
    assert.equal((await dashboard.in('env_dev')('GET', '/v1/users')).status, 200);
    assertError(
      await dashboard.api('GET', '/v1/users?env=env_other', undefined, { 'chat-env': 'env_dev' }),
      400,
      'invalid_request',
      'Chat-Env',
    );
  });

  it('a suspended environment can be seen and made active again', async () => {
    const dashboard = await signedInOwner(service.url);
    const set = (status: string) => dashboard.api('PATCH', '/v1/environments/env_other', { status });
    assert.equal((await set('suspended')).body.status, 'suspended');
    assert.equal((await dashboard.in('env_other')('GET', '/v1/webhooks')).status, 200);
    assert.equal((await set('active')).body.status, 'active');
  });
});

describe('dashboard#guessing: tries of an address', () => {
  const nobody = lazy(() => createDashboard(service.url));
  let tries = 0;
  const ask: Record<string, (headers: Record<string, string>) => Promise<Answer>> = {
    forgot: (headers) =>
      nobody.api('POST', '/v1/password/forgot', { email: `nobody${tries}@example.com` }, headers),
    reset: (headers) =>
      nobody.api(
        'POST',
        '/v1/password/reset',
        { token: 'A'.repeat(43), password: 'vier Kühe im Regen' },
        headers,
      ),
    accept: (headers) => nobody.api('POST', '/v1/invitations/accept', { token: 'A'.repeat(43) }, headers),
    'sign in': (headers) => nobody.api('POST', '/v1/session', owner, headers),
  };
  for (const [i, name] of ['forgot', 'reset', 'accept'].entries())
    it(`of the kind "${name}" count by /64, and not for the others`, async () => {
      const at = () => ({ 'x-forwarded-for': `2001:db8:1:${i}::${(++tries).toString(16)}` });
      for (let k = 0; k < rateLimits.signInAddress.max; k++)
        assert.notEqual((await ask[name]!(at())).status, 429, String(k));
      assertError(await ask[name]!(at()), 429, 'rate_limited');
      for (const [other, once] of Object.entries(ask))
        if (other !== name) assert.notEqual((await once(at())).status, 429, other);
    });
});
