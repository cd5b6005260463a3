import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertError } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import { until } from '../push-feature/tools.ts';
import { setUp, useService } from '../support/use.ts';
import { createAuthenticator } from './authenticator.ts';
import { createDashboard, join, signedInOwner } from './dashboard.ts';
import type { Dashboard } from './dashboard.ts';
import { totpApp } from './totp-app.ts';

/** What people do with their own account, over REST. */

const { service, sql, db } = useService({ env: { CHAT_ORIGIN: 'https://chat.example.com' } });
let owner: Dashboard;
let organizationId: string;
setUp(async () => {
  owner = await signedInOwner(service.url);
  organizationId = (await owner.api('GET', '/v1/session')).body.organizations[0].id;
});

const person = () => join(service.url, owner, organizationId, 'developer');
const alive = async (dashboard: Dashboard) => (await dashboard.api('GET', '/v1/session')).status === 200;
/** A second browser of the same person. */
async function again(who: { email: string; password: string }, code?: string): Promise<Dashboard> {
  const dashboard = createDashboard(service.url);
  await dashboard.signIn(who.email, who.password, code);
  return dashboard;
}

describe('password', () => {
  it('changes with the old one; other sessions end, this one goes on under a new token', async () => {
    const me = await person();
    const [other, before] = [await again(me), me.cookie];
    const answer = await me.api('POST', '/v1/account/password', {
      password: me.password,
      newPassword: 'vier Kühe im Regen',
    });
    assert.equal(answer.status, 200);
    assert.equal(answer.body.account.email, me.email);
    assert.notEqual(me.cookie, before);
    assert.equal(await alive(me), true);
    assert.equal(await alive(other), false);
    assert.equal(await alive(Object.assign(createDashboard(service.url), { cookie: before })), false);
    assertError(
      await createDashboard(service.url).api('POST', '/v1/session', {
        email: me.email,
        password: me.password,
      }),
      401,
      'invalid_credentials',
    );
    await again({ email: me.email, password: 'vier Kühe im Regen' });
  });

  it('stays where the old one is wrong, or the new one is bad', async () => {
    const me = await person();
    const change = (password: string, newPassword: string) =>
      me.api('POST', '/v1/account/password', { password, newPassword });
    assertError(await change('wrong', 'vier Kühe im Regen'), 401, 'invalid_credentials');
    for (const bad of ['short', 'password1234', '1234567890', me.email, 'x'.repeat(300)])
      assertError(await change(me.password, bad), 400, 'invalid_request', 'newPassword');
    await again(me);
  });
});

