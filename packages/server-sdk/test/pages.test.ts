import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failure, setUp } from './support.ts';
import type { Seen } from './support.ts';

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const out: T[] = [];
  for await (const item of items) out.push(item);
  return out;
}
const query = (one: Seen) => new URL(one.url, 'http://x').searchParams;

/** Answers like the service does, over `count` items (api#paging, messages#history). */
const users = (count: number) => (one: Seen) => {
  const from = Number(query(one).get('cursor') ?? 0);
  const to = Math.min(count, from + Number(query(one).get('limit') ?? 50));
  const data = Array.from({ length: to - from }, (_, i) => ({ id: `u${from + i}` }));
  return { status: 200, body: { data, nextCursor: to < count ? String(to) : null } };
};
const bySeq = (count: number) => (one: Seen) => {
  const params = query(one);
  const limit = Number(params.get('limit') ?? 50);
  const every = Array.from({ length: count }, (_, i) => ({ seq: i + 1 }));
  const after = params.get('after');
  const before = params.get('before');
  const ascending = one.url.includes('/events');
  if (ascending ? before === null || after !== null : before === null && after !== null) {
    const above = every.filter(({ seq }) => seq > Number(after ?? 0) && seq < Number(before ?? Infinity));
    const page = above.slice(0, limit);
    return {
      status: 200,
      body: { data: ascending ? page : page.toReversed(), hasMore: above.length > limit },
    };
  }
  const below = every
    .filter(({ seq }) => seq < Number(before ?? Infinity) && seq > Number(after ?? 0))
    .toReversed();
  const page = below.slice(0, limit);
  return {
    status: 200,
    body: { data: ascending ? page.toReversed() : page, hasMore: below.length > limit },
  };
};

test('sdk#server-pages: iteration goes over every cursor page and ends', async (t) => {
  const { parley, seen } = await setUp(t, users(5));
  const ids = (await all(parley.users.list({ limit: 2 }))).map(({ id }) => id);
  assert.deepEqual(ids, ['u0', 'u1', 'u2', 'u3', 'u4']);
  assert.deepEqual(
    seen.map((one) => one.url),
    ['/v1/users?limit=2', '/v1/users?limit=2&cursor=2', '/v1/users?limit=2&cursor=4'],
  );
});

test('awaiting gives one page; leaving the loop asks for no more; making the call asks for nothing', async (t) => {
  const { parley, seen } = await setUp(t, users(9));
  const listed = parley.users.list({ limit: 3 });
  assert.equal(seen.length, 0);
  const page = await listed;
  assert.equal(page.data.length, 3);
  assert.equal(page.nextCursor, '3');
  for await (const one of listed) if (one.id === 'u4') break;
  assert.equal(seen.length, 3);
});

test('a cursor that does not move ends the iteration', async (t) => {
  const { parley, seen } = await setUp(t, () => ({
    status: 200,
    body: { data: [{ id: 'x' }], nextCursor: 'same' },
  }));
  assert.equal((await all(parley.users.list())).length, 2);
  assert.equal(seen.length, 2);
});

test('history: newest first by default, from `before`, and upwards from `after`', async (t) => {
  const { parley, seen } = await setUp(t, bySeq(7));
  const seqs = async (fields: object) =>
    (await all(parley.messages.list('conv_1', { limit: 3, ...fields }))).map(({ seq }) => seq);
  assert.deepEqual(await seqs({}), [7, 6, 5, 4, 3, 2, 1]);
  assert.deepEqual(
    seen.map((one) => query(one).get('before')),
    [null, '5', '2'],
  );
  assert.deepEqual(await seqs({ before: 4 }), [3, 2, 1]);
  assert.deepEqual(await seqs({ after: 2 }), [3, 4, 5, 6, 7]);
  assert.deepEqual(await seqs({ after: 7 }), []);
  assert.deepEqual(await seqs({ after: 1, before: 7 }), [6, 5, 4, 3, 2]);
});

test('events: upwards, from the start or from `after`; down from `before`', async (t) => {
  const { parley, seen } = await setUp(t, bySeq(5));
  const seqs = async (fields: { after?: number; before?: number }) =>
    (await all(parley.events.list('conv_1', { limit: 2, ...fields }))).map(({ seq }) => seq);
  assert.deepEqual(await seqs({}), [1, 2, 3, 4, 5]);
  assert.deepEqual(
    seen.map((one) => query(one).get('after')),
    [null, '2', '4'],
  );
  assert.deepEqual(await seqs({ after: 3 }), [4, 5]);
  assert.deepEqual(await seqs({ before: 5 }), [4, 3, 2, 1]);
  assert.deepEqual(await seqs({ after: 1, before: 5 }), [2, 3, 4]);
});

test('a seq page that says hasMore but brings nothing new ends the iteration', async (t) => {
  const { parley, seen } = await setUp(t, () => ({
    status: 200,
    body: { data: [{ seq: 4 }], hasMore: true },
  }));
  assert.equal((await all(parley.messages.list('conv_1'))).length, 2);
  assert.equal(seen.length, 2);
});

test('an error in the middle of an iteration is thrown from the loop', async (t) => {
  const gone = { status: 410, body: failure('resync_required', 'conflict', { retryAfterMs: 0 }) };
  const { parley } = await setUp(t, [bySeq(5)({ url: '/events?limit=2' } as Seen), gone]);
  const got: number[] = [];
  await assert.rejects(
    async () => {
      for await (const { seq } of parley.events.list('conv_1', { limit: 2 })) got.push(seq);
    },
    { code: 'resync_required', status: 410 },
  );
  assert.deepEqual(got, [1, 2]);
});
