import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSyncer } from '../../src/features/sync/operations.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';
import { serverApi } from '../support/api.ts';
import { createGroup, times } from './tools.ts';
import { useService } from '../support/use.ts';

const { service, db } = useService();

test('events#sync: users who sync at once are answered together, each as if alone', async () => {
  const server = serverApi(service.url);
  const users = times(9, (i) => `together-${i}`);
  await Promise.all(users.map((user, i) => createGroup(server, [user, users[(i + 1) % 9]!])));
  const left = await createGroup(server, users);
  for (const user of users.slice(0, 3))
    assert.equal((await server('DELETE', `/v1/conversations/${left}/members/${user}`)).status, 204);
  const rows = await db.query<{ env: number; no: number }>(
    'SELECT env, no FROM users WHERE id = ANY($1) ORDER BY id',
    [users],
  );
  const days = 86_400_000;
  const cursors = [
    null,
    `s1.${(Date.now() - 1_000).toString(36)}`,
    `s1.${(Date.now() - 40 * days).toString(36)}`,
  ];
  const questions = rows.map(({ env, no }, i) => [env, no, cursors[i % 3]!] as const);

  let statements = 0;
  const counting: Queryable = {
    query: (sql, values) => {
      statements++;
      return db.query(sql, values);
    },
  };
  const syncer = createSyncer(counting);
  const together = await Promise.all(questions.map((question) => syncer(...question)));
  assert.ok(statements < questions.length, `${statements} statements`);
  for (const [i, question] of questions.entries()) {
    const { cursor: _, ...alone } = await createSyncer(db)(...question);
    const { cursor, ...answer } = together[i]!;
    assert.match(cursor, /^s2\./);
    assert.deepEqual(answer, alone);
    assert.equal(answer.fullReload, i % 3 === 2);
    assert.equal(answer.conversations.length, i < 3 ? 2 : 3);
    assert.deepEqual(answer.removed, i === 1 ? [left] : []);
  }
});
