import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { account, accountKey, startAzurite } from '../storage/azurite.ts';
import { startCloudinaryDouble } from '../storage/cloudinary-double.ts';
import { upload } from '../storage/suite.ts';
import { startSwift } from '../storage/swift.ts';
import { presign } from '../../src/platform/storage/sigv4.ts';
import { assertError } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { announce, complete, document, eventually, picture, program, ready } from './files.ts';
import { setUp, use, useService } from '../support/use.ts';

interface Provider {
  mediaUrl: string;
  stop(): Promise<void>;
}

async function s3(): Promise<Provider> {
  const swift = await startSwift();
  const url = presign({
    method: 'PUT',
    url: `${swift.endpoint}/media`,
    region: 'us-east-1',
    now: new Date(),
    expiresIn: 60,
    ...swift,
  });
  assert.equal((await fetch(url, { method: 'PUT' })).status, 200);
  const credentials = `${encodeURIComponent(swift.accessKeyId)}:${swift.secretAccessKey}`;
  return {
    mediaUrl: `s3://${credentials}@${new URL(swift.endpoint).host}/media?tls=false&prefix=chat`,
    stop: swift.stop,
  };
}

async function azure(): Promise<Provider> {
  const { endpoint, stop } = await startAzurite();
  return {
    mediaUrl: `azure://${account}:${encodeURIComponent(accountKey)}@media?prefix=chat&endpoint=${encodeURIComponent(endpoint)}`,
    stop,
  };
}

async function cloudinary(): Promise<Provider> {
  const double = await startCloudinaryDouble({ cloud: 'acme', apiKey: '4711', apiSecret: 's3cr/et' });
  return {
    mediaUrl: `cloudinary://4711:s3cr%2Fet@acme?folder=chat&endpoint=${encodeURIComponent(double.endpoint)}`,
    stop: double.stop,
  };
}

for (const [name, start, method] of [
  ['s3 (OpenStack Swift)', s3, 'PUT'],
  ['azure (Azurite)', azure, 'PUT'],
  ['cloudinary (double of its checks)', cloudinary, 'POST'],
] as const)
  describe(`CHAT_MEDIA_URL moves uploads to ${name}`, () => {
    const provider = use<Provider>(start, (one) => one.stop());
    const { scene } = useService({ env: () => ({ CHAT_MEDIA_URL: provider.mediaUrl }) });
    let alice: Actor;
    let bob: Actor;
    let conv: string;
    setUp(async () => {
      [alice, bob] = await Promise.all([scene.actor('alice'), scene.actor('bob')]);
      conv = (await scene.group(alice, [alice, bob])).id;
    });
    const download = async (id: string) =>
      fetch((await bob.api('GET', `/v1/attachments/${id}/url`)).body.url as string);

    test('uploads#ticket: a picture and a PDF are uploaded, completed, sent, and downloaded by another member', async () => {
      for (const file of [picture, document]) {
        const { body } = await announce(alice.api, conv, file);
        assert.equal(body.upload.method, method);
        assertError(await complete(alice.api, body.attachmentId), 422, 'attachment_not_ready');
        const stored = await upload(body.upload, file.body);
        assert.ok(stored.ok, await stored.text());
        const attachment = (await complete(alice.api, body.attachmentId)).body;
        assert.equal(attachment.mimeType, file.contentType);
        assert.deepEqual(
          [attachment.width, attachment.height],
          file === picture ? [7, 5] : [undefined, undefined],
        );
        const message = await scene.send(alice, conv, { attachments: [attachment.id] });
        assert.deepEqual(message.attachments, [attachment]);
        const answer = await download(attachment.id);
        const disposition = answer.headers.get('content-disposition') ?? '';
        assert.equal(disposition.startsWith('attachment'), file === document, disposition);
        assert.deepEqual(Buffer.from(await answer.arrayBuffer()), file.body);
      }
    });

    test('a disguised executable never becomes an attachment, and is removed', async () => {
      for (const file of [picture, document]) {
        const { body } = await announce(alice.api, conv, { ...file, body: program });
        const stored = await upload(body.upload, program);
        const answer = await complete(alice.api, body.attachmentId);
        if (stored.ok) {
          assertError(answer, 400, 'invalid_request');
          assertError(await complete(alice.api, body.attachmentId), 404, 'not_found');
        } else {
          // The provider decodes pictures itself and kept nothing.
          assertError(answer, 422, 'attachment_not_ready');
        }
      }
    });

    test('a deleted message’s object is removed from the provider', async () => {
      const id = await ready(alice.api, conv);
      const message = await scene.send(alice, conv, { attachments: [id] });
      const { url } = (await bob.api('GET', `/v1/attachments/${id}/url`)).body;
      assert.equal((await fetch(url)).status, 200);
      await alice.api('DELETE', `/v1/messages/${message.id}`);
      await eventually(async () => (await fetch(url)).status === 404, 'the object is gone');
    });
  });
