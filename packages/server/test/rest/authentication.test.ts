import assert from 'node:assert/strict';
import { createHmac, createSign, generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { httpCallers, operationList } from '@parley/protocol';
import { assertError, clientApi, createApi, serverApi } from '../support/api.ts';
import { parley } from '../support/cli.ts';
import { environments } from '../support/service.ts';
import { devToken, nowSeconds, signToken } from '../support/tokens.ts';
import { useService } from '../support/use.ts';

const { service } = useService({ own: true });

/** What a credential gets on a route that clients and servers may call. */
const as = (credential: string | null, headers: Record<string, string> = {}, query = '') =>
  createApi(service.url, credential, headers)('GET', `/v1/conversations${query}`);

describe('identity#secret-key: secret keys', () => {
  it('a secret key is accepted, and the environment follows from it', async () => {
    const server = serverApi(service.url);
    assert.equal((await server('PUT', '/v1/users/key-user', {})).status, 200);
    assertError(await serverApi(service.url, 'other')('GET', '/v1/users/key-user'), 404, 'not_found');
  });

  const secretKey = environments.dev.secretKey;
  const wrong: Record<string, string | null> = {
    'no credential': null,
    'an unknown key id': `sk_live_${'z'.repeat(16)}_${'a'.repeat(32)}`,
    'a wrong secret': `${secretKey.slice(0, -1)}b`,
    'a key cut short': secretKey.slice(0, -1),
    'another prefix': secretKey.replace('live', 'test'),
    'no token at all': 'hello',
  };
  for (const [name, credential] of Object.entries(wrong))
    it(`identity#no-credential: ${name} is 401 token_invalid`, async () => {
      assertError(await as(credential), 401, 'token_invalid');
    });

  it('a secret key that is malformed is called so, not a token', async () => {
    for (const credential of ['sk_live_wrong', 'sk_test_x', secretKey.slice(0, -1), `${secretKey}0`])
      assert.equal(
        assertError(await as(credential), 401, 'token_invalid').message,
        'This secret key is malformed.',
      );
  });

  it('identity#no-credential: a malformed Authorization header is 401 token_invalid', async () => {
    for (const authorization of [secretKey, `Basic ${secretKey}`, 'Bearer', `Bearer ${secretKey} x`])
      assertError(await as(null, { authorization }), 401, 'token_invalid');
  });

  it('errors#types: authentication errors have the type authentication', async () => {
    assert.equal((await as(null)).body.error.type, 'authentication');
  });
});

describe('identity#mint: POST /v1/tokens', () => {
  it('answers 201 with a token and its expiry, one day ahead by default', async () => {
    const start = nowSeconds();
    const { status, body } = await serverApi(service.url)('POST', '/v1/tokens', { userId: 'minted' });
    assert.equal(status, 201);
    const claims = JSON.parse(Buffer.from(body.token.split('.')[1], 'base64url').toString());
    assert.equal(claims.sub, 'minted');
    assert.equal(claims.exp - claims.iat, 86_400);
    assert.ok(claims.iat >= start && claims.iat <= nowSeconds());
    assert.equal(Date.parse(body.expiresAt), claims.exp * 1000);
    const header = JSON.parse(Buffer.from(body.token.split('.')[0], 'base64url').toString());
    assert.deepEqual([header.alg, header.kid], ['HS256', 'a'.repeat(16)]);
    assert.equal((await as(body.token)).status, 200);
  });

  it('identity#mint: expiresIn is 1 to 2,592,000', async () => {
    const server = serverApi(service.url);
    for (const expiresIn of [1, 2_592_000])
      assert.equal((await server('POST', '/v1/tokens', { userId: 'u', expiresIn })).status, 201);
    for (const expiresIn of [0, -1, 2_592_001, 1.5, '60', null])
      assertError(
        await server('POST', '/v1/tokens', { userId: 'u', expiresIn }),
        400,
        'invalid_request',
        'expiresIn',
      );
  });

  it('identity#first-use: minting creates an unknown user with the name null', async () => {
    const server = serverApi(service.url);
    await server('POST', '/v1/tokens', { userId: 'made-by-minting' });
    assert.equal((await server('GET', '/v1/users/made-by-minting')).body.name, null);
  });

  it('userId is required and must be a user id', async () => {
    const server = serverApi(service.url);
    assertError(await server('POST', '/v1/tokens', {}), 400, 'invalid_request', 'userId');
    assertError(await server('POST', '/v1/tokens', { userId: 'a b' }), 400, 'invalid_request', 'userId');
  });
});

describe('identity#user-token: user tokens', () => {
  it('a token signed locally with HS256 and the secret key is accepted', async () => {
    assert.equal((await as(signToken({ sub: 'local' }))).status, 200);
  });

  it('identity#first-use: first using a valid token creates the user (name null)', async () => {
    const server = serverApi(service.url);
    assertError(await server('GET', '/v1/users/first-use'), 404, 'not_found');
    assert.equal((await as(signToken({ sub: 'first-use' }))).status, 200);
    assert.equal((await server('GET', '/v1/users/first-use')).body.name, null);
  });

  it('a token that is refused creates no user', async () => {
    assertError(await as(signToken({ sub: 'never-made', exp: nowSeconds() - 1 })), 401, 'token_expired');
    assertError(await as(devToken({ sub: 'never-made' })), 401, 'token_invalid');
    assertError(await serverApi(service.url)('GET', '/v1/users/never-made'), 404, 'not_found');
  });

  it('identity#token-errors: an expired token is 401 token_expired, also at the very second', async () => {
    const now = nowSeconds();
    assertError(await as(signToken({ sub: 'u', exp: now - 1 })), 401, 'token_expired');
    assertError(await as(signToken({ sub: 'u', exp: now })), 401, 'token_expired');
  });

  it('identity#user-token: an iat up to 60 s ahead is accepted, more is token_invalid', async () => {
    assert.equal((await as(signToken({ sub: 'u', iat: nowSeconds() + 60 }))).status, 200);
    let [answer, took] = [await as('none'), 0];
    // After three seconds it is 60 s ahead.
    do {
      const now = nowSeconds();
      answer = await as(signToken({ sub: 'u', iat: now + 63 }));
      took = nowSeconds() - now;
    } while (took > 1 && answer.status === 200);
    assertError(answer, 401, 'token_invalid');
  });

  const claims: Record<string, Record<string, unknown>> = {
    'no sub': { sub: undefined },
    'a sub that is no user id': { sub: 'white space' },
    'an empty sub': { sub: '' },
    'a sub of 129 characters': { sub: 'a'.repeat(129) },
    'a sub with a NUL character': { sub: 'a\0b' },
    'a sub that is a number': { sub: 7 },
    'no iat': { sub: 'u', iat: undefined },
    'an iat that is text': { sub: 'u', iat: '1' },
    'no exp': { sub: 'u', exp: undefined },
    'an exp that is text': { sub: 'u', exp: '99999999999' },
    'an exp beyond any date': { sub: 'u', exp: Number.MAX_SAFE_INTEGER },
  };
  for (const [name, value] of Object.entries(claims))
    it(`identity#user-token: a token with ${name} is token_invalid`, async () => {
      assertError(await as(signToken(value)), 401, 'token_invalid');
    });

  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const good = signToken({ sub: 'u' });
  const [head, payload, signature] = good.split('.') as [string, string, string];
  const rs256 = `${part({ alg: 'RS256', kid: 'a'.repeat(16) })}.${payload}`;
  const flip = (text: string) => (text[0] === 'A' ? 'B' : 'A') + text.slice(1);
  const forged: Record<string, string> = {
    HS512: signToken({ sub: 'u' }, { header: { alg: 'HS512' }, hash: 'sha512' }),
    'HS512 that is said to be HS256': signToken({ sub: 'u' }, { hash: 'sha512' }),
    RS256: `${rs256}.${createSign('sha256').update(rs256).sign(privateKey, 'base64url')}`,
    'alg none with a kid': devToken({ sub: 'u' }, { kid: 'a'.repeat(16) }),
    'alg none with a signature': `${part({ alg: 'none' })}.${payload}.${signature}`,
    'alg NONE': `${part({ alg: 'NONE' })}.${payload}.`,
    'HS256 without a kid': signToken({ sub: 'u' }, { header: { kid: undefined } }),
    'an unknown kid': signToken({ sub: 'u' }, { header: { kid: 'z'.repeat(16) } }),
    "another environment's kid": signToken({ sub: 'u' }, { header: { kid: 'b'.repeat(16) } }),
    'a kid with a NUL character': signToken({ sub: 'u' }, { header: { kid: 'a\0' } }),
    'a kid of 5,000 characters': signToken({ sub: 'u' }, { header: { kid: 'a'.repeat(5_000) } }),
    'a crit header': signToken({ sub: 'u' }, { header: { crit: ['exp'] } }),
    'a changed payload': `${head}.${part({ sub: 'boss', iat: 1, exp: 9_999_999_999 })}.${signature}`,
    'a changed signature': `${head}.${payload}.${flip(signature)}`,
    'no signature': `${head}.${payload}.`,
    'the signature cut short': `${head}.${payload}.${signature.slice(0, 20)}`,
    'two parts': `${head}.${payload}`,
    'four parts': `${good}.x`,
    'a payload that is no JSON': `${head}.${Buffer.from('hi').toString('base64url')}.${signature}`,
    'a payload that is a list': `${head}.${part([1])}.${signature}`,
  };
  for (const [name, token] of Object.entries(forged))
    it(`identity#user-token: algorithms are pinned and signatures checked: ${name}`, async () => {
      assertError(await as(token, { 'chat-env': 'env_dev' }), 401, 'token_invalid');
    });

  it('messages tell the mistakes of signers apart, and not which keys there are', async () => {
    const messageOf = async (token: string) => (await as(token)).body.error.message as string;
    const said = {
      HS512: /alg/,
      RS256: /alg/,
      'HS256 without a kid': /kid/,
      'a changed signature': /signature/,
      'two parts': /three parts/,
      'a crit header': /crit/,
      'a payload that is a list': /payload/,
    };
    for (const [name, pattern] of Object.entries(said))
      assert.match(await messageOf(forged[name]!), pattern, name);
    assert.equal(await messageOf(forged['an unknown kid']!), await messageOf(forged['a changed signature']!));
    assert.notEqual(await messageOf(forged['HS512']!), await messageOf(forged['HS256 without a kid']!));
  });

  it('nbf is honoured, with the leeway that iat has', async () => {
    const now = nowSeconds();
    assert.equal((await as(signToken({ sub: 'u', nbf: now + 55 }))).status, 200);
    for (const nbf of [now + 120, 'soon', null]) {
      const answer = await as(signToken({ sub: 'u', nbf }));
      assertError(answer, 401, 'token_invalid');
      assert.match(answer.body.error.message, /nbf/);
    }
    assertError(
      await as(devToken({ sub: 'u', nbf: now + 120 }), { 'chat-env': 'env_dev' }),
      401,
      'token_invalid',
    );
  });

  it('the HMAC key is the whole secret key string, not a part of it', async () => {
    const signed = `${head}.${payload}`;
    const sign = (key: string) => createHmac('sha256', key).update(signed).digest('base64url');
    assert.equal((await as(`${signed}.${sign(environments.dev.secretKey)}`)).status, 200);
    assertError(await as(`${signed}.${sign('a'.repeat(32))}`), 401, 'token_invalid');
  });

  it('one bad token never fails the good ones beside it (api#batches)', async () => {
    const bad = [forged['a kid with a NUL character']!, signToken({ sub: 'a\0b' })];
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) => as(i % 3 === 0 ? good : bad[i % 2]!)),
    );
    answers.forEach((answer, i) => assert.equal(answer.status, i % 3 === 0 ? 200 : 401));
  });
});

