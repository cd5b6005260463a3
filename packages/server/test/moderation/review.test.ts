import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '@parley/protocol';
import { removeExpired } from '../../src/features/retention/retention.ts';
import { createDashboard, join, signedInOwner } from '../accounts/dashboard.ts';
import { until } from '../push-feature/tools.ts';
import { assertError } from '../support/api.ts';
import { parley } from '../support/cli.ts';
import { createScene } from '../support/scene.ts';
import { environments } from '../support/service.ts';
import { useService } from '../support/use.ts';
import { decide, queue, report, world } from './report-tools.ts';

/** reports.md: who reads the queue, what word lists put into it, and how long it stays; how long restrictions and links do. */

const { service, scene, server, db } = useService();

test('reports#audit: reading a snapshot in the dashboard is audited, for developers alone', async () => {
  const { carl, cid, message } = await world(scene);
  const { body } = await report(carl.api, { messageId: message.id });
  const owner = await signedInOwner(service.url);
  const organizationId = (await owner.api('GET', '/v1/session')).body.organizations[0].id;
  const envId = environments.dev.id;
  const [viewer, developer] = await Promise.all(
    ['viewer', 'developer'].map((role) => join(service.url, owner, organizationId, role)),
  );
  const path = `/v1/reports?conversationId=${cid}`;
  assertError(await viewer!.in(envId)('GET', path), 403, 'forbidden');
  assertError(await decide(viewer!.in(envId), body.id, { status: 'dismissed' }), 403, 'forbidden');
  assertError(await createDashboard(service.url).in(envId)('GET', path), 401, 'token_invalid');
  const entries = async () =>
    (await owner.in(envId)('GET', `/v1/audit?actor=${encodeURIComponent(developer!.email)}`)).body.data.map(
      (e: any) => [e.action, e.target, e.changes.after],
    );
  assert.deepEqual(await entries(), []);
  for (let i = 0; i < 2; i++)
    assert.equal(
      (await queue(developer!.in(envId), `conversationId=${cid}`))[0].snapshot.text,
      'a nasty word',
    );
  assert.deepEqual(await entries(), [['reports.list', cid, null]]);
  const done = await decide(developer!.in(envId), body.id, { status: 'resolved', actions: ['silence'] });
  assert.equal(done.status, 200);
  assert.deepEqual((await entries()).map(([action]: [string]) => action).sort(), [
    'reports.list',
    'reports.update',
    'users.silence',
  ]);
  const [item] = await queue(server, `conversationId=${cid}`);
  assert.equal(item.resolvedBy, developer!.email);
});

test('reports#lists: a word list reports what is sent and edited, as it was said, without failing the send', async () => {
  const other = createScene(service.url, 'other');
  const list = (entries: string[], action = 'report') =>
    other.server('PUT', `/v1/moderation/lists/${action}`, { entries, action, conversations: 'all' });
  assert.equal((await list(['gambl*'])).status, 200);
  await list(['vulgar'], 'reject');
  const [anna, ben] = await Promise.all([other.actor('anna'), other.actor('ben')]);
  const { id: cid } = await other.group(anna, [ben]);
  const totals = async () => (await other.server('GET', '/v1/analytics')).body.totals;
  const before = await totals();
  const said = { text: 'come Gambling', clientMsgId: 'gamble' };
  const sent = await ben.api('POST', `/v1/conversations/${cid}/messages`, said);
  assert.deepEqual([sent.status, sent.body.text], [201, 'come Gambling']);
  const items = async () => queue(other.server, `conversationId=${cid}`);
  const edited = await ben.api('PATCH', `/v1/messages/${sent.body.id}`, { text: 'hi', expectedVersion: 1 });
  assert.equal(edited.status, 200);
  await until(async () => (await items()).length === 1, 'the report');
  const [item] = await items();
  assert.partialDeepStrictEqual(item, {
    reports: 1,
    reasons: [{ reason: 'list', count: 1 }],
    snapshot: { text: 'come Gambling', version: 1 },
    target: { messageId: sent.body.id, userId: ben.id },
  });
  assert.equal(item.latest[0].reporterId, null);
  // A repetition of the send is none of the report; an edit with such a word is another version.
  assert.equal((await ben.api('POST', `/v1/conversations/${cid}/messages`, said)).status, 201);
  await ben.api('PATCH', `/v1/messages/${sent.body.id}`, { text: 'gamble!', expectedVersion: 2 });
  await until(async () => (await items())[0].reports === 2, 'the report of the edit');
  assert.deepEqual(
    (await items())[0].laterSnapshots.map((s: any) => s.text),
    ['gamble!'],
  );
  const refused = await ben.api('POST', `/v1/conversations/${cid}/messages`, {
    text: 'vulgar gambling',
    clientMsgId: 'no',
  });
  assertError(refused, 403, 'message_rejected');
  assert.equal(
    (await other.server('POST', `/v1/conversations/${cid}/messages`, { text: 'gambling', senderId: ben.id }))
      .status,
    201,
  );
  // Made after all others, so these were made, or never will be.
  const clean = await other.send(ben, cid, { text: 'gambler' });
  await until(async () => (await items()).some((i) => i.target.messageId === clean.id), 'the last report');
  assert.equal((await items()).length, 2, 'servers are not bound');
  const after = await totals();
  assert.deepEqual([after.reports - before.reports, after.rejected - before.rejected], [3, 1]);

  await parley(service, 'env', 'set', environments.other.id, '--features-off', 'reports');
  assertError(await report(anna.api, { messageId: clean.id }), 403, 'feature_disabled');
  assert.equal((await other.send(ben, cid, { text: 'gambling again' })).text, 'gambling again');
  assert.equal((await items()).length, 2, 'what is there stays readable');
  await parley(service, 'env', 'set', environments.other.id, '--features-off', 'none');
  for (const name of ['report', 'reject']) await other.server('DELETE', `/v1/moderation/lists/${name}`);
});

