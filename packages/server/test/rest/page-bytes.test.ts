import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '@parley/protocol';
import type { Answer, Api } from '../support/api.ts';
import { times } from '../core/tools.ts';
import type { Actor } from '../support/scene.ts';
import { setUp, useService } from '../support/use.ts';

/** Pages whose items are as large as they may be end early, and say so. */

const { scene } = useService();
let alice: Actor;
let conv: string;
const messages = 150;
/** Control characters are six bytes each in JSON: the largest text there is. */
const text = '\u0001'.repeat(limits.textCharacters);

setUp(async () => {
  alice = await scene.actor('alice');
  conv = (await scene.group(alice, [alice])).id;
  const sending = times(messages, () => scene.send(null, conv, { text }));
  await Promise.all(sending);
});

async function page(api: Api, path: string): Promise<Answer> {
  const answer = await api('GET', path);
  assert.equal(answer.status, 200, JSON.stringify(answer.body).slice(0, 500));
  const bytes = Buffer.byteLength(JSON.stringify(answer.body));
  assert.ok(bytes <= limits.pageBytes + 1_000, `${path}: ${bytes} bytes`);
  return answer;
}

test('history: shorter pages, hasMore until the end, each message once, downwards and upwards', async () => {
  const expected = times(messages, (i) => i + 2);
  for (const [first, next] of [
    [`limit=200`, (seqs: number[]) => `limit=200&before=${Math.min(...seqs)}`],
    [`limit=200&after=0`, (seqs: number[]) => `limit=200&after=${Math.max(...seqs)}`],
  ] as const) {
    const found: number[] = [];
    let query: string = first;
    let pages = 0;
    for (let more = true; more; pages += 1) {
      const { body } = await page(scene.server, `/v1/conversations/${conv}/messages?${query}`);
      const seqs = body.data.map((m: { seq: number }) => m.seq);
      assert.deepEqual(
        seqs,
        seqs.toSorted((a: number, b: number) => b - a),
      );
      assert.ok(seqs.length > 0 && seqs.length < messages);
      found.push(...seqs);
      more = body.hasMore;
      query = next(seqs);
    }
    assert.deepEqual(
      found.toSorted((a, b) => a - b),
      expected,
    );
    assert.equal(pages, Math.ceil(messages / Math.floor(limits.pageBytes / 30_300)));
  }
});

test('events: shorter pages, hasMore until the end, each seq once and in order', async () => {
  const found: number[] = [];
  for (let more = true; more;) {
    const { body } = await page(
      scene.server,
      `/v1/conversations/${conv}/events?limit=200&after=${found.at(-1) ?? 0}`,
    );
    assert.ok(body.data.length > 0);
    found.push(...body.data.map((e: { seq: number }) => e.seq));
    more = body.hasMore;
  }
  assert.deepEqual(
    found,
    times(messages + 1, (i) => i + 1),
  );
});

test('conversations: shorter pages with a cursor, each conversation once', async () => {
  const others = await Promise.all(
    times(60, async () => {
      const { id } = await scene.group(alice, [], { metadata: { large: 'x'.repeat(4_000) } });
      await scene.send(null, id, { text });
      return id;
    }),
  );
  const found: string[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? '' : `&cursor=${cursor}`;
    const { body } = await page(alice.api, `/v1/conversations?limit=200${query}`);
    assert.ok(body.data.length > 0 && body.data.length < 60);
    found.push(...body.data.map((c: { id: string }) => c.id));
    cursor = body.nextCursor;
  } while (cursor !== null);
  assert.deepEqual(found.toSorted(), [conv, ...others].toSorted());
});

test('users: shorter pages with a cursor, each user once', async () => {
  const ids = times(200, (i) => `large-${String(i).padStart(3, '0')}`);
  const fields = {
    name: '\u0001'.repeat(200),
    imageUrl: `https://example.com/${'x'.repeat(2_000)}`,
    metadata: { large: 'x'.repeat(4_000) },
  };
  await Promise.all(ids.map((id) => scene.server('PUT', `/v1/users/${id}`, fields)));
  const found: string[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? '' : `&cursor=${cursor}`;
    const { body } = await page(scene.server, `/v1/users?limit=200${query}`);
    found.push(...body.data.map((u: { id: string }) => u.id));
    cursor = body.nextCursor;
  } while (cursor !== null);
  assert.deepEqual(
    found.filter((id) => id.startsWith('large-')),
    ids,
  );
});

test('pages of small items are as long as asked for', async () => {
  const small = (await scene.group(alice, [])).id;
  await Promise.all(times(60, (i) => scene.send(null, small, { text: `${i}` })));
  const { body } = await page(alice.api, `/v1/conversations/${small}/messages?limit=50`);
  assert.deepEqual([body.data.length, body.hasMore], [50, true]);
});
