import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '@parley/protocol';
import { assertError } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';

/** What a user's clients may create, in an hour and in all (conversations#create). */

const { scene, sql } = useService();
const hour = 3_600_000;

let made = 0;
/** As if the user's client had created so many groups, this long ago. */
async function created(actor: Actor, count: number, agoMs: number): Promise<void> {
  await sql(
    `INSERT INTO conversations (env, id, type, creator, last_activity_at, last_activity_step, created_at)
     SELECT u.env, 'conv_made' || $2 || 'x' || i, 'group', u.no, now(), 0, now() - $4 * interval '1 millisecond'
     FROM users u, generate_series(1, $3) i WHERE u.id = $1`,
    [actor.id, made++, count, agoMs],
  );
}
const create = (actor: Actor, body: object = { type: 'group', members: [] }) =>
  actor.api('POST', '/v1/conversations', body);

test('a client creates at most 100 conversations in an hour, then 429 with the time until there is room', async () => {
  const [actor, mate, other] = [await scene.actor(), await scene.actor(), await scene.actor()];
  const pair = { type: 'direct', members: [mate.id] };
  const direct = await create(actor, pair);
  assert.equal(direct.status, 201);
  await created(actor, 10, 2 * hour);
  await created(actor, limits.clientConversationsPerHour - 2, hour / 2);
  assert.equal((await create(actor)).status, 201, 'the hundredth of the hour');
  const error = assertError(await create(actor), 429, 'rate_limited');
  assert.ok(
    error.retryAfterMs! > hour / 2 - 60_000 && error.retryAfterMs! <= hour / 2,
    String(error.retryAfterMs),
  );
  assertError(await create(actor, { type: 'direct', members: [other.id] }), 429, 'rate_limited');
  assert.equal(
    (
      await sql(
        `SELECT count(*)::int AS n FROM conversations c JOIN environments e ON e.no = c.env
         WHERE e.id = 'env_dev' AND c.id LIKE 'conv_dm_%'`,
      )
    )[0]!['n'],
    1,
  );
  const again = await create(actor, pair);
  assert.deepEqual([again.status, again.body.id], [200, direct.body.id], 'what exists is not created');
  assert.equal((await create(mate)).status, 201, 'each user by itself');
  const byServer = await scene.server('POST', '/v1/conversations', {
    type: 'group',
    members: [],
    ownerId: actor.id,
  });
  assert.equal(byServer.status, 201, 'a server is not bounded');
  await sql(
    `UPDATE conversations SET created_at = created_at - interval '31 minutes' WHERE creator IS NOT NULL`,
  );
  assert.equal((await create(actor)).status, 201, 'when the hour is over');
});

test('creations at the same moment do not slip past the limit together', async () => {
  const actor = await scene.actor();
  await created(actor, limits.clientConversationsPerHour - 5, 60_000);
  const answers = await Promise.all(Array.from({ length: 20 }, () => create(actor)));
  assert.equal(answers.filter((a) => a.status === 201).length, 5);
  for (const answer of answers) if (answer.status !== 201) assertError(answer, 429, 'rate_limited');
});

test('a client creates at most 10,000 in all; deleted ones no longer count', async () => {
  const actor = await scene.actor();
  await created(actor, limits.clientConversations, 2 * hour);
  assertError(await create(actor), 400, 'invalid_request');
  await sql(
    `UPDATE conversations SET deleted_at = now() WHERE id = (SELECT c.id FROM conversations c JOIN users u ON u.no = c.creator
     WHERE u.id = $1 LIMIT 1)`,
    [actor.id],
  );
  assert.equal((await create(actor)).status, 201);
});
