import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOutbound } from '../../src/platform/outbound/outbound.ts';
import { cloudinarySignature, createCloudinary } from '../../src/platform/storage/cloudinary.ts';
import type { CloudinaryConfig } from '../../src/platform/storage/cloudinary.ts';
import { startCloudinaryDouble } from './cloudinary-double.ts';
import { freePort } from './process.ts';
import { storageSuite } from './suite.ts';

const now = () => new Date();

for (const signatureAlgorithm of ['sha1', 'sha256'] as const) {
  storageSuite(`cloudinary (double of its checks, ${signatureAlgorithm})`, async () => {
    const double = await startCloudinaryDouble({ cloud: 'acme', apiKey: '4711', apiSecret: 's3cr/et' });
    const outbound = createOutbound({ allowPrivate: true });
    const deps = { request: outbound.request, now };
    const config: CloudinaryConfig = {
      provider: 'cloudinary',
      cloudinaryUrl: 'cloudinary://4711:s3cr%2Fet@acme',
      folder: 'chat',
      endpoint: double.endpoint,
      signatureAlgorithm,
    };
    return {
      storage: createCloudinary(config, deps),
      at: (time) => createCloudinary(config, { ...deps, now: () => time }),
      unreachable: createCloudinary({ ...config, endpoint: `http://127.0.0.1:${await freePort()}` }, deps),
      stranger: createCloudinary({ ...config, cloudinaryUrl: 'cloudinary://4711:wrong@acme' }, deps),
      refuses: { type: false, size: false, overwrite: true, content: true },
      namesDownloads: false,
      async stop() {
        outbound.close();
        await double.stop();
      },
    };
  });
}

test("the signature of the vendor's documented example", () => {
  const params = {
    timestamp: '1315060510',
    public_id: 'sample_image',
    eager: 'w_400,h_300,c_pad|w_260,h_200,c_crop',
  };
  assert.equal(cloudinarySignature(params, 'abcd'), 'bfd09f95f331f558cbd1320e67aa8d488770583e');
});

test('uploads#cloudinary: the upload URL carries the resource segment, the fields all that the form needs', async () => {
  const deps = { request: () => Promise.reject(new Error('unused')), now };
  const storage = createCloudinary({ provider: 'cloudinary', cloudinaryUrl: 'cloudinary://k:s@acme' }, deps);
  const ask = {
    key: 'a',
    contentType: 'x/y',
    size: 1,
    filename: 'f',
    expiresAt: new Date(7_200_000),
  } as const;
  for (const resource of ['image', 'video', 'raw'] as const) {
    const ticket = await storage.ticket({ ...ask, resource });
    assert.equal(ticket.method, 'POST');
    assert.equal(ticket.url, `https://api.cloudinary.com/v1_1/acme/${resource}/upload`);
    const { signature, ...rest } = ticket.fields ?? {};
    assert.match(signature ?? '', /^[0-9a-f]{40}$/);
    assert.deepEqual(rest, {
      api_key: 'k',
      public_id: 'a',
      type: 'private',
      overwrite: 'false',
      timestamp: '3600',
    });
  }
});
