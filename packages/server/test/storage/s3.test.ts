import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOutbound } from '../../src/platform/outbound/outbound.ts';
import { createS3, resolveS3 } from '../../src/platform/storage/s3.ts';
import type { S3Config } from '../../src/platform/storage/s3.ts';
import { StorageUnavailable } from '../../src/platform/storage/port.ts';
import { presign } from '../../src/platform/storage/sigv4.ts';
import { freePort } from './process.ts';
import { png, storageSuite } from './suite.ts';
import { startSwift } from './swift.ts';
import type { Swift } from './swift.ts';

const now = () => new Date();

const outbound = createOutbound({ allowPrivate: true });
const deps = { request: outbound.request, now };
let swift: Swift;
let config: S3Config;

storageSuite(
  's3 (OpenStack Swift)',
  async () => {
    swift = await startSwift();
    const { endpoint, accessKeyId, secretAccessKey } = swift;
    config = { provider: 's3', endpoint, bucket: 'media', accessKeyId, secretAccessKey, prefix: 'chat' };
    const url = presign({
      method: 'PUT',
      url: `${endpoint}/media`,
      region: 'us-east-1',
      now: now(),
      expiresIn: 60,
      ...swift,
    });
    assert.equal((await outbound.request({ url, method: 'PUT' })).status, 200);
    return {
      storage: createS3(config, deps),
      at: (time) => createS3(config, { ...deps, now: () => time }),
      unreachable: createS3({ ...config, endpoint: `http://127.0.0.1:${await freePort()}` }, deps),
      stranger: createS3({ ...config, secretAccessKey: 'wrong' }, deps),
      refuses: { type: true, size: true, overwrite: false, content: false },
      namesDownloads: true,
      async stop() {
        outbound.close();
        await swift.stop();
      },
    };
  },
  () => {
    test('storage#media: virtual-host style reaches the same objects', async (t) => {
      // Swift is told that it is s3.test; the injected resolver takes every name under it to the loopback address.
      const virtual = createOutbound({
        allowPrivate: true,
        resolve: async () => [{ address: '127.0.0.1', family: 4 }],
      });
      t.after(() => virtual.close());
      const endpoint = swift.endpoint.replace('127.0.0.1', 's3.test');
      const storage = createS3(
        { ...config, endpoint, forcePathStyle: false },
        { request: virtual.request, now },
      );
      const ticket = await storage.ticket({
        key: 'virtual',
        contentType: 'image/png',
        size: png.length,
        filename: 'a.png',
        resource: 'image',
        expiresAt: new Date(Date.now() + 60_000),
      });
      assert.equal(new URL(ticket.url).hostname, 'media.s3.test');
      const answer = await virtual.request({
        url: ticket.url,
        method: 'PUT',
        headers: ticket.headers,
        body: png,
      });
      assert.equal(answer.status, 200);
      assert.equal((await storage.inspect('virtual', 'image'))?.size, png.length);
      assert.equal((await createS3(config, deps).inspect('virtual', 'image'))?.size, png.length);
    });

    test('a bucket that is not there is a broken configuration, not a missing object', async () => {
      const storage = createS3({ ...config, bucket: 'nowhere' }, deps);
      await assert.rejects(storage.inspect('x', 'image'), StorageUnavailable);
    });
  },
);

test("the signature of AWS's documented example", () => {
  const url = presign({
    method: 'GET',
    url: 'https://examplebucket.s3.amazonaws.com/test.txt',
    region: 'us-east-1',
    accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
    secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
    now: new Date('2013-05-24T00:00:00Z'),
    expiresIn: 86400,
  });
  assert.match(url, /X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404$/);
});

test('storage#media: presets give endpoint, region and style', () => {
  const common = { provider: 's3', bucket: 'media', accessKeyId: 'k', secretAccessKey: 's' } as const;
  const base = (config: Partial<S3Config>) => {
    const { base: url, region } = resolveS3({ ...common, ...config });
    return `${url.href} ${region}`;
  };
  const endpoint = 'https://own.example:9000';
  assert.equal(base({}), 'https://media.s3.us-east-1.amazonaws.com/ us-east-1');
  assert.equal(
    base({ preset: 'aws', region: 'eu-west-1' }),
    'https://media.s3.eu-west-1.amazonaws.com/ eu-west-1',
  );
  assert.equal(
    base({ preset: 'aws', bucket: 'a.b.c' }),
    'https://s3.us-east-1.amazonaws.com/a.b.c us-east-1',
  );
  assert.equal(base({ preset: 'r2', endpoint }), `${endpoint}/media auto`);
  assert.equal(base({ preset: 'minio', endpoint }), `${endpoint}/media us-east-1`);
  assert.equal(base({ preset: 'spaces', region: 'fra1' }), 'https://media.fra1.digitaloceanspaces.com/ fra1');
  assert.equal(
    base({ preset: 'b2', region: 'eu-central-003' }),
    'https://media.s3.eu-central-003.backblazeb2.com/ eu-central-003',
  );
  assert.equal(base({ preset: 'wasabi' }), 'https://media.s3.us-east-1.wasabisys.com/ us-east-1');
  assert.equal(base({ preset: 'gcs' }), 'https://storage.googleapis.com/media auto');
  assert.equal(base({ endpoint, forcePathStyle: false }), 'https://media.own.example:9000/ us-east-1');
  for (const bad of [
    { preset: 'r2' },
    { preset: 'custom' },
    { preset: 'spaces' },
    { endpoint: 'ftp://x' },
    { endpoint: 'https://u:p@x' },
    { bucket: 'a/b' },
    { preset: 'other' },
  ]) {
    assert.throws(() => base(bad as Partial<S3Config>), TypeError, JSON.stringify(bad));
  }
});

test('providers that can are told to write an object once only', async () => {
  const ask = {
    key: 'a',
    contentType: 'image/png',
    size: 1,
    filename: 'a',
    resource: 'image',
    expiresAt: now(),
  } as const;
  const common = { provider: 's3', bucket: 'media', accessKeyId: 'k', secretAccessKey: 's' } as const;
  const aws = await createS3({ ...common, preset: 'aws' }, deps).ticket(ask);
  assert.equal(aws.headers?.['if-none-match'], '*');
  assert.match(aws.url, /SignedHeaders=content-length%3Bcontent-type%3Bhost%3Bif-none-match&/);
  const wasabi = await createS3({ ...common, preset: 'wasabi' }, deps).ticket(ask);
  assert.equal(wasabi.headers?.['if-none-match'], undefined);
});
