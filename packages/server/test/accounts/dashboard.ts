import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createPasswords } from '../../src/features/accounts/passwords.ts';
import { createApi } from '../support/api.ts';
import type { Answer, Api } from '../support/api.ts';
import { owner } from '../support/service.ts';

/** A browser with the dashboard open: it keeps the cookie, and says that its requests come from our own page. */
export interface Dashboard {
  api: Api;
  /** The token of the session, or null. */
  cookie: string | null;
  /** Signs in and expects that it works. */
  signIn(email: string, password: string, code?: string): Promise<Answer>;
  /** The same calls with an environment named. */
  in(environmentId: string): Api;
}

export { owner };

/** @param fixed headers that every request has; undefined ones are left out. */
export function createDashboard(
  url: string,
  fixed: Record<string, string | undefined> = { origin: url, 'sec-fetch-site': 'same-origin' },
): Dashboard {
  const always = Object.fromEntries(
    Object.entries(fixed).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
  const plain = createApi(url, null, always);
  const dashboard: Dashboard = {
    cookie: null,
    api: async (method, path, body, headers = {}) => {
      const cookie: Record<string, string> =
        dashboard.cookie === null ? {} : { cookie: `parley_session=${dashboard.cookie}` };
      const answer = await plain(method, path, body, { ...cookie, ...headers });
      for (const line of answer.headers.getSetCookie()) {
        const [, value] = /^parley_session=([^;]*)/.exec(line) ?? [];
        if (value !== undefined) dashboard.cookie = value === '' ? null : value;
      }
      return answer;
    },
    async signIn(email, password, code) {
      const given = code === undefined ? {} : { code };
      const answer = await dashboard.api('POST', '/v1/session', { email, password, ...given });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return answer;
    },
    in: (id) => (method, path, body, headers) =>
      dashboard.api(method, path, body, { 'chat-env': id, ...headers }),
  };
  return dashboard;
}

export async function signedInOwner(url: string): Promise<Dashboard> {
  const dashboard = createDashboard(url);
  await dashboard.signIn(owner.email, owner.password);
  return dashboard;
}

let people = 0;

/** Invites somebody by link and follows it: a new account that belongs to the organization. */
export async function join(
  url: string,
  by: Dashboard,
  organizationId: string,
  role: string,
): Promise<Dashboard & { email: string; password: string; id: string }> {
  const email = `${role}-${++people}-${process.pid}@example.com`;
  const password = 'drei Kühe im Regen';
  const invitation = await by.api('POST', `/v1/organizations/${organizationId}/invitations`, { email, role });
  assert.equal(invitation.status, 201, JSON.stringify(invitation.body));
  const token = new URL(invitation.body.link as string).hash.slice(1);
  const dashboard = createDashboard(url);
  const { status, body } = await dashboard.api('POST', '/v1/invitations/accept', {
    token,
    password,
    name: role,
  });
  assert.equal(status, 200, JSON.stringify(body));
  return Object.assign(dashboard, { email, password, id: body.account.id as string });
}

/** An organization that nobody else belongs to, with its owner signed in: made in the store, because sign-up is closed. */
export async function foreignOwner(
  url: string,
  sql: (text: string, values?: unknown[]) => Promise<unknown>,
): Promise<Dashboard & { email: string; organizationId: string }> {
  const email = `foreign-${++people}-${process.pid}@example.com`;
  const organizationId = `org_foreign${people}x${process.pid}`;
  const hash = await createPasswords(randomBytes).hash('fremde Kühe im Regen');
  await sql('INSERT INTO organizations (id, name) VALUES ($1, $1)', [organizationId]);
  await sql('INSERT INTO accounts (id, email, password_hash) VALUES ($1, $2, $3)', [
    `acc_foreign${people}x${process.pid}`,
    email,
    hash,
  ]);
  await sql(
    `INSERT INTO organization_accounts (org, account, role)
     SELECT o.no, a.no, 'owner' FROM organizations o, accounts a WHERE o.id = $1 AND a.email = $2`,
    [organizationId, email],
  );
  const dashboard = createDashboard(url);
  await dashboard.signIn(email, 'fremde Kühe im Regen');
  return Object.assign(dashboard, { email, organizationId });
}
