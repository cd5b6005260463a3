import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { removeEnded } from '../../src/features/retention/ended.ts';
import { assertError, createApi } from '../support/api.ts';
import { parley } from '../support/cli.ts';
import { connect } from '../support/socket.ts';
import { useService } from '../support/use.ts';
import { createDashboard, foreignOwner, join } from './dashboard.ts';

/** dashboard#delete-organization: DELETE /v1/organizations/{id}. */

const { service, scene, db, sql } = useService({ own: true });

/** An organization with an environment in which something happened. */
async function organization() {
  const owner = await foreignOwner(service.url, sql);
  const { organizationId } = owner;
  const path = `/v1/organizations/${organizationId}`;
  await owner.api('PATCH', path, { name: 'Farm & Söhne' });
  const { body: env } = await owner.api('POST', '/v1/environments', {
    organizationId,
    name: 'Shop',
    kind: 'production',
  });
  const server = createApi(service.url, env.secretKey as string);
  const { body } = await server('POST', '/v1/tokens', { userId: 'ann' });
  const ann = createApi(service.url, body.token as string);
  const group = await server('POST', '/v1/conversations', { type: 'group', members: ['ann', 'bob'] });
  const messages = `/v1/conversations/${group.body.id}/messages`;
  const said = { text: 'hello', clientMsgId: '1', mentions: [{ type: 'user', userId: 'bob' }] };
  const sent = await ann('POST', messages, said);
  assert.equal(sent.status, 201);
  const own = `/v1/messages/${sent.body.id}`;
  assert.equal((await ann('PUT', `${own}/reactions/:yes:`, {})).status, 200);
  assert.equal((await ann('PUT', `${own}/pin`)).status, 200);
  const upload = { filename: 'a.png', contentType: 'image/png', size: 100, conversationId: group.body.id };
  assert.equal((await ann('POST', '/v1/uploads', upload)).status, 201);
  await server('POST', '/v1/webhooks', { url: 'https://hooks.example.com/x', events: ['message.created'] });
  const remove = (by = owner.api, name = 'Farm & Söhne') =>
    by('DELETE', `${path}?name=${encodeURIComponent(name)}`);
  return { owner, organizationId, path, env, server, ann, token: body.token as string, remove };
}

/** The rows that carry the environment's number, by table. */
async function rowsOf(id: string): Promise<Record<string, number>> {
  const [env] = await sql('SELECT no FROM environments WHERE id = $1', [id]);
  const tables = await sql(
    `SELECT table_name AS name FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
     WHERE column_name = 'env' AND table_schema = 'public' AND table_type = 'BASE TABLE'`,
  );
  const found: Record<string, number> = {};
  for (const { name } of tables) {
    const [row] = await sql(`SELECT count(*)::int AS n FROM "${name as string}" WHERE env = $1`, [
      env!['no'],
    ]);
    if ((row!['n'] as number) > 0) found[name as string] = row!['n'] as number;
  }
  return found;
}

