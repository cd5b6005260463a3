import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { assertError } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import type { Actor } from '../support/scene.ts';
import { upload } from '../storage/suite.ts';
import { document, picture, ready, transfer } from './files.ts';
import { useService } from '../support/use.ts';

describe('attachments of messages (uploads#use)', () => {
  const { service, scene, sql } = useService();
  let alice: Actor;
  let bob: Actor;
  let conv: string;

  /** New users each time: nobody comes near 30 uploads a minute. */
  const begin = async () => {
    [alice, bob] = await Promise.all([scene.actor('alice'), scene.actor('bob')]);
    conv = (await scene.group(alice, [alice, bob])).id;
  };
  const post = (from: Actor | null, fields: Record<string, unknown>, conversation = conv) =>
    (from?.api ?? scene.server)('POST', `/v1/conversations/${conversation}/messages`, {
      clientMsgId: randomUUID(),
      ...fields,
    });
  const refused = async (from: Actor | null, fields: Record<string, unknown>, conversation = conv) =>
    assertError(await post(from, fields, conversation), 422, 'attachment_not_ready', 'attachments');

  test('they appear in the message, the history and the events, in the order given', async () => {
    await begin();
    const [pdf, image] = [await ready(alice.api, conv, document), await ready(alice.api, conv)];
    const sent = await scene.send(alice, conv, { attachments: [image, pdf] });
    assert.equal(sent.text, null);
    assert.deepEqual(sent.attachments, [
      { id: image, name: 'cat.png', size: 95, mimeType: 'image/png', width: 7, height: 5, status: 'ready' },
      {
        id: pdf,
        name: document.filename,
        size: document.body.length,
        mimeType: 'application/pdf',
        status: 'ready',
      },
    ]);
    assert.deepEqual((await bob.api('GET', `/v1/messages/${sent.id}`)).body, sent);
    const { body: history } = await bob.api('GET', `/v1/conversations/${conv}/messages`);
    assert.deepEqual(history.data[0], sent);
    assert.deepEqual((await scene.events(conv)).at(-1).message, sent);
    const edit = { text: 'look', expectedVersion: 1 };
    const { body: edited } = await alice.api('PATCH', `/v1/messages/${sent.id}`, edit);
    assert.deepEqual(edited.attachments, sent.attachments, 'an edit keeps them');
  });

  test('uploads#voice: length and waveform of a voice note go from the announcement into the message, as given', async () => {
    await begin();
    const body = Buffer.concat([Buffer.from('OggS'), Buffer.alloc(60)]);
    const fields = {
      conversationId: conv,
      filename: 'note.ogg',
      size: body.length,
      contentType: 'audio/ogg',
    };
    const announce = (more: object) => alice.api('POST', '/v1/uploads', { ...fields, ...more });
    const bytes = (n: number): string => Buffer.alloc(n, 0x5a).toString('base64');
    const wrong: [string, object][] = [
      ['durationMs', { durationMs: 0 }],
      ['durationMs', { durationMs: 3_600_001 }],
      ['durationMs', { durationMs: 1.5 }],
      ['waveform', { waveform: '' }],
      ['waveform', { waveform: bytes(129) }],
      ['waveform', { waveform: bytes(131) }],
      ['waveform', { waveform: 'abc' }],
      ['waveform', { waveform: '****' }],
      ['waveform', { waveform: 'ab-_' }],
      ['durationMs', { durationMs: 1_000, contentType: 'image/png', filename: 'note.png' }],
      ['waveform', { waveform: bytes(1), contentType: 'video/webm', filename: 'note.webm' }],
    ];
    for (const [param, more] of wrong) assertError(await announce(more), 400, 'invalid_request', param);
    const rows = await sql(
      'SELECT 1 FROM attachments a JOIN conversations c ON c.env = a.env AND c.no = a.conv WHERE c.id = $1',
      [conv],
    );
    assert.equal(rows.length, 0, 'nothing was written');
    for (const voice of [
      { durationMs: 3_600_000, waveform: bytes(128) },
      { durationMs: 1 },
      { waveform: bytes(1) },
    ]) {
      const { body: ticket } = await announce(voice);
      assert.equal((await upload(ticket.upload, body)).status, 201);
      const done = (await alice.api('POST', `/v1/uploads/${ticket.attachmentId}/complete`)).body;
      const expected = {
        id: ticket.attachmentId,
        name: 'note.ogg',
        size: body.length,
        mimeType: 'audio/ogg',
        ...voice,
        status: 'ready',
      };
      assert.deepEqual(done, expected);
      const sent = await scene.send(alice, conv, { attachments: [ticket.attachmentId] });
      assert.deepEqual(sent.attachments, [expected]);
      assert.deepEqual((await bob.api('GET', `/v1/messages/${sent.id}`)).body.attachments, [expected]);
    }
  });

  test('a repeated clientMsgId answers with the original and its attachments', async () => {
    await begin();
    const fields = { clientMsgId: randomUUID(), attachments: [await ready(alice.api, conv)] };
    const first = await post(alice, fields);
    const again = await post(alice, fields);
    assert.equal(first.status, 201);
    assert.deepEqual([again.status, again.body], [201, first.body]);
  });

  test('uploads#use: up to 10; 11 and the same one twice are 400 invalid_request', async () => {
    await begin();
    const ids: string[] = [];
    for (let i = 0; i < 10; i++) ids.push(await ready(alice.api, conv));
    assertError(await post(alice, { attachments: [...ids, 'att_x'] }), 400, 'invalid_request', 'attachments');
    assertError(await post(alice, { attachments: [ids[0], ids[0]] }), 400, 'invalid_request', 'attachments');
    const { body } = await post(alice, { attachments: ids });
    assert.deepEqual(
      body.attachments.map((a: { id: string }) => a.id),
      ids,
    );
  });

  test('each can be used once', async () => {
    await begin();
    const [id, spare] = [await ready(alice.api, conv), await ready(alice.api, conv)];
    await scene.send(alice, conv, { attachments: [id] });
    await refused(alice, { text: 'again', attachments: [id] });
    await refused(alice, { text: 'with another', attachments: [spare, id] });
    await scene.send(alice, conv, { attachments: [spare] });
  });

  test('of many sends at once that name one attachment, one wins', async () => {
    await begin();
    for (let round = 0; round < 5; round++) {
      const id = await ready(alice.api, conv);
      const answers = await Promise.all(
        Array.from({ length: 6 }, () => post(null, { senderId: alice.id, attachments: [id] })),
      );
      assert.deepEqual(answers.map((a) => a.status).sort(), [201, 422, 422, 422, 422, 422]);
    }
    const { body } = await alice.api('GET', `/v1/conversations/${conv}/messages`);
    assert.equal(body.data.length, 5);
  });

  test('sends that share a batch keep their own attachments, and a refused one takes none', async () => {
    await begin();
    const ids = [await ready(alice.api, conv), await ready(alice.api, conv), await ready(alice.api, conv)];
    const answers = await Promise.all([
      post(null, { senderId: alice.id, attachments: [ids[0]] }),
      post(null, { senderId: alice.id, text: 'plain' }),
      post(null, { senderId: alice.id, attachments: [ids[1]], replyTo: 'msg_nowhere' }),
      post(null, { senderId: alice.id, attachments: [ids[2]] }),
    ]);
    assert.deepEqual(
      answers.map((a) => a.body.attachments?.map((x: { id: string }) => x.id) ?? a.body.error.code),
      [[ids[0]], [], 'invalid_request', [ids[2]]],
    );
    await scene.send(alice, conv, { attachments: [ids[1]] });
  });

  test('not ready, unknown, of another conversation or another uploader: 422 attachment_not_ready', async () => {
    await begin();
    const other = (await scene.group(alice, [alice, bob])).id;
    const id = await ready(alice.api, conv);
    await refused(alice, { attachments: [await transfer(alice.api, conv, picture)] });
    await refused(alice, { attachments: ['att_nowhere'] });
    await refused(alice, { attachments: [id] }, other);
    await refused(bob, { attachments: [id] });
    await scene.send(alice, conv, { attachments: [id] });
  });

  test('api#tenants: another tenant’s attachment is none', async () => {
    await begin();
    const id = await ready(alice.api, conv);
    const elsewhere = createScene(service.url, 'other');
    const user = await elsewhere.actor();
    const { id: theirs } = await elsewhere.group(user, [user]);
    const answer = await user.api('POST', `/v1/conversations/${theirs}/messages`, {
      clientMsgId: randomUUID(),
      attachments: [id],
    });
    assertError(answer, 422, 'attachment_not_ready');
    await scene.send(alice, conv, { attachments: [id] });
  });

  test('a server sends what the named sender or the server itself uploaded', async () => {
    await begin();
    const [hers, own, system, free] = [
      await ready(alice.api, conv),
      await ready(scene.server, conv),
      await ready(scene.server, conv),
      await ready(scene.server, conv),
    ];
    await refused(null, { senderId: bob.id, attachments: [hers] });
    await refused(null, { attachments: [hers] });
    await refused(alice, { attachments: [free] });
    assert.equal((await post(null, { senderId: alice.id, attachments: [hers, own] })).status, 201);
    assert.equal((await post(null, { attachments: [system] })).body.senderId, null);
  });
});
