import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { limits, rateLimits } from '@parley/protocol';
import { upload } from '../storage/suite.ts';
import { freePort } from '../storage/process.ts';
import { assertError } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import type { Actor } from '../support/scene.ts';
import { startService } from '../support/service.ts';
import {
  announce,
  announcement,
  complete,
  document,
  eventually,
  picture,
  program,
  ready,
  transfer,
} from './files.ts';
import type { TestFile } from './files.ts';
import { setUp, useService } from '../support/use.ts';

describe('uploads#direct', () => {
  const { service, scene } = useService({ own: true });
  let alice: Actor;
  let bob: Actor;
  let carol: Actor;
  let conv: string;
  setUp(async () => {
    [alice, bob, carol] = await Promise.all([scene.actor('alice'), scene.actor('bob'), scene.actor('carol')]);
    conv = (await scene.group(alice, [alice, bob])).id;
  });

  /** A user who has its 30 uploads of the minute left. */
  const fresh = async () => {
    const user = await scene.actor();
    return { user, conv: (await scene.group(user, [user, bob])).id };
  };
  const objectOf = (id: string) => join(service.dataDir, 'media', 'objects', 'env_dev', id);

  test('api#request-id, errors#body and plans#rate-headers: transfers carry Request-Id and rate headers, and their errors have the shape of all others', async () => {
    const { body } = await announce(alice.api, conv, picture);
    const stored = await upload(body.upload, picture.body);
    assert.equal(stored.status, 201);
    const again = await upload(body.upload, picture.body);
    assert.equal(again.status, 409);
    const forged = await fetch(`${body.upload.url}x`, { method: 'PUT', body: new Uint8Array(picture.body) });
    const preflight = await fetch(body.upload.url, { method: 'OPTIONS' });
    for (const answer of [stored, again, forged, preflight]) {
      assert.match(answer.headers.get('request-id') ?? '', /^req_/);
      for (const name of ['limit', 'remaining', 'reset'])
        assert.match(answer.headers.get(`ratelimit-${name}`) ?? '', /^\d+$/, name);
    }
    assert.deepEqual((await forged.json()) as object, {
      error: {
        type: 'permission',
        code: 'forbidden',
        message: 'The signature does not match.',
        requestId: forged.headers.get('request-id'),
      },
    });
    const { error } = (await again.json()) as { error: { code: string; requestId: string } };
    assert.deepEqual([error.code, error.requestId], ['invalid_request', again.headers.get('request-id')]);
  });

  test('POST /v1/uploads: a ticket for 10 minutes, bound to type and size', async () => {
    const from = Date.now();
    const { status, body } = await announce(alice.api, conv, picture);
    assert.equal(status, 201);
    const expires = Date.parse(body.expiresAt);
    assert.ok(expires >= from + 600_000 && expires <= Date.now() + 600_000);
    assert.equal(body.upload.method, 'PUT');
    assert.ok(body.upload.url.startsWith(`${service.url}/media/`), 'files have a path of their own');
    const wrong = await upload(body.upload, picture.body, { 'content-type': 'text/html' });
    assert.equal(wrong.status, 400);
    const short = await upload(body.upload, picture.body.subarray(1));
    assert.equal(short.status, 400);
    assert.equal((await upload(body.upload, picture.body)).status, 201);
  });

  test('complete: ready with what the bytes say, for the uploader, again and again', async () => {
    const id = await transfer(alice.api, conv, {
      ...picture,
      contentType: 'image/jpeg',
      filename: 'cat.jpg',
    });
    const expected = {
      id,
      name: 'cat.jpg',
      size: 95,
      mimeType: 'image/png',
      width: 7,
      height: 5,
      status: 'ready',
    };
    assert.deepEqual((await complete(alice.api, id)).body, expected);
    assert.deepEqual((await complete(alice.api, id)).body, expected);
    const pdf = await transfer(alice.api, conv, document);
    assert.deepEqual((await complete(alice.api, pdf)).body, {
      id: pdf,
      name: document.filename,
      size: document.body.length,
      mimeType: 'application/pdf',
      status: 'ready',
    });
  });

  test('complete before the upload: 422 attachment_not_ready, and nothing changes', async () => {
    const { body } = await announce(alice.api, conv, picture);
    assertError(await complete(alice.api, body.attachmentId), 422, 'attachment_not_ready');
    assertError(
      await alice.api('GET', `/v1/attachments/${body.attachmentId}/url`),
      422,
      'attachment_not_ready',
    );
    await upload(body.upload, picture.body);
    assert.equal((await complete(alice.api, body.attachmentId)).body.status, 'ready');
  });

  test('the server uploads and completes; another member may not complete', async () => {
    const id = await transfer(alice.api, conv, picture);
    assertError(await complete(bob.api, id), 403, 'forbidden');
    assertError(await complete(carol.api, id), 403, 'not_member');
    assert.equal((await complete(scene.server, id)).body.status, 'ready');
    const own = await transfer(scene.server, conv, picture);
    assertError(await complete(alice.api, own), 403, 'forbidden');
    assert.equal((await complete(scene.server, own)).status, 200);
  });

  test('membership: strangers 403 not_member, unknown and deleted conversations 404', async () => {
    assertError(await announce(carol.api, conv, picture), 403, 'not_member');
    assertError(await announce(alice.api, 'conv_nowhere', picture), 404, 'not_found');
    const gone = await scene.group(alice, [alice]);
    const id = await ready(alice.api, gone.id);
    await scene.server('DELETE', `/v1/conversations/${gone.id}`);
    assertError(await announce(alice.api, gone.id, picture), 404, 'not_found');
    assertError(await announce(scene.server, gone.id, picture), 404, 'not_found');
    assertError(await alice.api('GET', `/v1/attachments/${id}/url`), 404, 'not_found');
    assert.equal((await scene.server('GET', `/v1/attachments/${id}/url`)).status, 200);
  });

  test('api#tenants: another tenant’s conversation and attachment are 404', async () => {
    const stranger = createScene(service.url, 'other').server;
    assertError(await announce(stranger, conv, picture), 404, 'not_found');
    const id = await transfer(alice.api, conv, picture);
    assertError(await complete(stranger, id), 404, 'not_found');
    await complete(alice.api, id);
    assertError(await stranger('GET', `/v1/attachments/${id}/url`), 404, 'not_found');
  });

  test('25 MB are taken through the storage and no byte more: 413 file_too_large', async () => {
    const body = randomBytes(limits.fileBytes);
    const file: TestFile = { filename: 'big.bin', contentType: 'application/octet-stream', body };
    const id = await ready(alice.api, conv, file);
    const { url } = (await bob.api('GET', `/v1/attachments/${id}/url`)).body;
    assert.deepEqual(Buffer.from(await (await fetch(url)).arrayBuffer()), body);
    const larger = { ...announcement(conv, file), size: limits.fileBytes + 1 };
    assertError(await alice.api('POST', '/v1/uploads', larger), 413, 'file_too_large', 'size');
  });

  test('the allowlist: SVG, HTML, JavaScript and programs are refused by type and by name', async () => {
    const { user, conv: mine } = await fresh();
    for (const [contentType, filename, param] of [
      ['image/svg+xml', 'a.svg', 'contentType'],
      ['text/html', 'a.html', 'contentType'],
      ['text/javascript', 'a.js', 'contentType'],
      ['application/x-msdownload', 'a.exe', 'contentType'],
      ['whatever', 'a', 'contentType'],
      ['image/png', 'a.svg', 'filename'],
      ['application/octet-stream', 'setup.exe', 'filename'],
      ['image/png', 'cat.png.EXE ', 'filename'],
      ['application/pdf', '../bill.pdf', 'filename'],
    ] as const) {
      const refused = await announce(user.api, mine, { ...picture, contentType, filename });
      assertError(refused, 400, 'invalid_request', param);
    }
  });

  test('invalid requests: missing, wrong and unknown fields', async () => {
    const { user, conv: mine } = await fresh();
    const good = announcement(mine, picture);
    for (const [change, param] of [
      [{ size: 0 }, 'size'],
      [{ size: 1.5 }, 'size'],
      [{ filename: '' }, 'filename'],
      [{ filename: 'a'.repeat(256) }, 'filename'],
      [{ contentType: undefined }, 'contentType'],
      [{ contentType: 'image/png\r\nx: y' }, 'contentType'],
      [{ width: -1 }, 'width'],
    ] as const)
      assertError(
        await user.api('POST', '/v1/uploads', { ...good, ...change }),
        400,
        'invalid_request',
        param,
      );
    assertError(await user.api('POST', '/v1/uploads', { ...good, color: 1 }), 400, 'unknown_field', 'color');
    assert.equal((await user.api('POST', '/v1/uploads', { ...good, width: 7, height: null })).status, 201);
  });

  for (const [what, file] of [
    ['a program as a picture', { ...picture, body: program }],
    ['a program as a PDF', { ...document, body: program }],
    ['a page as text', { filename: 'a.txt', contentType: 'text/plain', body: Buffer.from('<html><script>') }],
    ['an SVG as a picture', { ...picture, body: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>') }],
    ['half a picture', { ...picture, body: picture.body.subarray(0, 12) }],
  ] as [string, TestFile][])
    test(`${what} is 400 invalid_request at completion, removed, and never usable`, async () => {
      const { user, conv: mine } = await fresh();
      const id = await transfer(user.api, mine, file);
      assert.ok(existsSync(objectOf(id)));
      assertError(await complete(user.api, id), 400, 'invalid_request');
      await eventually(() => !existsSync(objectOf(id)), 'the object is removed');
      assertError(await complete(user.api, id), 404, 'not_found');
      assertError(await user.api('GET', `/v1/attachments/${id}/url`), 404, 'not_found');
      const send = { clientMsgId: randomUUID(), attachments: [id] };
      assertError(
        await user.api('POST', `/v1/conversations/${mine}/messages`, send),
        422,
        'attachment_not_ready',
      );
    });

  test('a refused completion under an Idempotency-Key forgets the upload too', async () => {
    const id = await transfer(alice.api, conv, { ...picture, body: program });
    const key = { 'Idempotency-Key': randomUUID() };
    assertError(
      await alice.api('POST', `/v1/uploads/${id}/complete`, undefined, key),
      400,
      'invalid_request',
    );
    await eventually(() => !existsSync(objectOf(id)), 'the object is removed');
    assertError(await complete(alice.api, id), 404, 'not_found');
  });

  test('GET /v1/attachments/{id}/url: images inline, others as attachments, for members and the server', async () => {
    const [image, pdf] = [await ready(alice.api, conv), await ready(alice.api, conv, document)];
    const inline = await fetch((await bob.api('GET', `/v1/attachments/${image}/url`)).body.url);
    assert.equal(inline.headers.get('content-type'), 'image/png');
    assert.match(inline.headers.get('content-disposition')!, /^inline/);
    assert.deepEqual(Buffer.from(await inline.arrayBuffer()), picture.body);
    const saved = await fetch((await scene.server('GET', `/v1/attachments/${pdf}/url`)).body.url);
    assert.equal(saved.headers.get('content-type'), 'application/pdf');
    assert.match(saved.headers.get('content-disposition')!, /^attachment; .*M%C3%BCllers%20Rechnung\.pdf/);
    assert.deepEqual(Buffer.from(await saved.arrayBuffer()), document.body);
    assertError(await carol.api('GET', `/v1/attachments/${image}/url`), 403, 'not_member');
    assertError(await alice.api('GET', '/v1/attachments/att_nowhere/url'), 404, 'not_found');
  });

  test('uploads#download: expiresIn 60 to 3600, default 300', async () => {
    const id = await ready(alice.api, conv);
    for (const [query, seconds] of [
      ['', 300],
      ['?expiresIn=60', 60],
      ['?expiresIn=3600', 3600],
    ] as const) {
      const from = Date.now();
      const { body } = await alice.api('GET', `/v1/attachments/${id}/url${query}`);
      const expires = Date.parse(body.expiresAt);
      assert.ok(expires >= from + seconds * 1000 && expires <= Date.now() + seconds * 1000, query);
      const signed = Number(new URL(body.url).searchParams.get('expires'));
      assert.ok(signed >= expires && signed <= Date.now() + seconds * 1000, 'the URL ends then');
    }
    for (const bad of ['59', '3601', 'x'])
      assertError(
        await alice.api('GET', `/v1/attachments/${id}/url?expiresIn=${bad}`),
        400,
        'invalid_request',
        'expiresIn',
      );
  });

  test('plans#rates: 30 uploads a minute per user; the server is not held to it', async () => {
    const { user, conv: mine } = await fresh();
    let allowed = 0;
    let last;
    // A minute that ends meanwhile may let a few more through.
    while (allowed < rateLimits.upload.perMinute + 6) {
      last = await announce(user.api, mine, picture);
      if (last.status !== 201) break;
      allowed += 1;
    }
    assert.ok(allowed >= rateLimits.upload.perMinute, String(allowed));
    const error = assertError(last!, 429, 'rate_limited');
    assert.ok(error.retryAfterMs! > 0);
    assert.equal((await announce(scene.server, mine, picture)).status, 201);
  });

  test('api#idempotency: a repeated announcement gives the same ticket', async () => {
    const key = { 'Idempotency-Key': randomUUID() };
    const ask = () => alice.api('POST', '/v1/uploads', announcement(conv, picture), key);
    const first = await ask();
    const second = await ask();
    assert.deepEqual(second.body, first.body);
    assert.equal(second.headers.get('idempotent-replayed'), 'true');
  });
});

test('uploads#storage-unavailable: a storage that cannot be reached is 503 storage_unavailable; chat goes on', async () => {
  const service = await startService({
    env: { CHAT_MEDIA_URL: `s3://key:secret@127.0.0.1:${await freePort()}/media?tls=false` },
  });
  try {
    const scene = createScene(service.url);
    const alice = await scene.actor('alice');
    const { id: conv } = await scene.group(alice, [alice]);
    const { body } = await announce(alice.api, conv, picture);
    const error = assertError(await complete(alice.api, body.attachmentId), 503, 'storage_unavailable');
    assert.ok(error.retryAfterMs! > 0);
    await scene.send(alice, conv);
    assert.doesNotMatch(service.output(), /secret@/);
  } finally {
    await service.dispose();
  }
});

test('a storage that hangs holds up completions alone, with an Idempotency-Key too', async () => {
  const asked: (() => void)[] = [];
  const storage = createServer((_req, res) => {
    asked.push(() => res.writeHead(404).end());
    storage.emit('asked');
  });
  await once(storage.listen(0, '127.0.0.1'), 'listening');
  const { port } = storage.address() as AddressInfo;
  const service = await startService({
    env: { CHAT_MEDIA_URL: `s3://key:secret@127.0.0.1:${port}/media?tls=false`, CHAT_DATABASE_POOL: '1' },
  });
  try {
    const scene = createScene(service.url);
    const alice = await scene.actor('alice');
    const { id: conv } = await scene.group(alice, [alice]);
    const { body } = await announce(alice.api, conv, picture);
    const path = `/v1/uploads/${body.attachmentId}/complete`;
    const key = { 'idempotency-key': randomUUID() };
    const called = once(storage, 'asked');
    const completing = alice.api('POST', path, undefined, key);
    await called;
    assert.equal((await scene.server('GET', `/v1/users/${alice.id}`)).status, 200);
    for (const answer of asked) answer();
    const first = await completing;
    assertError(first, 422, 'attachment_not_ready');
    const again = await alice.api('POST', path, undefined, key);
    assert.deepEqual([again.body, again.headers.get('idempotent-replayed')], [first.body, 'true']);
    assertError(await alice.api('POST', path, {}, key), 422, 'idempotency_mismatch');
    assert.equal(asked.length, 1);
  } finally {
    storage.closeAllConnections();
    storage.close();
    await service.dispose();
  }
});

test('CHAT_MEDIA_ORIGIN is where clients are sent for managed files', async () => {
  const service = await startService({ env: { CHAT_MEDIA_ORIGIN: 'https://files.example.com' } });
  try {
    const scene = createScene(service.url);
    const { id: conv } = await scene.group(null, [await scene.actor()]);
    const { body } = await announce(scene.server, conv, picture);
    assert.ok(body.upload.url.startsWith('https://files.example.com/media/env_dev/'));
    // A proxy that passes the path on reaches the same object.
    const behind = body.upload.url.replace('https://files.example.com', service.url);
    assert.equal((await upload({ ...body.upload, url: behind }, picture.body)).status, 201);
    assert.equal((await complete(scene.server, body.attachmentId)).status, 200);
  } finally {
    await service.dispose();
  }
});

test('a wrong CHAT_MEDIA_URL or CHAT_MEDIA_ORIGIN ends the start with a reason', async () => {
  await assert.rejects(
    startService({ env: { CHAT_MEDIA_URL: 'ftp://u:hidden@host' } }),
    (e: Error) => /CHAT_MEDIA_URL has an unknown scheme/.test(e.message) && !e.message.includes('hidden'),
  );
  await assert.rejects(
    startService({ env: { CHAT_MEDIA_ORIGIN: 'https://a.example/path' } }),
    /CHAT_MEDIA_ORIGIN must be an http\(s\) origin/,
  );
});