describe('dashboard#delete-organization: DELETE /v1/organizations/{id}', () => {
  it('needs an owner, the name, and a recent sign-in', async () => {
    const { owner, organizationId, path, server, remove } = await organization();
    for (const role of ['admin', 'developer', 'viewer']) {
      const other = await join(service.url, owner, organizationId, role);
      assertError(await remove(other.api), 403, 'forbidden');
    }
    for (const name of ['', 'farm & söhne', 'Farm'])
      assertError(await remove(owner.api, name), 400, 'invalid_request', 'name');
    assertError(await owner.api('DELETE', path), 400, 'invalid_request', 'name');
    const stranger = await foreignOwner(service.url, sql);
    assertError(await remove(stranger.api), 404, 'not_found');
    await sql(
      `UPDATE account_sessions SET signed_in_at = now() - interval '16 minutes'
       WHERE account = (SELECT no FROM accounts WHERE email = $1)`,
      [owner.email],
    );
    assertError(await remove(), 403, 'reauth_required');
    assert.equal((await server('GET', '/v1/users')).status, 200, 'nothing has changed');
  });

  it('ends keys, tokens, sockets, invitations and memberships at once, and is in the audit', async () => {
    const { owner, organizationId, path, env, server, ann, token, remove } = await organization();
    const viewer = await join(service.url, owner, organizationId, 'viewer');
    const invited = await owner.api('POST', `${path}/invitations`, {
      email: 'late@example.com',
      role: 'viewer',
    });
    const link = new URL(invited.body.link as string).hash.slice(1);
    const socket = await connect(service, token);
    const answers = await Promise.all([remove(), remove()]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 404], 'of two at once, one');
    assertError(await server('GET', '/v1/users'), 401, 'key_revoked');
    assertError(await ann('GET', '/v1/conversations'), 401, 'key_revoked');
    assert.ok([4001, 4003].includes((await socket.closed).code));
    for (const person of [owner, viewer]) {
      assertError(await person.api('GET', path), 404, 'not_found');
      assertError(await person.in(env.id)('GET', '/v1/keys'), 404, 'not_found');
      assert.deepEqual((await person.api('GET', '/v1/session')).body.organizations, []);
    }
    const late = await createDashboard(service.url).api('POST', '/v1/invitations/accept', {
      token: link,
      password: 'drei Kühe im Regen',
    });
    assertError(late, 404, 'not_found');
    await assert.rejects(parley(service, 'env', 'set', env.id, '--status', 'active'));
    const shown = await parley(service, 'env', 'list');
    assert.ok(!shown.some(({ id }: { id: string }) => id === env.id));
    const [entry] = await parley(service, 'audit', 'list', '--action', 'organizations.delete');
    assert.deepEqual(
      [entry.actor, entry.target, entry.changes.before],
      [owner.email, organizationId, { name: 'Farm & Söhne', environments: [env.id] }],
    );
  });

  it('removes every row of its environments in the background, and nothing of others', async () => {
    await removeEnded(db, 0);
    const { env, remove } = await organization();
    const { id } = await scene.group(await scene.actor(), []);
    await scene.send(null, id, { text: 'stays' });
    // What the message set off is counted and sent first, or it would come after the removal.
    while ((await sql('SELECT 1 FROM activity_notes UNION ALL SELECT 1 FROM outbox')).length > 0);
    assert.equal(await removeEnded(db, 0), 0, 'what has not ended stays');
    const counted = `FROM environments e JOIN counters c ON c.env = e.no WHERE e.id = $1 AND c.at = '2001-01-01'`;
    await sql(`INSERT INTO counters SELECT no, 1, '2001-01-01', '{}' FROM environments WHERE id = $1`, [
      env.id,
    ]);
    assert.equal((await sql(`SELECT 1 ${counted}`, [env.id])).length, 1);
    assert.equal((await remove()).status, 204);
    assert.equal(await removeEnded(db), 0, 'not before sockets and requests have ended');
    const before = await rowsOf('env_dev');
    const there = await rowsOf(env.id);
    for (const name of ['messages', 'reactions', 'message_reactions', 'mentions', 'pins'])
      assert.ok(there[name]! > 0, name);
    assert.equal(await removeEnded(db, 0), 1);
    const left = await rowsOf(env.id);
    assert.deepEqual(
      // Requests are logged and counted a moment later, for which there is a grace period outside of this test.
      Object.keys(left).filter(
        (name) => !/^(audit|object_removals|activity|counters|request_log_\d+)$/.test(name),
      ),
      [],
    );
    assert.deepEqual(await sql(`SELECT 1 ${counted}`, [env.id]), [], 'what was counted before is gone');
    assert.equal(left['object_removals'], 1, 'the sweep of media removes the file');
    const after = await rowsOf('env_dev');
    for (const name of ['messages', 'conversations', 'events', 'members', 'users', 'secret_keys'])
      assert.equal(after[name], before[name], name);
    const [row] = await sql('SELECT name, removed_at FROM environments WHERE id = $1', [env.id]);
    assert.equal(row!['name'], '');
    assert.ok(row!['removed_at']);
    assert.equal(await removeEnded(db, 0), 0, 'once');
  });
});