describe('identity#environment: naming the environment', () => {
  it('the right environment in Chat-Env or env is accepted, for users and keys', async () => {
    for (const credential of [signToken({ sub: 'u' }), environments.dev.secretKey]) {
      const userId = credential.startsWith('sk_') ? 'userId=u&' : '';
      assert.equal((await as(credential, { 'chat-env': 'env_dev' }, `?${userId}`)).status, 200);
      assert.equal((await as(credential, {}, `?${userId}env=env_dev`)).status, 200);
    }
  });

  it('identity#environment: an environment that is not the credential’s is 403 forbidden', async () => {
    for (const credential of [signToken({ sub: 'u' }), environments.dev.secretKey]) {
      assertError(await as(credential, { 'chat-env': 'env_other' }), 403, 'forbidden');
      assertError(await as(credential, { 'chat-env': 'env_unknown' }), 403, 'forbidden');
      assertError(await as(credential, {}, '?env=env_other'), 403, 'forbidden');
      assertError(await as(credential, { 'chat-env': 'env_dev' }, '?env=env_other'), 403, 'forbidden');
    }
  });
});

describe('identity#dev-tokens: development tokens', () => {
  const inDev = { 'chat-env': 'env_dev' };
  it('work in a development environment with Chat-Env, or with env', async () => {
    assert.equal((await as(devToken({ sub: 'dev-user' }), inDev)).status, 200);
    assert.equal((await as(devToken({ sub: 'dev-user' }), {}, '?env=env_dev')).status, 200);
    assert.equal((await serverApi(service.url)('GET', '/v1/users/dev-user')).status, 200);
  });

  it('need the environment named', async () => {
    assertError(await as(devToken({ sub: 'u' })), 401, 'token_invalid');
    for (const query of ['?env=env_unknown', '?env=%00', '?env='])
      assertError(await as(devToken({ sub: 'u' }), {}, query), 401, 'token_invalid');
  });

  it('need a sub; an exp that has passed is token_expired', async () => {
    assertError(await as(devToken({}), inDev), 401, 'token_invalid');
    assertError(await as(devToken({ sub: 'a b' }), inDev), 401, 'token_invalid');
    assertError(await as(devToken({ sub: 'u', exp: nowSeconds() - 5 }), inDev), 401, 'token_expired');
  });

  it('identity#dev-tokens: in production they are 403 dev_tokens_disabled', async () => {
    const answer = await as(devToken({ sub: 'u' }), { 'chat-env': 'env_prod' });
    assertError(answer, 403, 'dev_tokens_disabled');
    assert.equal(answer.body.error.type, 'permission');
  });

  it('with devTokens switched off they are dev_tokens_disabled; it is never on in production', async () => {
    const { id } = await parley(service, 'env', 'create', '--name', 'x', '--kind', 'development');
    assert.equal((await as(devToken({ sub: 'u' }), { 'chat-env': id })).status, 200);
    await parley(service, 'env', 'set', id, '--dev-tokens', 'false');
    assertError(await as(devToken({ sub: 'u' }), { 'chat-env': id }), 403, 'dev_tokens_disabled');
    await parley(service, 'env', 'set', 'env_prod', '--dev-tokens', 'true');
    assertError(await as(devToken({ sub: 'u' }), { 'chat-env': 'env_prod' }), 403, 'dev_tokens_disabled');
  });
});