describe('one-time codes', () => {
  it('are set up, asked for at sign-in and reauth, and turned off', async () => {
    const me = await person();
    const { body: begun } = await me.api('POST', '/v1/account/totp');
    assert.ok(begun.uri.includes(`secret=${begun.secret}`));
    const code = totpApp(begun.uri);
    assertError(
      await me.api('POST', '/v1/account/totp/confirm', { code: 'nonsense' }),
      400,
      'invalid_request',
      'code',
    );
    await again(me);
    const used = code();
    const { status, body } = await me.api('POST', '/v1/account/totp/confirm', { code: used });
    assert.equal(status, 200);
    assert.equal(body.recoveryCodes.length, 10);
    const account = (await me.api('GET', '/v1/account')).body;
    assert.deepEqual([account.twoFactor, account.totp, account.recoveryCodes], [true, true, 10]);
    assert.equal((await me.api('GET', '/v1/session')).body.account.twoFactor, true);

    const stranger = createDashboard(service.url);
    const signIn = (given: object) => stranger.api('POST', '/v1/session', { ...only(me), ...given });
    assertError(await signIn({}), 401, 'second_factor_required');
    assertError(await signIn({ code: used }), 401, 'invalid_credentials');
    assert.equal(stranger.cookie, null);
    await again(me, body.recoveryCodes[0]);
    assertError(await signIn({ code: body.recoveryCodes[0] }), 401, 'invalid_credentials');
    await again(me, code(Date.now() + 30_000));

    assertError(
      await me.api('POST', '/v1/session/reauth', { password: me.password }),
      401,
      'second_factor_required',
    );
    assert.equal(
      (await me.api('POST', '/v1/session/reauth', { password: me.password, code: body.recoveryCodes[1] }))
        .status,
      200,
    );
    assertError(await me.api('POST', '/v1/account/totp'), 400, 'invalid_request');
    assert.equal((await me.api('DELETE', '/v1/account/totp')).status, 204);
    assertError(await me.api('DELETE', '/v1/account/totp'), 404, 'not_found');
    assert.equal((await me.api('GET', '/v1/account')).body.recoveryCodes, 0);
    await again(me);
  });

  /** Runs `asks` while the account is locked, until each of them waits for it; then `meanwhile` with the lock. */
  const atOnce = async (me: { id: string }, asks: (() => Promise<Answer>)[], meanwhile = '') => {
    const asked: Promise<Answer>[] = [];
    await db.tx(async (tx) => {
      await tx.query('SELECT 1 FROM accounts WHERE id = $1 FOR UPDATE', [me.id]);
      for (const [i, ask] of asks.entries()) {
        asked.push(ask());
        await until(
          async () =>
            (
              await sql(
                `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ '(FROM|UPDATE) accounts '`,
              )
            ).length > i,
          'the account is waited for',
        );
      }
      if (meanwhile) await tx.query(meanwhile, [me.id]);
    });
    return Promise.all(asked);
  };

  it('of two confirmations at once one gets recovery codes, and these count', async () => {
    const me = await person();
    const code = totpApp((await me.api('POST', '/v1/account/totp')).body.uri)();
    const confirm = () => me.api('POST', '/v1/account/totp/confirm', { code });
    const answers = await atOnce(me, [confirm, confirm]);
    const won = answers.find((answer) => answer.status === 200)!;
    assertError(
      answers.find((answer) => answer !== won)!,
      400,
      'invalid_request',
      'code',
    );
    await again(me, won.body.recoveryCodes[0]);
  });

  it('a session that ended meanwhile sets up no second factor', async () => {
    const me = await person();
    const code = totpApp((await me.api('POST', '/v1/account/totp')).body.uri)();
    const [answer] = await atOnce(
      me,
      [() => me.api('POST', '/v1/account/totp/confirm', { code })],
      'DELETE FROM account_sessions WHERE account = (SELECT no FROM accounts WHERE id = $1)',
    );
    assertError(answer!, 401, 'token_invalid');
    await again(me);
  });

  it('recovery codes are renewed; those before count no more', async () => {
    const me = await person();
    assertError(await me.api('POST', '/v1/account/recovery-codes'), 400, 'invalid_request');
    const code = totpApp((await me.api('POST', '/v1/account/totp')).body.uri);
    const first = (await me.api('POST', '/v1/account/totp/confirm', { code: code() })).body.recoveryCodes;
    const second = (await me.api('POST', '/v1/account/recovery-codes')).body.recoveryCodes;
    assert.equal(new Set([...first, ...second]).size, 20);
    const stranger = createDashboard(service.url);
    assertError(
      await stranger.api('POST', '/v1/session', { ...only(me), code: first[0] }),
      401,
      'invalid_credentials',
    );
    await again(me, second[0]);
  });
});

const only = ({ email, password }: { email: string; password: string }) => ({ email, password });

