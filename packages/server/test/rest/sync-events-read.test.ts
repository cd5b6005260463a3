import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertError } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import { stores } from '../support/postgres.ts';
import type { Actor } from '../support/scene.ts';
import { setUp, useService } from '../support/use.ts';

const day = 86_400_000;
const cursorAt = (ms: number): string => `s1.${Math.floor(ms).toString(36)}`;

for (const store of stores)
  describe(`on the ${store.name}`, () => {
    const { sql, scene, server } = useService({ start: store.start });
    let a: Actor;
    let b: Actor;
    let stranger: Actor;
    setUp(async () => {
      stranger = await scene.actor('stranger');
    });
    /** A user may make 40 requests at once: each test has its own. */
    const pair = async () => {
      [a, b] = [await scene.actor('a'), await scene.actor('b')];
      return (await scene.group(a, [b])).id;
    };
    const read = (by: Actor, id: string, seq: unknown) =>
      by.api('POST', `/v1/conversations/${id}/read`, { seq });
    const unread = async (of: Actor, id: string): Promise<number> => (await scene.item(of, id)).unreadCount;

    describe('receipts#read', () => {
      it('receipts#read: 200 { conversationId, lastReadSeq, unreadCount }; a lower value is ignored', async () => {
        const id = await pair();
        for (let i = 0; i < 4; i++) await scene.send(a, id);
        const answers = [];
        for (const seq of [3, 2, 3, 0, 5]) answers.push((await read(b, id, seq)).body);
        const marks = answers.map((m) => [m.conversationId, m.lastReadSeq, m.unreadCount]);
        assert.deepEqual(
          marks,
          [3, 3, 3, 3, 5].map((seq) => [id, seq, 5 - seq]),
        );
        const members = (await a.api('GET', `/v1/conversations/${id}/members`)).body.data;
        assert.equal(members.find((m: { userId: string }) => m.userId === b.id).lastReadSeq, 5);
        assert.equal((await scene.events(id)).length, 5, 'a read is no event');
      });

      it('receipts#read: a mark may be the seq of any event, and unread counts messages alone', async () => {
        const id = await pair();
        await scene.send(a, id);
        await a.api('PATCH', `/v1/conversations/${id}`, { name: 'x' });
        await a.api('PATCH', `/v1/conversations/${id}`, { name: 'y' });
        await scene.send(a, id);
        assert.equal(await unread(b, id), 2);
        assert.deepEqual((await read(b, id, 1)).body.unreadCount, 2);
        assert.deepEqual((await read(b, id, 3)).body.unreadCount, 1);
        assert.deepEqual((await read(b, id, 5)).body.unreadCount, 0);
      });

      it('a mark beyond the last event counts as the last event', async () => {
        const id = await pair();
        await scene.send(a, id);
        assert.equal((await read(b, id, 1_000_000)).body.lastReadSeq, 2);
        await scene.send(a, id);
        assert.equal(await unread(b, id), 1);
      });

      it('strangers are 403, unknown 404, the server forbidden, bad seqs 400', async () => {
        const id = await pair();
        assertError(await read(stranger, id, 1), 403, 'not_member');
        assertError(await read(stranger, 'conv_x', 1), 404, 'not_found');
        assertError(await server('POST', `/v1/conversations/${id}/read`, { seq: 1 }), 403, 'forbidden');
        for (const seq of [-1, 1.5, '1', null, undefined, 2 ** 53])
          assertError(await read(b, id, seq), 400, 'invalid_request', 'seq');
      });

      it('messages#own-send: own sends and system messages; only a client’s own send moves its mark', async () => {
        const id = await pair();
        await scene.send(null, id, { text: 'system' });
        assert.deepEqual(
          [await unread(a, id), await unread(b, id)],
          [1, 1],
          'receipts#unread: a NULL sender counts',
        );
        await scene.send(null, id, { text: 'for b', senderId: b.id });
        assert.deepEqual([await unread(a, id), await unread(b, id)], [2, 1]);
        assert.equal((await scene.item(b, id)).lastReadSeq, 0);
        await scene.send(b, id);
        const item = await scene.item(b, id);
        assert.deepEqual([item.lastReadSeq, item.unreadCount, await unread(a, id)], [4, 0, 3]);
        assert.equal((await read(a, id, 2)).body.unreadCount, 2);
      });

      it('is exact whatever was edited, deleted or sent meanwhile', async () => {
        const id = await pair();
        const sent = [];
        for (let i = 0; i < 6; i++) sent.push(await scene.send(a, id, { text: `m${i}` }));
        await read(b, id, sent[2].seq);
        await a.api('PATCH', `/v1/messages/${sent[4].id}`, { text: 'edited', expectedVersion: 1 });
        assert.equal(await unread(b, id), 3, 'an edit is not unread');
        await a.api('DELETE', `/v1/messages/${sent[0].id}`);
        assert.equal(await unread(b, id), 3, 'a read one was deleted');
        await a.api('DELETE', `/v1/messages/${sent[3].id}`);
        assert.equal(await unread(b, id), 2, 'an unread one was deleted');
        await server('DELETE', `/v1/messages/${sent[3].id}?hard=true`);
        assert.equal(await unread(b, id), 2, 'a tombstone was deleted for good');
        await server('DELETE', `/v1/messages/${sent[5].id}?hard=true`);
        assert.equal(await unread(b, id), 1);
        const onBehalf = await scene.send(null, id, { text: 'x', senderId: b.id });
        await server('DELETE', `/v1/messages/${onBehalf.id}`);
        assert.equal(await unread(b, id), 1, 'an own one was deleted');
        await scene.send(b, id);
        assert.equal(await unread(b, id), 0);
      });
    });

    describe('events#read', () => {
      it('every change takes the next seq, and each record carries its data', async () => {
        const id = await pair();
        const c = await scene.actor('c');
        const message = await scene.send(a, id, { text: 'one' });
        await a.api('PATCH', `/v1/messages/${message.id}`, { text: 'two', expectedVersion: 1 });
        await a.api('POST', `/v1/conversations/${id}/members`, { userIds: [c.id] });
        await server('PATCH', `/v1/conversations/${id}/members/${c.id}`, { role: 'owner' });
        await c.api('DELETE', `/v1/conversations/${id}/members/${c.id}`);
        await a.api('PATCH', `/v1/conversations/${id}`, { name: 'N' });
        const gone = await scene.send(b, id, { text: 'gone' });
        await b.api('DELETE', `/v1/messages/${gone.id}`);
        const { body } = await b.api('GET', `/v1/conversations/${id}/events`);
        assert.equal(body.hasMore, false);
        assert.deepEqual(
          body.data.map((e: { seq: number; type: string }) => [e.seq, e.type]),
          [
            [1, 'conversation.created'],
            [2, 'message.new'],
            [3, 'message.updated'],
            [4, 'member.added'],
            [5, 'member.updated'],
            [6, 'member.removed'],
            [7, 'conversation.updated'],
            [8, 'message.new'],
            [9, 'message.deleted'],
          ],
        );
        assert.equal(body.data[0].conversation.id, id);
        assert.deepEqual(
          [body.data[2].message.seq, body.data[2].message.version],
          [2, 2],
          'events#change-seq',
        );
        assert.equal(
          body.data[7].message.text,
          null,
          'events#deleted-content: no content of a deleted message',
        );
        assert.equal((await server('GET', `/v1/conversations/${id}`)).body.lastSeq, 9);
        assert.deepEqual(
          (await server('GET', `/v1/conversations/${id}/events`)).body,
          body,
          'the server may read',
        );
      });

      it('events#deleted-content: events of hard-deleted messages keep the stream whole', async () => {
        const id = await pair();
        const message = await scene.send(a, id, { text: 'secret' });
        await a.api('PATCH', `/v1/messages/${message.id}`, { text: 'secret too', expectedVersion: 1 });
        await server('DELETE', `/v1/messages/${message.id}?hard=true`);
        const events = await scene.events(id);
        assert.deepEqual(
          events.map((e) => e.seq),
          [1, 2, 3, 4],
        );
        assert.ok(!JSON.stringify(events).includes('secret'));
        assert.deepEqual(events[1].message, events[2].message);
      });

      it('pages by after and limit; past the end it is empty; 403, 404 and 400 as elsewhere', async () => {
        const id = await pair();
        for (let i = 0; i < 4; i++) await scene.send(a, id);
        const page = async (query: string) => {
          const { body } = await b.api('GET', `/v1/conversations/${id}/events${query}`);
          return [body.data.map((e: { seq: number }) => e.seq), body.hasMore];
        };
        assert.deepEqual(await page('?after=1&limit=2'), [[2, 3], true]);
        assert.deepEqual(await page('?after=3&limit=2'), [[4, 5], false]);
        assert.deepEqual(await page('?after=5'), [[], false]);
        assert.deepEqual(await page('?after=500'), [[], false]);
        const get = (by: Api, of: string, query = '') => by('GET', `/v1/conversations/${of}/events${query}`);
        assertError(await get(stranger.api, id), 403, 'not_member');
        assertError(await get(stranger.api, 'conv_x'), 404, 'not_found');
        for (const [param, value] of [
          ['limit', '0'],
          ['limit', '201'],
          ['after', '-1'],
          ['after', 'x'],
        ])
          assertError(await get(b.api, id, `?${param}=${value}`), 400, 'invalid_request', param);
      });

      it('events#read: before pages back, before and after together bound a page; always ascending', async () => {
        const id = await pair();
        for (let i = 0; i < 4; i++) await scene.send(a, id);
        const page = async (query: string) => {
          const { body } = await b.api('GET', `/v1/conversations/${id}/events${query}`);
          return [body.data.map((e: { seq: number }) => e.seq), body.hasMore];
        };
        assert.deepEqual(await page('?before=6&limit=2'), [[4, 5], true]);
        assert.deepEqual(await page('?before=4&limit=3'), [[1, 2, 3], false]);
        assert.deepEqual(await page('?before=900&limit=1'), [[5], true]);
        assert.deepEqual(await page('?before=1'), [[], false]);
        assert.deepEqual(await page('?before=0'), [[], false]);
        assert.deepEqual(await page('?after=1&before=5&limit=2'), [[2, 3], true]);
        assert.deepEqual(await page('?after=2&before=5'), [[3, 4], false]);
        assert.deepEqual(await page('?after=4&before=3'), [[], false]);
        for (const value of ['-1', 'x'])
          assertError(
            await b.api('GET', `/v1/conversations/${id}/events?before=${value}`),
            400,
            'invalid_request',
            'before',
          );
      });

      it('events#resync-required: a gap of 1,000 events is read, one more is 410 resync_required', async () => {
        const { id } = await scene.group(null, [stranger]);
        for (let i = 0; i < 10; i++)
          await Promise.all(Array.from({ length: 100 }, () => scene.send(null, id, { text: 'x' })));
        const get = (after: number) =>
          server('GET', `/v1/conversations/${id}/events?after=${after}&limit=200`);
        const within = await get(1);
        assert.deepEqual([within.body.data.length, within.body.hasMore], [200, true]);
        const answer = await get(0);
        assertError(answer, 410, 'resync_required');
        assert.equal(answer.body.error.type, 'conflict');
        assert.equal(typeof answer.body.error.retryAfterMs, 'number');
      });

      it('below the buffer floor it is 410 resync_required, in time and when rows are gone', async () => {
        const id = await pair();
        for (let i = 0; i < 3; i++) await scene.send(a, id);
        await a.api('PATCH', `/v1/conversations/${id}`, { name: 'x' });
        const get = (after: number) => b.api('GET', `/v1/conversations/${id}/events?after=${after}`);
        const age = (table: string, where: string) =>
          sql(
            `UPDATE ${table} SET created_at = now() - interval '8 days'
             WHERE conv = (SELECT no FROM conversations WHERE id = $1) AND ${where}`,
            [id],
          );
        await age('messages', 'seq <= 2');
        await age('events', 'seq <= 2');
        for (const after of [0, 1]) assertError(await get(after), 410, 'resync_required');
        assert.deepEqual(
          (await get(2)).body.data.map((e: { seq: number }) => e.seq),
          [3, 4, 5],
        );
        const back = (before: number) => b.api('GET', `/v1/conversations/${id}/events?before=${before}`);
        const { body } = await back(6);
        assert.deepEqual(
          [body.data.map((e: { seq: number }) => e.seq), body.hasMore],
          [[3, 4, 5], true],
          'back to the floor, and it says that there was more',
        );
        assertError(await back(3), 410, 'resync_required');
        await sql(
          'DELETE FROM events WHERE seq = 5 AND conv = (SELECT no FROM conversations WHERE id = $1)',
          [id],
        );
        assertError(await get(4), 410, 'resync_required');
        assert.equal((await b.api('GET', `/v1/conversations/${id}/messages`)).body.data.length, 3);
      });
    });

    describe('events#sync', () => {
      /** As if everything of the user had last happened an hour ago. */
      const anHourAgo = (user: Actor) =>
        sql(
          `WITH mine AS (SELECT m.env, m.conv FROM members m JOIN users u ON u.env = m.env AND u.no = m.usr WHERE u.id = $1),
           c AS (UPDATE conversations c SET last_activity_at = now() - interval '1 hour', last_activity_step = activity_step(now() - interval '1 hour')
             FROM mine WHERE c.env = mine.env AND c.no = mine.conv)
           UPDATE members m SET last_activity_step = activity_step(now() - interval '1 hour'), own_activity_step = activity_step(now() - interval '1 hour'),
             own_activity_at = now() - interval '1 hour' FROM mine WHERE m.env = mine.env AND m.conv = mine.conv`,
          [user.id],
        );
      const sync = async (by: Actor, cursor: string | null) =>
        (await by.api('POST', '/v1/sync', { cursor })).body;
      const found = (result: { conversations: { id: string }[] }) => result.conversations.map((c) => c.id);

      it('events#sync-null: cursor null returns every conversation, fullReload false', async () => {
        const id = await pair();
        const second = (await scene.group(null, [b])).id;
        await scene.send(a, id);
        await anHourAgo(b);
        const result = await sync(b, null);
        assert.deepEqual([...found(result)].sort(), [id, second].sort());
        assert.deepEqual(
          result.conversations.find((c: { id: string }) => c.id === id),
          { id, lastSeq: 2, unreadCount: 1 },
        );
        assert.deepEqual([result.removed, result.fullReload], [[], false]);
        assert.deepEqual(found(await sync(stranger, null)).includes(id), false);
      });

      it('events#sync: compares activity with the cursor minus 5 s; repeats are normal', async () => {
        const id = await pair();
        await anHourAgo(b);
        const { cursor } = await sync(b, null);
        assert.deepEqual(found(await sync(b, cursor)), []);
        await scene.send(a, id);
        assert.deepEqual(found(await sync(b, cursor)), [id]);
        const at = Date.now();
        for (const [ageMs, expected] of [
          [0, [id]],
          [4_999, [id]],
          [5_001, []],
        ] as const) {
          const active = new Date(at - ageMs);
          await sql('UPDATE conversations SET last_activity_at = $2 WHERE id = $1', [id, active]);
          assert.deepEqual(found(await sync(b, cursorAt(at))), expected, `${ageMs} ms before the cursor`);
        }
      });

      it('events#sync-own: a user’s own read or mute counts as activity for that user alone', async () => {
        const id = await pair();
        await scene.send(a, id);
        for (const act of [() => read(b, id, 2), () => b.api('PUT', `/v1/conversations/${id}/mute`)]) {
          await anHourAgo(b);
          const { cursor } = await sync(b, null);
          assert.deepEqual(found(await sync(b, cursor)), []);
          assert.equal((await act()).status, 200);
          assert.deepEqual(found(await sync(b, cursor)), [id]);
          assert.deepEqual(found(await sync(a, cursor)), []);
        }
      });

      it('lists conversations left, taken away or deleted since the cursor under removed', async () => {
        const id = await pair();
        const [left, deleted] = [(await scene.group(a, [b])).id, (await scene.group(a, [b])).id];
        const { cursor } = await sync(b, null);
        assert.deepEqual((await sync(b, cursor)).removed, []);
        await a.api('DELETE', `/v1/conversations/${id}/members/${b.id}`);
        await b.api('DELETE', `/v1/conversations/${left}/members/${b.id}`);
        await server('DELETE', `/v1/conversations/${deleted}`);
        const result = await sync(b, cursor);
        assert.deepEqual([...result.removed].sort(), [id, left, deleted].sort());
        assert.deepEqual(result.conversations, []);
        await a.api('POST', `/v1/conversations/${id}/members`, { userIds: [b.id] });
        const again = await sync(b, cursor);
        assert.deepEqual([again.removed.includes(id), found(again)], [false, [id]]);
        await sql("UPDATE departures SET at = at - interval '1 hour'");
        assert.deepEqual((await sync(b, result.cursor)).removed, []);
      });

      it('events#sync-old: a cursor older than 30 days gives fullReload and everything', async () => {
        const id = await pair();
        await anHourAgo(b);
        const old = await sync(b, cursorAt(Date.now() - 30 * day - 60_000));
        assert.deepEqual([old.fullReload, found(old), old.removed], [true, [id], []]);
        const young = await sync(b, cursorAt(Date.now() - 30 * day + 60_000));
        assert.deepEqual([young.fullReload, found(young)], [false, [id]]);
        const future = await sync(b, cursorAt(Date.now() + day));
        assert.deepEqual([future.fullReload, found(future)], [true, [id]], 'this store was never so far');
      });

      it('a made-up or missing cursor is 400; unknown fields are refused', async () => {
        await pair();
        const post = (body: unknown) => b.api('POST', '/v1/sync', body);
        for (const cursor of ['x', '', 's1.', 's1.-5', 's2.abc', 5, undefined])
          assertError(await post({ cursor }), 400, 'invalid_request', 'cursor');
        assertError(await post({ cursor: null, full: true }), 400, 'unknown_field', 'full');
        assertError(await post(undefined), 400, 'invalid_request');
      });
    });
  });
