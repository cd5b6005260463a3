import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seed } from '../../../../scripts/seed.ts';
import { findEnvironment } from '../../src/features/tenancy/sql/environments.ts';
import { createSharing } from '../../src/features/users/sharing.ts';
import { setUp, useService } from '../support/use.ts';
import { counting, times } from './tools.ts';

/** Who shares a live conversation with whom: exact for users with any number of conversations, at a cost that is bounded. */

const { db } = useService();
let env = 0;
setUp(async () => {
  env = (await findEnvironment(db, 'env_dev'))!.no;
});

let made = 0;
const makeUsers = async (count: number): Promise<number[]> =>
  (
    await db.query<{ no: number }>('INSERT INTO users (env, id) SELECT $1, unnest($2::text[]) RETURNING no', [
      env,
      times(count, () => `sharing-${made++}`),
    ])
  ).map((r) => r.no);

/** Conversations with these members, one after the other in their activity; some of them deleted. */
async function makeConversations(
  members: number[][],
  deleted: (i: number) => boolean = () => false,
): Promise<void> {
  const rows = await db.query<{ no: number }>(
    `INSERT INTO conversations (env, id, type, last_activity_at, last_activity_step, created_at, deleted_at)
     SELECT $1, w.id, 'group', now(), w.ord, now(), CASE WHEN w.deleted THEN now() END
     FROM unnest($2::text[], $3::boolean[]) WITH ORDINALITY AS w(id, deleted, ord) ORDER BY w.ord RETURNING no`,
    [env, members.map(() => `conv_sharing${made++}`), members.map((_, i) => deleted(i))],
  );
  const pairs = members.flatMap((users, i) => users.map((usr) => ({ conv: rows[i]!.no, usr, step: i })));
  await db.query(
    `INSERT INTO members (env, conv, usr, last_activity_step, own_activity_step, own_activity_at)
     SELECT $1, w.conv, w.usr, w.step, 0, now() FROM unnest($2::bigint[], $3::bigint[], $4::int[]) AS w(conv, usr, step)`,
    [env, pairs.map((p) => p.conv), pairs.map((p) => p.usr), pairs.map((p) => p.step)],
  );
}

/** As the specification says it, whatever it costs. */
const plainly = async (user: number, others: number[]): Promise<number[]> =>
  (
    await db.query<{ usr: number }>(
      `SELECT DISTINCT y.usr FROM members x JOIN members y ON y.env = x.env AND y.conv = x.conv
       JOIN conversations c ON c.env = x.env AND c.no = x.conv AND c.deleted_at IS NULL
       WHERE x.env = $1 AND x.usr = $2 AND y.usr = ANY($3) ORDER BY y.usr`,
      [env, user, others],
    )
  ).map((r) => r.usr);

const sorted = (users: Iterable<number>): number[] => [...users].sort((a, b) => a - b);

test('exact for every pair of users with few, with just as many as are tried one by one, and with many conversations', async () => {
  let state = seed('sharing');
  const random = (below: number): number =>
    (state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff) % below;
  const users = await makeUsers(30);
  // Each has some conversations with itself alone, so that what is shared stands anywhere among its own.
  const counts = [0, 1, 5, 62, 63, 64, 65, 66, 150, 300];
  const alone = users.flatMap((user, i) => times(counts[i % counts.length]!, () => [user]));
  const together = times(60, () => [...new Set(times(2 + random(3), () => users[random(users.length)]!))]);
  const all = [...alone, ...together];
  for (let i = all.length - 1; i > 0; i--) {
    const j = random(i + 1);
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  await makeConversations(all, () => random(4) === 0);
  const sharing = createSharing(db);
  const answers = await Promise.all(
    users.map((user) =>
      sharing(
        env,
        user,
        users.filter((other) => other !== user),
      ),
    ),
  );
  let shared = 0;
  for (const [i, user] of users.entries()) {
    const others = users.filter((other) => other !== user);
    const expected = await plainly(user, others);
    assert.deepEqual(sorted(answers[i]!), expected, `of ${user}`);
    shared += expected.length;
    for (const other of others.slice(0, 6))
      assert.equal((await sharing(env, user, [other])).has(other), expected.includes(other));
  }
  assert.ok(shared > 20 && shared < 30 * 29, `${shared} pairs share one`);
  assert.deepEqual(await sharing(env + 1, users[0]!, users), new Set(), 'another environment');
  assert.deepEqual(await sharing(env, users[0]!, []), new Set());
});

test('200 strangers cost a member of 1,200 groups no more than a member of twelve', async (t) => {
  const strangers = await makeUsers(200);
  const [modest, greedy] = (await makeUsers(2)) as [number, number];
  await makeConversations(strangers.map((stranger) => [stranger]));
  await makeConversations([...times(12, () => [modest]), ...times(1_200, () => [greedy])]);
  await db.query('VACUUM ANALYZE members');
  const cost = async (user: number): Promise<number> => {
    const counted = counting(db);
    assert.deepEqual(await createSharing(counted.db)(env, user, strangers), new Set());
    return counted.pages();
  };
  const [little, much] = [await cost(modest), await cost(greedy)];
  t.diagnostic(`${little} pages for twelve groups, ${much} for 1,200`);
  assert.ok(much <= little * 1.2, `${little} against ${much}`);
  assert.ok(much <= 200 * 15, `${much} pages for 200 look-ups`);
});

test('where both have very many conversations the cost is their sum, not their product', async (t) => {
  const [user, ...others] = (await makeUsers(21)) as [number, ...number[]];
  await makeConversations(times(1_000, () => [user]));
  await makeConversations(times(1_000, () => others));
  await db.query('VACUUM ANALYZE members');
  const counted = counting(db);
  assert.deepEqual(await createSharing(counted.db)(env, user, others), new Set());
  t.diagnostic(`${counted.pages()} pages in ${counted.statements()} statements`);
  assert.equal(counted.statements(), 2);
  // 20 others with 1,000 each, of which one page holds many; one by one it would be 20,000 look-ups of some pages each.
  assert.ok(counted.pages() < 20_000, `${counted.pages()} pages`);
});

test('questions that come together are few statements', async () => {
  const users = await makeUsers(40);
  await makeConversations([users]);
  const counted = counting(db);
  const sharing = createSharing(counted.db);
  const answers = await Promise.all(
    users.map((user) =>
      sharing(
        env,
        user,
        users.filter((other) => other !== user),
      ),
    ),
  );
  assert.ok(answers.every((shared) => shared.size === 39));
  assert.ok(counted.statements() <= 5, `${counted.statements()} statements for 40 questions`);
});