describe('passkeys', () => {
  const origin = 'https://chat.example.com';
  const register = async (me: Dashboard, key: ReturnType<typeof createAuthenticator>) => {
    const { body: options } = await me.api('POST', '/v1/account/passkeys/options');
    assert.equal(options.rp.id, 'chat.example.com');
    return me.api('POST', '/v1/account/passkeys', { name: 'Laptop', response: key.create(options) });
  };
  const signIn = async (key: ReturnType<typeof createAuthenticator>) => {
    const browser = createDashboard(service.url);
    const { body: options } = await browser.api('POST', '/v1/session/passkey/options');
    const answer = await browser.api('POST', '/v1/session/passkey', { response: key.get(options) });
    return { browser, answer };
  };

  it('are added, sign in without a password, and are removed', async () => {
    const me = await person();
    const key = createAuthenticator(origin);
    const added = await register(me, key);
    assert.equal(added.status, 201, JSON.stringify(added.body));
    assert.equal(added.body.recoveryCodes.length, 10);
    const { browser, answer } = await signIn(key);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    assert.equal(answer.body.account.email, me.email);
    assert.equal(await alive(browser), true);
    assert.equal(
      (await register(me, createAuthenticator(origin))).body.recoveryCodes,
      null,
      'there are some already',
    );

    assertError(
      await createDashboard(service.url).api('POST', '/v1/session', only(me)),
      401,
      'second_factor_required',
    );
    await again(me, added.body.recoveryCodes[3]);

    const { data } = (await me.api('GET', '/v1/account/passkeys')).body;
    assert.deepEqual(
      data.map((p: { name: string }) => p.name),
      ['Laptop', 'Laptop'],
    );
    for (const { id } of data)
      assert.equal((await me.api('DELETE', `/v1/account/passkeys/${id}`)).status, 204);
    assertError(await me.api('DELETE', `/v1/account/passkeys/${data[0].id}`), 404, 'not_found');
    assertError((await signIn(key)).answer, 401, 'invalid_credentials');
    await again(me);
  });

  it('a page of another origin gets nowhere', async () => {
    const me = await person();
    assertError(
      await register(me, createAuthenticator('https://evil.example.com')),
      400,
      'invalid_request',
      'response',
    );
    assertError(
      await me.api('POST', '/v1/account/passkeys', { name: '', response: {} }),
      400,
      'invalid_request',
      'name',
    );
  });
});

describe('sessions', () => {
  it('are listed with where and when, and ended one by one or all but this one', async () => {
    const me = await person();
    const [a, b] = [await again(me), await again(me)];
    const { data } = (await me.api('GET', '/v1/account/sessions', undefined, { 'user-agent': 'later' })).body;
    assert.equal(data.length, 3);
    assert.equal(data.filter((s: { current: boolean }) => s.current).length, 1);
    for (const session of data) {
      assert.equal(session.address, '127.0.0.1');
      assert.equal(session.userAgent, 'node');
      assert.deepEqual(Object.keys(session).sort(), [
        'address',
        'createdAt',
        'current',
        'id',
        'lastUsedAt',
        'userAgent',
      ]);
    }
    const mine = async (d: Dashboard) =>
      (await d.api('GET', '/v1/account/sessions')).body.data.find((s: { current: boolean }) => s.current)
        .id as string;
    assert.equal((await me.api('DELETE', `/v1/account/sessions/${await mine(a)}`)).status, 204);
    assert.deepEqual([await alive(a), await alive(b), await alive(me)], [false, true, true]);
    assertError(await me.api('DELETE', `/v1/account/sessions/${await mine(owner)}`), 404, 'not_found');
    assert.equal(await alive(owner), true);
    assert.equal((await me.api('DELETE', '/v1/account/sessions')).status, 204);
    assert.deepEqual([await alive(b), await alive(me)], [false, true]);
  });
});

describe('ASVS 7.5.1: what would let a thief of the cookie stay', () => {
  it('needs a sign-in within the last 15 minutes', async () => {
    const me = await person();
    await sql(`UPDATE account_sessions SET signed_in_at = now() - interval '15 minutes'`);
    for (const [method, path, body] of [
      ['POST', '/v1/account/totp', undefined],
      ['POST', '/v1/account/totp/confirm', { code: '123456' }],
      ['DELETE', '/v1/account/totp', undefined],
      ['POST', '/v1/account/recovery-codes', undefined],
      ['POST', '/v1/account/passkeys/options', undefined],
      ['POST', '/v1/account/passkeys', { name: 'x', response: {} }],
      ['DELETE', '/v1/account/passkeys/pk_x', undefined],
      ['DELETE', '/v1/account/sessions/sess_x', undefined],
      ['DELETE', '/v1/account/sessions', undefined],
    ] as const)
      assertError(await me.api(method, path, body), 403, 'reauth_required');
    assert.equal((await me.api('PATCH', '/v1/account', { name: 'Ada' })).body.name, 'Ada');
  });
});
