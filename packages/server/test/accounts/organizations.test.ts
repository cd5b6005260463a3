import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertError } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import { until } from '../push-feature/tools.ts';
import { setUp, useService } from '../support/use.ts';
import { createDashboard, foreignOwner, join, signedInOwner } from './dashboard.ts';
import type { Dashboard } from './dashboard.ts';

/** dashboard#invitations: organizations, their people, and invitations by link. */

const { service, sql, db } = useService();
let owner: Dashboard;
let path: string;
let organizationId: string;
setUp(async () => {
  owner = await signedInOwner(service.url);
  organizationId = (await owner.api('GET', '/v1/session')).body.organizations[0].id;
  path = `/v1/organizations/${organizationId}`;
});

const joined = (role: string) => join(service.url, owner, organizationId, role);
const people = async (by: Dashboard): Promise<Answer['body'][]> =>
  (await by.api('GET', `${path}/members`)).body.data;
const tokenOf = (answer: Answer) => new URL(answer.body.link as string).hash.slice(1);
const invite = (by: Dashboard, email: string, role = 'viewer') =>
  by.api('POST', `${path}/invitations`, { email, role });
const accept = (by: Dashboard, token: string, more: object = { password: 'drei Kühe im Regen' }) =>
  by.api('POST', '/v1/invitations/accept', { token, ...more });

describe('organizations', () => {
  it('are read by everybody in them and renamed by admins', async () => {
    const [admin, viewer] = [await joined('admin'), await joined('viewer')];
    assert.equal((await viewer.api('GET', path)).body.role, 'viewer');
    assertError(await viewer.api('PATCH', path, { name: 'x' }), 403, 'forbidden');
    assert.equal((await admin.api('PATCH', path, { name: 'Engines' })).body.name, 'Engines');
    assert.equal((await viewer.api('GET', path)).body.name, 'Engines');
    assertError(await admin.api('PATCH', path, { name: '' }), 400, 'invalid_request', 'name');
    for (const name of ['a\nb', 'a\r\nBcc: x@example.com', 'a\tb', 'a\u0085b', 'a\u2028b'])
      assertError(await admin.api('PATCH', path, { name }), 400, 'invalid_request', 'name');
  });

  it('do not exist for others', async () => {
    const stranger = await foreignOwner(service.url, sql);
    for (const [method, rest, body] of [
      ['GET', '', undefined],
      ['PATCH', '', { name: 'x' }],
      ['GET', '/members', undefined],
      ['POST', '/invitations', { email: 'a@b.example', role: 'owner' }],
      ['DELETE', '/membership', undefined],
    ] as const) {
      const foreign = await stranger.api(method, path + rest, body);
      assertError(foreign, 404, 'not_found');
      const unknown = await stranger.api(method, `/v1/organizations/org_unknown${rest}`, body);
      assert.equal(unknown.body.error.message, foreign.body.error.message);
    }
  });
});

