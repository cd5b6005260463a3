import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { assertError } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import { stores } from '../support/postgres.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';

for (const store of stores)
  describe(`on the ${store.name}`, () => {
    const { sql, scene, server } = useService({ start: store.start });
    let owner: Actor;
    let author: Actor;
    let reader: Actor;
    let stranger: Actor;
    let conv: string;
    // New ones each time: a user's requests are limited.
    beforeEach(async () => {
      const names = ['owner', 'author', 'reader', 'stranger'];
      [owner, author, reader, stranger] = (await Promise.all(names.map((n) => scene.actor(n)))) as [
        Actor,
        Actor,
        Actor,
        Actor,
      ];
      conv = (await scene.group(owner, [author, reader])).id;
    });

    const read = (id: string, by = server) => by('GET', `/v1/messages/${id}`);
    const edit = (by: Api, id: string, body: unknown) => by('PATCH', `/v1/messages/${id}`, body);
    const remove = (by: Api, id: string, query = '') => by('DELETE', `/v1/messages/${id}${query}`);
    const lastSeq = async (of = conv): Promise<number> =>
      (await server('GET', `/v1/conversations/${of}`)).body.lastSeq;

    describe('messages#edit: PATCH', () => {
      it('messages#edit: version n+1, editedAt set, the seq stays; the event has its own (events#change-seq)', async () => {
        const sent = await scene.send(author, conv, { text: 'one', metadata: { a: 1 } });
        const { status, body } = await edit(author.api, sent.id, { text: 'two', expectedVersion: 1 });
        assert.equal(status, 200);
        assert.deepEqual({ ...body, editedAt: null }, { ...sent, text: 'two', version: 2 });
        assert.ok(body.editedAt >= sent.createdAt);
        const event = (await scene.events(conv, sent.seq)).at(-1);
        assert.deepEqual([event.type, event.message], ['message.updated', body]);
        assert.equal(event.seq, await lastSeq());
        const second = await edit(server, sent.id, { metadata: { b: 2 }, expectedVersion: 2 });
        assert.deepEqual([second.body.text, second.body.metadata, second.body.version], ['two', { b: 2 }, 3]);
      });

      it('messages#edit: a version that is not the current one is 409 version_conflict and changes nothing', async () => {
        const { id } = await scene.send(author, conv, { text: 'one' });
        for (const expectedVersion of [2, 99]) {
          const answer = await edit(author.api, id, { text: 'x', expectedVersion });
          assertError(answer, 409, 'version_conflict');
          assert.equal(answer.body.error.type, 'conflict');
        }
        const answers = await Promise.all(
          Array.from({ length: 10 }, (_, i) => edit(server, id, { text: `w${i}`, expectedVersion: 1 })),
        );
        assert.equal(answers.filter((a) => a.status === 200).length, 1);
        const now = (await read(id)).body;
        assert.deepEqual([now.version, now.text], [2, answers.find((a) => a.status === 200)!.body.text]);
      });

      it('author and server alone; the owner is forbidden; who left is not_member', async () => {
        const [leaver, two] = [await scene.actor('leaver'), await scene.group(owner, [])];
        await server('POST', `/v1/conversations/${two.id}/members`, { userIds: [leaver.id] });
        const { id } = await scene.send(leaver, two.id);
        const body = { text: 'x', expectedVersion: 1 };
        assertError(await edit(owner.api, id, body), 403, 'forbidden');
        assertError(await edit(stranger.api, id, body), 403, 'not_member');
        await leaver.api('DELETE', `/v1/conversations/${two.id}/members/${leaver.id}`);
        assertError(await edit(leaver.api, id, body), 403, 'not_member');
        assertError(await edit(server, 'msg_x', body), 404, 'not_found');
        const system = await scene.send(null, two.id);
        assertError(await edit(owner.api, system.id, body), 403, 'forbidden');
      });

      it('limits and bad bodies', async () => {
        const { id } = await scene.send(author, conv);
        const patch = (body: object) => edit(author.api, id, body);
        assertError(await patch({ expectedVersion: 1 }), 400, 'invalid_request');
        assertError(await patch({ text: 'x' }), 400, 'invalid_request', 'expectedVersion');
        assertError(
          await patch({ text: 'x', expectedVersion: 0 }),
          400,
          'invalid_request',
          'expectedVersion',
        );
        assertError(await patch({ text: '', expectedVersion: 1 }), 400, 'invalid_request', 'text');
        assertError(await patch({ text: 'a\0', expectedVersion: 1 }), 400, 'invalid_request', 'text');
        assertError(
          await patch({ text: 'x'.repeat(5_001), expectedVersion: 1 }),
          422,
          'text_too_long',
          'text',
        );
        const metadata = { k: 'x'.repeat(4_089) };
        assertError(await patch({ metadata, expectedVersion: 1 }), 422, 'metadata_too_large', 'metadata');
        assertError(
          await patch({ senderId: 'x', text: 'x', expectedVersion: 1 }),
          400,
          'unknown_field',
          'senderId',
        );
        assert.equal((await read(id)).body.version, 1);
        assert.equal((await patch({ text: 'x'.repeat(5_000), expectedVersion: 1 })).status, 200);
      });

      it('an edit may not empty the message', async () => {
        const { id } = await scene.send(null, conv, { metadata: { a: 1 } });
        assertError(
          await edit(server, id, { metadata: {}, expectedVersion: 1 }),
          400,
          'invalid_request',
          'metadata',
        );
        assert.equal((await edit(server, id, { text: 'x', metadata: {}, expectedVersion: 1 })).status, 200);
      });

      it('messages#edit: editing a tombstone is 404', async () => {
        const { id } = await scene.send(author, conv);
        await remove(author.api, id);
        for (const by of [author.api, server])
          assertError(await edit(by, id, { text: 'x', expectedVersion: 1 }), 404, 'not_found');
      });
    });

    describe('messages#delete: DELETE', () => {
      it('author, owner and server delete softly: 200 with the tombstone; again 200 and no event', async () => {
        for (const by of [author.api, owner.api, server]) {
          const sent = await scene.send(author, conv, { text: 'secret words', metadata: { a: 1 } });
          const { status, body } = await remove(by, sent.id);
          assert.equal(status, 200);
          const { id, seq, senderId } = sent;
          assert.partialDeepStrictEqual(body, { id, seq, senderId, text: null, attachments: [] });
          assert.match(body.deletedAt, /Z$/);
          assert.equal(body.metadata, undefined);
          const seqAfter = await lastSeq();
          assert.deepEqual((await remove(by, sent.id)).body, body);
          assert.deepEqual((await read(sent.id, reader.api)).body, body);
          assert.equal(await lastSeq(), seqAfter);
          const events = await scene.events(conv, sent.seq - 1);
          assert.deepEqual(
            events.map((e) => e.type),
            ['message.new', 'message.deleted'],
          );
          assert.deepEqual([events[0].message.text, events[0].message.deletedAt], [null, body.deletedAt]);
          assert.deepEqual(
            [events[1].id, events[1].deletedAt, events[1].hard],
            [sent.id, body.deletedAt, false],
          );
        }
      });

      it('others may not: a member is forbidden, a stranger not_member', async () => {
        const { id } = await scene.send(author, conv);
        assertError(await remove(reader.api, id), 403, 'forbidden');
        assertError(await remove(stranger.api, id), 403, 'not_member');
        assertError(await remove(server, 'msg_x'), 404, 'not_found');
        assert.equal((await read(id)).body.text, 'hello');
      });

      it('hard=true is for the server only: 204, then 404 and gone, live or tombstone', async () => {
        const [live, dead] = [await scene.send(author, conv), await scene.send(author, conv)];
        assertError(await remove(author.api, live.id, '?hard=true'), 403, 'forbidden', 'hard');
        assert.equal((await read(live.id)).body.text, 'hello');
        await remove(author.api, dead.id);
        for (const { id, seq } of [live, dead]) {
          assert.equal((await remove(server, id, '?hard=true')).status, 204);
          assertError(await read(id), 404, 'not_found');
          assertError(await remove(server, id, '?hard=true'), 404, 'not_found');
          const event = (await scene.events(conv, seq)).at(-1);
          assert.deepEqual([event.type, event.id, event.hard], ['message.deleted', id, true]);
        }
        const soft = await scene.send(author, conv);
        assert.equal((await remove(server, soft.id, '?hard=false')).status, 200);
        assertError(await remove(server, soft.id, '?hard=maybe'), 400, 'invalid_request', 'hard');
        const { rows } = {
          rows: await sql('SELECT text, metadata FROM messages WHERE id = $1', [live.id]),
        };
        assert.deepEqual(rows, [{ text: null, metadata: null }], 'no content stays in the store');
      });
    });
  });
