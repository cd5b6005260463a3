import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listConversations } from '../../src/features/conversations/sql/list.ts';
import { createSyncer } from '../../src/features/sync/operations.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';
import { counting, createGroup, seedMessages, times } from './tools.ts';
import { setUp, useService } from '../support/use.ts';

/** What a list costs is counted in pages that PostgreSQL touches: the same on any machine. */

const rows = 50;
const few = 3;
const many = 3_000;

const { server, db } = useService();

setUp(async () => {
  for (const [user, count] of [
    ['few', few],
    ['many', many],
  ] as const) {
    const ids = await Promise.all(times(rows, () => createGroup(server, [user, 'writer'])));
    await seedMessages(db, { conversations: ids, sender: 'writer', count, text: 'x' });
  }
  for (const table of ['messages', 'conversations', 'members', 'users', 'events'])
    await db.query(`VACUUM ANALYZE ${table}`);
});

const userNo = async (id: string): Promise<{ env: number; no: number }> =>
  (await db.query<{ env: number; no: number }>('SELECT env, no FROM users WHERE id = $1', [id]))[0]!;

/** The least of some runs: the first on a connection also reads the catalogue for the functions that it calls. */
async function cost(user: string, read: (db: Queryable, env: number, no: number) => Promise<unknown>) {
  const { env, no } = await userNo(user);
  const costs = [];
  for (let run = 0; run < 3; run++) {
    const counted = counting(db);
    await read(counted.db, env, no);
    costs.push(counted.pages());
  }
  return Math.min(...costs);
}

for (const [name, read] of [
  [
    'a conversation list',
    (q: Queryable, env: number, no: number) =>
      listConversations(q, env, no, rows, undefined, { byDefault: 'all', now: 0 }),
  ],
  ['a full sync', (q: Queryable, env: number, no: number) => createSyncer(q)(env, no, null)],
] as const)
  test(`${name} of 50 rows costs the same with 3 and with 3,000 unread each`, async (t) => {
    const cheap = await cost('few', read);
    const dear = await cost('many', read);
    t.diagnostic(`${cheap} pages with ${few} unread, ${dear} with ${many}`);
    assert.ok(cheap > 0, 'something was counted');
    // Rows lie on other pages, and other tests change the catalogue; a cost that grew with the messages would be hundreds.
    assert.ok(dear - cheap <= 20, `${cheap} against ${dear}`);
  });

test('and the counts are right', async () => {
  for (const [user, count] of [
    ['few', few],
    ['many', many],
  ] as const) {
    const { body } = await server('GET', `/v1/conversations?userId=${user}&limit=${rows}`);
    const { data } = body as { data: { unreadCount: number }[] };
    assert.deepEqual(
      data.map((c) => c.unreadCount),
      times(rows, () => count),
    );
  }
});