describe('people', () => {
  it('dashboard#reauth: inviting somebody and changing a role need a recent sign-in', async () => {
    const [admin, other] = [await joined('admin'), await joined('viewer')];
    await sql(
      `UPDATE account_sessions SET signed_in_at = now() - interval '16 minutes'
       WHERE account = (SELECT no FROM accounts WHERE id = $1)`,
      [admin.id],
    );
    assertError(await invite(admin, 'soon@example.com'), 403, 'reauth_required');
    const change = () => admin.api('PATCH', `${path}/members/${other.id}`, { role: 'developer' });
    assertError(await change(), 403, 'reauth_required');
    assert.equal((await admin.api('POST', '/v1/session/reauth', { password: admin.password })).status, 200);
    assert.equal((await change()).status, 200);
    assert.equal((await invite(admin, 'soon@example.com')).status, 201);
  });

  it('change roles and are removed; access ends at once', async () => {
    const me = await joined('developer');
    assert.equal((await me.in('env_dev')('GET', '/v1/keys')).status, 200);
    const { status, body } = await owner.api('PATCH', `${path}/members/${me.id}`, { role: 'viewer' });
    assert.deepEqual([status, body.role, body.email], [200, 'viewer', me.email]);
    assertError(await me.in('env_dev')('POST', '/v1/keys', {}), 403, 'forbidden');
    assert.equal((await owner.api('DELETE', `${path}/members/${me.id}`)).status, 204);
    assertError(await me.in('env_dev')('GET', '/v1/keys'), 404, 'not_found');
    assert.deepEqual((await me.api('GET', '/v1/session')).body.organizations, []);
    assertError(await owner.api('DELETE', `${path}/members/${me.id}`), 404, 'not_found');
  });

  it('admins may not touch owners, nor make them', async () => {
    const [admin, second] = [await joined('admin'), await joined('owner')];
    const other = await joined('viewer');
    for (const [method, rest, body] of [
      ['PATCH', `/members/${second.id}`, { role: 'viewer' }],
      ['DELETE', `/members/${second.id}`, undefined],
      ['PATCH', `/members/${other.id}`, { role: 'owner' }],
      ['PATCH', `/members/${admin.id}`, { role: 'owner' }],
      ['POST', '/invitations', { email: 'new-owner@example.com', role: 'owner' }],
    ] as const)
      assertError(await admin.api(method, path + rest, body), 403, 'forbidden');
    assert.equal((await admin.api('PATCH', `${path}/members/${other.id}`, { role: 'admin' })).status, 200);
    const invited = await invite(owner, 'soon-owner@example.com', 'owner');
    assertError(await admin.api('DELETE', `${path}/invitations/${invited.body.id}`), 403, 'forbidden');
    assert.equal((await second.api('PATCH', `${path}/members/${admin.id}`, { role: 'viewer' })).status, 200);
    assert.equal((await owner.api('DELETE', `${path}/members/${second.id}`)).status, 204);
  });

  it('dashboard#roles: somebody who becomes an owner while an admin acts against them stays one', async () => {
    const admin = await joined('admin');
    for (const [method, body] of [
      ['PATCH', { role: 'viewer' }],
      ['DELETE', undefined],
    ] as const) {
      const rising = await joined('developer');
      let asked!: Promise<Answer>;
      await db.tx(async (tx) => {
        await tx.query('SELECT 1 FROM organizations WHERE id = $1 FOR UPDATE', [organizationId]);
        await tx.query(
          `UPDATE organization_accounts SET role = 'owner' WHERE account = (SELECT no FROM accounts WHERE id = $1)`,
          [rising.id],
        );
        asked = admin.api(method, `${path}/members/${rising.id}`, body);
        const waits = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FROM organizations %'`;
        await until(async () => (await sql(waits)).length > 0, 'the organization is waited for');
      });
      assertError(await asked, 403, 'forbidden');
      assert.equal((await people(owner)).find((p) => p.accountId === rising.id)?.role, 'owner', method);
    }
  });

  it('may leave; the last owner cannot, nor become something else', async () => {
    const stranger = await foreignOwner(service.url, sql);
    const theirs = `/v1/organizations/${stranger.organizationId}`;
    assertError(await stranger.api('DELETE', `${theirs}/membership`), 400, 'invalid_request');
    const [{ accountId }] = (await stranger.api('GET', `${theirs}/members`)).body.data;
    assertError(
      await stranger.api('PATCH', `${theirs}/members/${accountId}`, { role: 'admin' }),
      400,
      'invalid_request',
    );
    assertError(await stranger.api('DELETE', `${theirs}/members/${accountId}`), 400, 'invalid_request');
    const second = await join(service.url, stranger, stranger.organizationId, 'owner');
    const outcomes = await Promise.all(
      [stranger, second].map((by) => by.api('DELETE', `${theirs}/membership`)),
    );
    assert.deepEqual(outcomes.map((o) => o.status).sort(), [204, 400], 'two at once: one stays');
    const viewer = await joined('viewer');
    assert.equal((await viewer.api('DELETE', `${path}/membership`)).status, 204);
    assert.ok(!(await people(owner)).some((p) => p.email === viewer.email));
  });

  it('are listed for everybody in the organization', async () => {
    const viewer = await joined('viewer');
    const list = await people(viewer);
    const me = list.find((p) => p.email === viewer.email)!;
    assert.deepEqual(
      { ...me, joinedAt: '' },
      {
        accountId: viewer.id,
        email: viewer.email,
        name: 'viewer',
        role: 'viewer',
        joinedAt: '',
        twoFactor: false,
      },
    );
    assert.ok(list.some((p) => p.role === 'owner'));
  });
});