test('reports#kept: what was decided stays for 180 days, and what is open stays', async () => {
  const { owner, carl, cid, message } = await world(scene);
  const ended = (await report(carl.api, { messageId: message.id })).body.id;
  await decide(server, ended, { status: 'dismissed' });
  const open = (await report(owner.api, { messageId: message.id })).body.id;
  const ids = async () => (await queue(server, `conversationId=${cid}`)).map((item) => item.id);
  const move = (days: number) =>
    db.query(
      `UPDATE reports SET at = at - $2 * interval '1 day', resolved_at = resolved_at - $2 * interval '1 day' WHERE message_id = $1`,
      [message.id, days],
    );
  await move(limits.reportDays - 1);
  await removeExpired(db, 7 * 24 * 3_600_000);
  assert.deepEqual(await ids(), [open, ended]);
  await move(2);
  await removeExpired(db, 7 * 24 * 3_600_000);
  assert.deepEqual(await ids(), [open]);
});

test('restrictions#erasure, joining#erasure: what has ended is removed a day later, and what has not stays', async () => {
  const [owner, ...people] = await Promise.all(
    ['owner', 'now', 'early', 'late'].map((name) => scene.actor(name)),
  );
  const { id: cid } = await scene.group(owner!, [], { rules: { joining: 'link' } });
  const path = `/v1/conversations/${cid}`;
  const links: string[] = [];
  for (const { id } of people) {
    const ban = await owner!.api('PUT', `${path}/restrictions/${id}`, { kind: 'ban' });
    assert.equal(ban.status, 200, JSON.stringify(ban.body));
    links.push((await owner!.api('POST', `${path}/invites`, {})).body.id as string);
  }
  // The first has no end, or one that is to come; the others ended some hours ago.
  for (const [i, hours] of [23, 25].entries()) {
    await db.query(
      `UPDATE restrictions r SET until = clock_timestamp() - $2 * interval '1 hour' FROM users u
       WHERE u.id = $1 AND r.usr = u.no AND r.env = u.env`,
      [people[i + 1]!.id, hours],
    );
    await db.query(
      `UPDATE invite_links SET expires_at = clock_timestamp() - $2 * interval '1 hour' WHERE id = $1`,
      [links[i + 1], hours],
    );
  }
  await removeExpired(db, 7 * 24 * 3_600_000);
  const banned = await db.query<{ id: string }>(
    `SELECT u.id FROM restrictions r JOIN users u ON u.no = r.usr AND u.env = r.env WHERE u.id = ANY($1)`,
    [people.map(({ id }) => id)],
  );
  const kept = await db.query<{ id: string }>('SELECT id FROM invite_links WHERE id = ANY($1)', [links]);
  assert.deepEqual(banned.map(({ id }) => id).sort(), [people[0]!.id, people[1]!.id].sort());
  assert.deepEqual(kept.map(({ id }) => id).sort(), [links[0], links[1]].sort());
});
