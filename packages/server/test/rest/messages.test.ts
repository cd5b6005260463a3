import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, it } from 'node:test';
import { assertError } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import { stores } from '../support/postgres.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';

for (const store of stores)
  describe(`on the ${store.name}`, () => {
    const { scene, server } = useService({ start: store.start });
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

    const send = (by: Api, body: unknown, to = conv) => by('POST', `/v1/conversations/${to}/messages`, body);
    const read = (id: string, by = server) => by('GET', `/v1/messages/${id}`);
    const edit = (by: Api, id: string, body: unknown) => by('PATCH', `/v1/messages/${id}`, body);
    const remove = (by: Api, id: string, query = '') => by('DELETE', `/v1/messages/${id}${query}`);
    const lastSeq = async (of = conv): Promise<number> =>
      (await server('GET', `/v1/conversations/${of}`)).body.lastSeq;

    describe('messages#send: POST', () => {
      it('answers 201 with the message, which members and the server read back', async () => {
        const before = await lastSeq();
        const fields = { text: 'Hi 👋', metadata: { mood: 'good' } };
        const { status, body } = await send(author.api, { clientMsgId: randomUUID(), ...fields });
        assert.equal(status, 201);
        assert.match(body.id, /^msg_[0-9a-hjkmnp-tv-z]{26}$/);
        assert.match(body.createdAt, /\.\d{3}Z$/);
        assert.deepEqual(body, {
          id: body.id,
          conversationId: conv,
          seq: before + 1,
          senderId: author.id,
          ...fields,
          replyTo: null,
          attachments: [],
          version: 1,
          createdAt: body.createdAt,
          editedAt: null,
          deletedAt: null,
        });
        for (const by of [reader.api, server]) assert.deepEqual((await read(body.id, by)).body, body);
        assertError(await read(body.id, stranger.api), 403, 'not_member');
        assertError(await read('msg_x', stranger.api), 404, 'not_found');
      });

      it('messages#content: text has 1 to 5,000 code points; 5,000 emoji are legal (messages#content)', async () => {
        for (const text of ['x', 'x'.repeat(5_000), '😀'.repeat(5_000)])
          assert.equal((await scene.send(null, conv, { text })).text, text);
        for (const text of ['x'.repeat(5_001), '😀'.repeat(5_001)])
          assertError(await send(server, { text }), 422, 'text_too_long', 'text');
        for (const text of ['', 5]) assertError(await send(server, { text }), 400, 'invalid_request', 'text');
      });

      it('api#metadata: metadata is at most 4 KB and 5 levels deep (api#validation)', async () => {
        const nested = (depth: number): object => (depth === 1 ? {} : { a: nested(depth - 1) });
        for (const metadata of [{ k: 'x'.repeat(4_088) }, nested(5)])
          assert.deepEqual((await scene.send(null, conv, { text: 'x', metadata })).metadata, metadata);
        for (const metadata of [{ k: 'x'.repeat(4_089) }, nested(6)])
          assertError(await send(server, { text: 'x', metadata }), 422, 'metadata_too_large', 'metadata');
      });

      it('messages#content: a message needs text, an attachment or non-empty metadata', async () => {
        assert.equal((await scene.send(null, conv, { metadata: { a: 1 } })).text, null);
        assert.equal((await scene.send(null, conv, { text: null, metadata: { a: 1 } })).text, null);
        for (const body of [{}, { metadata: {} }, { text: null }, { attachments: [] }])
          assertError(await send(server, body), 400, 'invalid_request', 'text');
      });

      it('api#validation: NUL characters are 400 and fail nobody beside them (api#batches)', async () => {
        const before = await lastSeq();
        const answers = await Promise.all(
          Array.from({ length: 12 }, (_, i) => send(server, { text: i % 2 ? `ok ${i}` : `bad \0 ${i}` })),
        );
        answers.forEach((a, i) => assert.equal(a.status, i % 2 ? 201 : 400));
        assertError(answers[0]!, 400, 'invalid_request', 'text');
        assert.equal(await lastSeq(), before + 6);
        assertError(await send(server, { text: 'x', metadata: { 'a\0': 1 } }), 400, 'invalid_request');
      });

      it('a broken reference in a batch fails alone (api#batches)', async () => {
        const before = await lastSeq();
        const answers = await Promise.all(
          Array.from({ length: 12 }, (_, i) =>
            send(server, { text: 'x', ...(i % 3 ? {} : { replyTo: 'msg_x' }) }),
          ),
        );
        answers.forEach((a, i) => assert.equal(a.status, i % 3 ? 201 : 400));
        const seqs = answers.filter((a) => a.status === 201).map((a) => a.body.seq);
        assert.deepEqual(
          seqs.sort((x, y) => x - y),
          Array.from({ length: 8 }, (_, i) => before + 1 + i),
        );
      });

      it('a server sends as a member, or as the system; others are 403 not_member', async () => {
        assert.equal((await scene.send(null, conv, { text: 'x', senderId: author.id })).senderId, author.id);
        assert.equal((await scene.send(null, conv, { text: 'x' })).senderId, null);
        for (const senderId of [stranger.id, 'nobody-here'])
          assertError(await send(server, { text: 'x', senderId }), 403, 'not_member');
        assertError(await send(server, { text: 'x', senderId: 'nobody-here' }, 'conv_x'), 404, 'not_found');
        assertError(await server('GET', '/v1/users/nobody-here'), 404, 'not_found');
        const named = { text: 'x', clientMsgId: 'c', senderId: author.id };
        assertError(await send(author.api, named), 403, 'forbidden', 'senderId');
      });

      it('a stranger is 403 not_member, an unknown conversation 404', async () => {
        const body = { text: 'x', clientMsgId: 'c' };
        assertError(await send(stranger.api, body), 403, 'not_member');
        for (const by of [stranger.api, server])
          assertError(await send(by, body, 'conv_x'), 404, 'not_found');
      });

      it('messages#reply: replyTo must be a message of the same conversation', async () => {
        const first = await scene.send(author, conv);
        assert.equal((await scene.send(reader, conv, { text: 're', replyTo: first.id })).replyTo, first.id);
        const elsewhere = await scene.send(null, (await scene.group(null, [author])).id);
        const gone = await scene.send(null, conv);
        await remove(server, gone.id, '?hard=true');
        for (const replyTo of [elsewhere.id, gone.id, 'msg_x'])
          assertError(await send(server, { text: 'x', replyTo }), 400, 'invalid_request', 'replyTo');
      });

      it('uploads#use: an attachment that is not ready is 422; at most 10', async () => {
        assertError(await send(server, { text: 'x', attachments: ['att_x'] }), 422, 'attachment_not_ready');
        const attachments = Array.from({ length: 11 }, (_, i) => `att_${i}`);
        assertError(await send(server, { attachments }), 400, 'invalid_request', 'attachments');
      });

      it('unknown fields are 400 unknown_field', async () => {
        assertError(await send(server, { text: 'x', subject: 'y' }), 400, 'unknown_field', 'subject');
      });
    });

    describe('messages#dedup: clientMsgId', () => {
      it('is 1 to 128 characters, required from clients, optional from servers', async () => {
        assert.equal((await send(author.api, { text: 'x', clientMsgId: 'y'.repeat(128) })).status, 201);
        for (const clientMsgId of ['', 'y'.repeat(129), undefined, 7])
          assertError(
            await send(author.api, { text: 'x', clientMsgId }),
            400,
            'invalid_request',
            'clientMsgId',
          );
        assert.equal((await send(server, { text: 'x' })).status, 201);
      });

      it('a duplicate returns the original as it is now with 201, and commits nothing', async () => {
        const body = { text: 'once', clientMsgId: randomUUID() };
        const first = (await send(author.api, body)).body;
        const seq = await lastSeq();
        const again = await send(author.api, { ...body, text: 'other' });
        assert.deepEqual([again.status, again.body], [201, first]);
        await edit(author.api, first.id, { text: 'edited', expectedVersion: 1 });
        assert.equal((await send(author.api, body)).body.text, 'edited');
        await remove(author.api, first.id);
        const tombstone = await send(author.api, body);
        assert.deepEqual([tombstone.status, tombstone.body.id, tombstone.body.text], [201, first.id, null]);
        await remove(server, first.id, '?hard=true');
        const stub = await send(author.api, body);
        assert.deepEqual([stub.status, stub.body.id, stub.body.text], [201, first.id, null]);
        assert.equal(await lastSeq(), seq + 3);
      });

      it('to a sender who was removed since, a duplicate tells what was acknowledged and nothing more', async () => {
        const body = { text: 'mine', clientMsgId: randomUUID(), metadata: { a: 1 } };
        const sent = (await send(author.api, body)).body;
        const socket = await scene.online(author);
        assert.equal((await server('DELETE', `/v1/conversations/${conv}/members/${author.id}`)).status, 204);
        const edit = { text: 'changed by the server', expectedVersion: 1 };
        assert.equal((await server('PATCH', `/v1/messages/${sent.id}`, edit)).status, 200);
        const expected = { ...sent, text: null, metadata: {} };
        const repeated = await send(author.api, body);
        assert.equal(repeated.status, 201);
        assert.deepEqual(repeated.body, expected);
        assert.equal((await server('DELETE', `/v1/messages/${sent.id}?hard=true`)).status, 204);
        assert.deepEqual((await send(author.api, body)).body, expected);
        const { clientMsgId, text } = body;
        const { id, seq, createdAt } = sent;
        assert.deepEqual(await socket.request('message.send', { cid: conv, clientMsgId, text }), {
          clientMsgId,
          id,
          seq,
          createdAt,
        });
        assertError(await send(author.api, { text: 'x', clientMsgId: randomUUID() }), 403, 'not_member');
        await socket.close();
      });

      it('deduplicates by conversation and sender; the system is a sender too (messages#dedup)', async () => {
        const clientMsgId = randomUUID();
        const other = (await scene.group(null, [author])).id;
        const sent = [
          await send(author.api, { text: 'x', clientMsgId }),
          await send(reader.api, { text: 'x', clientMsgId }),
          await send(author.api, { text: 'x', clientMsgId }, other),
          await send(server, { text: 'x', clientMsgId }),
        ].map((a) => a.body.id);
        assert.equal(new Set(sent).size, 4);
        assert.equal((await send(server, { text: 'x', clientMsgId })).body.id, sent[3]);
        const onBehalf = await send(server, { text: 'x', clientMsgId, senderId: author.id });
        assert.equal(onBehalf.body.id, sent[0]);
      });

      it('concurrent duplicates commit once', async () => {
        const before = await lastSeq();
        const body = { text: 'race', clientMsgId: randomUUID() };
        const answers = await Promise.all(Array.from({ length: 15 }, () => send(server, body)));
        assert.equal(new Set(answers.map((a) => a.body.id)).size, 1);
        assert.equal(await lastSeq(), before + 1);
      });
    });

    describe('messages#history: GET history', () => {
      it('descends by seq, pages both ways, says hasMore; tombstones stay, hard deletes are gone', async () => {
        const { id } = await scene.group(null, [author, reader]);
        const sent = [];
        for (let i = 0; i < 6; i++) sent.push(await scene.send(null, id, { text: `m${i}` }));
        await remove(server, sent[1].id);
        await remove(server, sent[2].id, '?hard=true');
        const page = async (query: string) => {
          const { body } = await reader.api('GET', `/v1/conversations/${id}/messages${query}`);
          return [body.data.map((m: { seq: number }) => m.seq), body.hasMore];
        };
        assert.deepEqual(await page(''), [[7, 6, 5, 3, 2], false]);
        assert.deepEqual(await page('?limit=2'), [[7, 6], true]);
        assert.deepEqual(await page('?before=6&limit=2'), [[5, 3], true]);
        assert.deepEqual(await page('?before=3&limit=2'), [[2], false]);
        assert.deepEqual(await page('?after=2&limit=2'), [[5, 3], true]);
        assert.deepEqual(await page('?after=5&limit=2'), [[7, 6], false]);
        assert.deepEqual(await page('?after=7'), [[], false]);
        assert.deepEqual(await page('?after=0&limit=5'), [[7, 6, 5, 3, 2], false]);
        assert.deepEqual(await page('?after=2&before=7'), [[6, 5, 3], false]);
        const [tombstone] = (await reader.api('GET', `/v1/conversations/${id}/messages?before=4&limit=1`))
          .body.data;
        assert.deepEqual([tombstone.id, tombstone.text, tombstone.attachments], [sent[1].id, null, []]);
        assert.equal(tombstone.metadata, undefined);
      });

      it('strangers are 403, unknown 404, bad queries 400', async () => {
        assertError(await stranger.api('GET', `/v1/conversations/${conv}/messages`), 403, 'not_member');
        assertError(await server('GET', '/v1/conversations/conv_x/messages'), 404, 'not_found');
        for (const [param, value] of [
          ['limit', '0'],
          ['limit', '201'],
          ['before', '-1'],
          ['after', 'x'],
          ['before', '99999999999999999999'],
        ])
          assertError(
            await server('GET', `/v1/conversations/${conv}/messages?${param}=${value}`),
            400,
            'invalid_request',
            param,
          );
        assertError(
          await server('GET', `/v1/conversations/${conv}/messages?cursor=x`),
          400,
          'unknown_field',
          'cursor',
        );
      });

      it('messages#history: pages of 50 by default and 200 at most', async () => {
        const { id } = await scene.group(null, [author]);
        await Promise.all(Array.from({ length: 201 }, () => scene.send(null, id, { text: 'x' })));
        const count = async (query: string) =>
          (await server('GET', `/v1/conversations/${id}/messages${query}`)).body.data.length;
        assert.deepEqual([await count(''), await count('?limit=1'), await count('?limit=200')], [50, 1, 200]);
      });
    });
  });
