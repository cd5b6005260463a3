import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import * as sessions from '../../src/features/accounts/sql/sessions.ts';
import { removeExpired } from '../../src/features/retention/retention.ts';
import { hashToken, makeToken } from '../../src/features/accounts/tokens.ts';
import { createWorld, origin } from './world.ts';
import type { World } from './world.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world.close());

const hour = 3_600_000;
const begin = async (account?: number) => {
  const no = account ?? (await world.account()).no;
  return sessions.createSession(world.db, world.services, no, origin);
};
const use = (token: string) => sessions.useSession(world.db, world.services.clock, token);

test('the token is 32 random bytes, and its hash alone is kept', async () => {
  const { token, session } = await begin();
  assert.equal(Buffer.from(token, 'base64url').length, 32);
  const [row] = await world.db.query<{ line: string }>(
    'SELECT s::text AS line FROM account_sessions s WHERE id = $1',
    [session.id],
  );
  assert.ok(row!.line.includes(hashToken(token).toString('hex')));
  assert.ok(!row!.line.includes(token));
  for (const wrong of [makeToken(randomBytes), '', 'x', `${token}x`, hashToken(token).toString('base64url')])
    assert.equal(await use(wrong), null);
});

test('a session ends 12 h after its last use', async () => {
  const { token } = await begin();
  for (let i = 0; i < 3; i++) {
    world.time.at += 12 * hour - 1;
    assert.ok(await use(token), 'used within 12 h it goes on');
  }
  world.time.at += 12 * hour;
  assert.equal(await use(token), null);
});

test('a session ends after 30 days, however often it is used', async () => {
  const { token } = await begin();
  for (let hours = 10; hours < 30 * 24; hours += 10) {
    world.time.at += 10 * hour;
    assert.ok(await use(token), `after ${hours} hours`);
  }
  world.time.at += 10 * hour;
  assert.equal(await use(token), null);
});

test('the last use is written at most once a minute', async () => {
  const { token, session } = await begin();
  const written = async () => {
    const [row] = await world.db.query<{ at: string }>(
      'SELECT used_at AS at FROM account_sessions WHERE id = $1',
      [session.id],
    );
    return Date.parse(row!.at);
  };
  const first = world.time.at;
  world.time.at += 59_999;
  await use(token);
  assert.equal(await written(), first);
  world.time.at += 1;
  await Promise.all([use(token), use(token), use(token)]);
  assert.equal(await written(), first + 60_000);
});

test('a renewed token replaces the one before, and renews the sign-in', async () => {
  const { token, session } = await begin();
  world.time.at += 14 * 60_000;
  assert.equal(sessions.isRecent(session, world.services.clock), true);
  world.time.at += 60_000;
  assert.equal(sessions.isRecent(session, world.services.clock), false, '15 minutes are over');
  const fresh = (await sessions.renewToken(world.db, world.services, session.id))!;
  assert.equal(await use(token), null);
  assert.equal((await use(fresh.token))!.id, session.id);
  assert.equal(sessions.isRecent(fresh.session, world.services.clock), true);
  assert.equal(fresh.session.createdAt, session.createdAt, '30 days count from the first sign-in');
});

test('ending: one, the others, by token; never those of somebody else', async () => {
  const { no } = await world.account();
  const [a, b, c] = [await begin(no), await begin(no), await begin(no)];
  const stranger = await begin();
  assert.equal(await sessions.endSession(world.db, no, stranger.session.id), false);
  assert.ok(await use(stranger.token));
  assert.equal(await sessions.endSession(world.db, no, a.session.id), true);
  assert.equal(await use(a.token), null);
  assert.equal(await sessions.endOtherSessions(world.db, no, c.session.id), 1);
  assert.equal(await use(b.token), null);
  assert.ok(await use(c.token));
  await sessions.endByToken(world.db, c.token);
  assert.equal(await use(c.token), null);
  assert.ok(await use(stranger.token));
});

test('an account has at most 50: those not used for the longest go', async () => {
  const { no } = await world.account();
  const first = await begin(no);
  const second = await begin(no);
  world.time.at += 60_000;
  assert.ok(await use(first.token));
  for (let i = 0; i < 49; i++) {
    world.time.at += 1_000;
    await begin(no);
  }
  const listed = await sessions.listSessions(world.db, world.services.clock, no);
  assert.equal(listed.length, 50);
  assert.ok(await use(first.token));
  assert.equal(await use(second.token), null);
  assert.deepEqual(listed[0], { ...listed[0]!, address: '192.0.2.1', userAgent: 'test' });
});

test('ended sessions are not listed, and are removed', async () => {
  const { no } = await world.account();
  await begin(no);
  world.time.at += 12 * hour;
  const { session } = await begin(no);
  const listed = await sessions.listSessions(world.db, world.services.clock, no);
  assert.deepEqual(
    listed.map((s) => s.id),
    [session.id],
  );
  // The store's own clock decides what is removed.
  await world.db.query(
    `UPDATE account_sessions SET used_at = now() - interval '12 hours' * (id <> $1)::int`,
    [session.id],
  );
  await removeExpired(world.db, 0);
  const rows = await world.db.query('SELECT 1 FROM account_sessions WHERE account = $1', [no]);
  assert.equal(rows.length, 1);
});