describe('invitations', () => {
  it('are shown to their holder, work once, and make an account that is signed in', async () => {
    const invited = await invite(owner, 'New.Person@example.com', 'developer');
    assert.equal(invited.status, 201);
    assert.match(invited.body.link, /^http:\/\/127\.0\.0\.1:\d+\/dashboard\/invitation#[\w-]{43}$/);
    const token = tokenOf(invited);
    const browser = createDashboard(service.url);
    assert.deepEqual((await browser.api('POST', '/v1/invitations/preview', { token })).body, {
      email: 'new.person@example.com',
      role: 'developer',
      organization: 'Engines',
      hasAccount: false,
    });
    assertError(await accept(browser, token, {}), 400, 'invalid_request', 'password');
    assertError(
      await accept(browser, token, { password: 'new.person1' }),
      400,
      'invalid_request',
      'password',
    );
    const both = await Promise.all([accept(browser, token), accept(createDashboard(service.url), token)]);
    assert.deepEqual(both.map((a) => a.status).sort(), [200, 404], 'of two with one link, one comes in');
    assertError(await accept(createDashboard(service.url), token), 404, 'not_found');
    assertError(await browser.api('POST', '/v1/invitations/preview', { token }), 404, 'not_found');
    const me = createDashboard(service.url);
    await me.signIn('new.person@example.com', 'drei Kühe im Regen');
    assert.equal((await me.api('GET', path)).body.role, 'developer');
  });

  it('do not let anybody into an account that exists: its holder signs in first', async () => {
    const stranger = await foreignOwner(service.url, sql);
    const token = tokenOf(await invite(owner, stranger.email, 'viewer'));
    const thief = createDashboard(service.url);
    assertError(await accept(thief, token), 401, 'invalid_credentials');
    assertError(await accept(owner, token), 401, 'invalid_credentials');
    assert.equal((await thief.api('POST', '/v1/invitations/preview', { token })).body.hasAccount, true);
    const before = stranger.cookie;
    await sql(
      `UPDATE account_sessions SET signed_in_at = now() - interval '1 hour'
       WHERE account = (SELECT no FROM accounts WHERE email = $1)`,
      [stranger.email],
    );
    const { status, body } = await accept(stranger, token, {});
    assert.equal(status, 200);
    assert.equal(body.organizations.length, 2);
    assert.equal(stranger.cookie, before);
    assertError(await stranger.api('POST', '/v1/account/totp'), 403, 'reauth_required');
    assertError(await invite(owner, stranger.email.toUpperCase()), 409, 'already_member');
  });

  it('are listed without their links, withdrawn, replaced, and end after 7 days', async () => {
    const first = await invite(owner, 'waiting@example.com', 'viewer');
    const { data } = (await owner.api('GET', `${path}/invitations`)).body;
    const listed = data.find((i: { email: string }) => i.email === 'waiting@example.com');
    assert.deepEqual(
      [listed.id, listed.role, listed.invitedBy, 'link' in listed],
      [first.body.id, 'viewer', 'owner@example.com', false],
    );
    assert.equal(Date.parse(listed.expiresAt) - Date.parse(listed.createdAt), 7 * 86_400_000);
    const second = await invite(owner, 'waiting@example.com', 'developer');
    const browser = createDashboard(service.url);
    assertError(await accept(browser, tokenOf(first)), 404, 'not_found');
    assert.equal((await owner.api('DELETE', `${path}/invitations/${second.body.id}`)).status, 204);
    assertError(await owner.api('DELETE', `${path}/invitations/${second.body.id}`), 404, 'not_found');
    assertError(await accept(browser, tokenOf(second)), 404, 'not_found');
    const third = await invite(owner, 'late@example.com');
    await sql(`UPDATE invitations SET expires_at = now() WHERE email = 'late@example.com'`);
    assertError(await accept(browser, tokenOf(third)), 404, 'not_found');
    for (const token of ['x', 'A'.repeat(43), '']) {
      const { status } = await accept(browser, token);
      assert.ok(status === 404 || status === 400, token);
    }
  });

  it('end with the rights of who made them: on removal, on leaving, and on demotion below what they give', async () => {
    const browser = createDashboard(service.url);
    const open = async (email: string): Promise<boolean> =>
      (await owner.api('GET', `${path}/invitations`)).body.data.some(
        (i: { email: string }) => i.email === email,
      );
    for (const [name, end] of Object.entries({
      removed: (id: string) => owner.api('DELETE', `${path}/members/${id}`),
      demoted: (id: string) => owner.api('PATCH', `${path}/members/${id}`, { role: 'developer' }),
      left: (_id: string, maker: Dashboard) => maker.api('DELETE', `${path}/membership`),
    })) {
      const maker = await joined('admin');
      const email = `by-${name}@example.com`;
      const token = tokenOf(await invite(maker, email, 'viewer'));
      assert.ok((await end(maker.id, maker)).status < 300);
      assert.equal(await open(email), false, name);
      assertError(await accept(browser, token), 404, 'not_found');
    }
    const second = await joined('owner');
    const tokens = {
      owner: tokenOf(await invite(second, 'third-owner@example.com', 'owner')),
      admin: tokenOf(await invite(second, 'third-admin@example.com', 'admin')),
    };
    assert.equal((await owner.api('PATCH', `${path}/members/${second.id}`, { role: 'admin' })).status, 200);
    assertError(await accept(browser, tokens.owner), 404, 'not_found');
    assert.equal((await accept(browser, tokens.admin)).status, 200, 'an admin still may give it');
  });

  it('that lie in the store from before their maker was removed or demoted let nobody in', async () => {
    const maker = await joined('owner');
    const token = tokenOf(await invite(maker, 'overlooked@example.com', 'owner'));
    await sql(
      `UPDATE organization_accounts SET role = 'admin' WHERE account = (SELECT no FROM accounts WHERE id = $1)`,
      [maker.id],
    );
    const browser = createDashboard(service.url);
    assertError(await accept(browser, token), 404, 'not_found');
    assertError(await browser.api('POST', '/v1/invitations/preview', { token }), 404, 'not_found');
    await sql(`DELETE FROM organization_accounts WHERE account = (SELECT no FROM accounts WHERE id = $1)`, [
      maker.id,
    ]);
    assertError(await accept(browser, token), 404, 'not_found');
  });

  it('of an owner are not replaced by an admin', async () => {
    const admin = await joined('admin');
    for (const [email, role] of [
      ['next-owner@example.com', 'owner'],
      ['next-viewer@example.com', 'viewer'],
    ] as const) {
      const invited = await invite(owner, email, role);
      assertError(await invite(admin, email, 'viewer'), 403, 'forbidden');
      assert.equal((await accept(createDashboard(service.url), tokenOf(invited))).status, 200);
    }
    const own = await invite(admin, 'own@example.com', 'viewer');
    assert.equal((await invite(owner, 'own@example.com', 'developer')).status, 201, 'from above it may be');
    assertError(await accept(createDashboard(service.url), tokenOf(own)), 404, 'not_found');
    await sql(`UPDATE invitations SET expires_at = now() WHERE email = 'own@example.com'`);
    assert.equal(
      (await invite(admin, 'own@example.com', 'viewer')).status,
      201,
      'one that has ended is no bar',
    );
  });

  it('only their hash is kept', async () => {
    const token = tokenOf(await invite(owner, 'secret@example.com'));
    const [row] = (await sql(
      `SELECT i::text AS line FROM invitations i WHERE email = 'secret@example.com'`,
    )) as {
      line: string;
    }[];
    assert.ok(!row!.line.includes(token));
  });

  it('sign-up is closed unless the operator opens it', async () => {
    assertError(
      await createDashboard(service.url).api('POST', '/v1/sign-up', { email: 'stranger@example.com' }),
      403,
      'forbidden',
    );
  });
});