describe('identity#revocation-others: revocation, deactivation, suspension', () => {
  it('a revoked key is 401 key_revoked, and so is every token it signed; other keys go on', async () => {
    const { secretKey } = await parley(service, 'key', 'create', 'env_dev', '--name', 'second');
    const token = signToken({ sub: 'u' }, { secretKey });
    assert.equal((await as(token)).status, 200);
    await parley(service, 'key', 'revoke', 'env_dev', secretKey.split('_')[2]);
    assertError(await as(secretKey), 401, 'key_revoked');
    assertError(await as(token), 401, 'key_revoked');
    assertError(await as(`${secretKey.slice(0, -1)}!`), 401, 'token_invalid');
    assert.equal((await as(signToken({ sub: 'u' }))).status, 200);
    const keys = await parley(service, 'key', 'list', 'env_dev');
    assert.equal(keys.filter((k: { revokedAt: string | null }) => k.revokedAt !== null).length, 1);
  });

  it('revoke-tokens refuses tokens with an earlier iat; one minted right after works', async () => {
    const server = serverApi(service.url);
    const before = await clientApi(service.url, 'revoked');
    const local = signToken({ sub: 'revoked', iat: nowSeconds() - 10 });
    assert.equal((await before('GET', '/v1/conversations')).status, 200);
    assert.equal((await server('POST', '/v1/users/revoked/revoke-tokens')).body.id, 'revoked');
    assertError(await before('GET', '/v1/conversations'), 401, 'token_invalid');
    assertError(await as(local), 401, 'token_invalid');
    const next = await clientApi(service.url, 'revoked');
    assert.equal((await next('GET', '/v1/conversations')).status, 200);
    const minted = await parley(service, 'token', 'env_dev', 'revoked');
    assert.equal((await as(minted.token)).status, 200);
    assert.equal((await as(signToken({ sub: 'someone-else' }))).status, 200);
  });

  it('deactivated users are 403 user_deactivated; reactivated ones need a new token', async () => {
    const server = serverApi(service.url);
    const client = await clientApi(service.url, 'paused');
    const { body } = await server('POST', '/v1/users/paused/deactivate');
    assert.notEqual(body.deactivatedAt, null);
    assertError(await client('GET', '/v1/conversations'), 403, 'user_deactivated');
    assertError(await as(signToken({ sub: 'paused', iat: nowSeconds() + 5 })), 403, 'user_deactivated');
    assertError(await server('POST', '/v1/tokens', { userId: 'paused' }), 403, 'user_deactivated');
    assert.equal((await server('POST', '/v1/users/paused/reactivate')).body.deactivatedAt, null);
    assertError(await client('GET', '/v1/conversations'), 401, 'token_invalid');
    const fresh = await clientApi(service.url, 'paused');
    assert.equal((await fresh('GET', '/v1/conversations')).status, 200);
  });

  it('identity#revocation-others: an erased user’s old token is token_invalid and does not bring the user back', async () => {
    const server = serverApi(service.url);
    const old = await clientApi(service.url, 'gone');
    assert.equal((await server('DELETE', '/v1/users/gone')).status, 204);
    assertError(await old('GET', '/v1/conversations'), 401, 'token_invalid');
    assertError(await server('GET', '/v1/users/gone'), 404, 'not_found');
    await server('PUT', '/v1/users/gone', { name: 'Somebody new' });
    assertError(await old('GET', '/v1/conversations'), 401, 'token_invalid');
    const next = await clientApi(service.url, 'gone');
    assert.equal((await next('GET', '/v1/conversations')).status, 200);
  });

  it('a suspended environment is refused to keys and tokens, and comes back', async () => {
    const made = await parley(service, 'env', 'create', '--name', 'y', '--kind', 'development');
    const { secretKey, id } = made;
    const token = signToken({ sub: 'u' }, { secretKey });
    await parley(service, 'env', 'set', id, '--status', 'suspended');
    for (const credential of [secretKey, token]) assertError(await as(credential), 403, 'forbidden');
    assertError(await as(devToken({ sub: 'u' }), { 'chat-env': id }), 403, 'forbidden');
    await parley(service, 'env', 'set', id, '--status', 'active');
    assert.equal((await as(token)).status, 200);
  });
});

describe('api#callers: callers of every operation', () => {
  for (const { name, method, path, callers } of operationList) {
    const url = path.replaceAll('{userId}', 'u').replaceAll(/\{\w+\}/g, 'conv_x');
    // Those that sign in, or come by a link, have no credential yet: accounts/ has their tests.
    if (callers.includes('anyone')) continue;
    it(`${name} needs a credential`, async () => {
      assertError(await createApi(service.url, null)(method, url), 401, 'token_invalid');
    });
    if (!callers.includes('client'))
      it(`${name} is 403 forbidden to clients`, async () => {
        const client = createApi(service.url, signToken({ sub: `caller-${name}` }));
        assertError(await client(method, url), 403, 'forbidden');
      });
    if (!callers.includes('server'))
      it(`${name} is 403 forbidden to servers`, async () => {
        assertError(await serverApi(service.url)(method, url), 403, 'forbidden');
      });
  }

  it('the table says what api#callers says', () => {
    // Whether the dashboard may as well is the role table's to say.
    const only = (caller: 'server' | 'client') =>
      operationList
        .filter(
          (o) =>
            httpCallers(o)
              .filter((c) => c !== 'dashboard')
              .join() === caller,
        )
        .map((o) => `${o.method} ${o.path}`);
    const servers = [
      'POST /v1/tokens',
      'PUT /v1/users/{userId}',
      'DELETE /v1/conversations/{conversationId}',
    ];
    const clients = [
      'PUT /v1/conversations/{conversationId}/mute',
      'DELETE /v1/conversations/{conversationId}/mute',
      'POST /v1/conversations/{conversationId}/read',
      'POST /v1/sync',
    ];
    const missing = (wanted: string[], found: string[]) => wanted.filter((route) => !found.includes(route));
    assert.deepEqual(missing(servers, only('server')), []);
    assert.deepEqual(missing(clients, only('client')), []);
  });
});
