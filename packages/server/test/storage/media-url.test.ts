import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMedia, mediaFromUrl } from '../../src/platform/storage/media-url.ts';

const key = Buffer.alloc(32, 255).toString('base64');

test('CHAT_MEDIA_URL: each form gives its configuration', () => {
  assert.deepEqual(mediaFromUrl('s3://AK:se%2Fc%2Bret@my-bucket?preset=aws&region=eu-west-1&prefix=chat'), {
    provider: 's3',
    bucket: 'my-bucket',
    accessKeyId: 'AK',
    secretAccessKey: 'se/c+ret',
    preset: 'aws',
    region: 'eu-west-1',
    prefix: 'chat',
  });
  assert.deepEqual(mediaFromUrl('s3://AK:secret@minio.internal:9000/media?tls=false'), {
    provider: 's3',
    endpoint: 'http://minio.internal:9000',
    bucket: 'media',
    accessKeyId: 'AK',
    secretAccessKey: 'secret',
  });
  assert.deepEqual(mediaFromUrl('s3://AK:secret@s3.example/media?preset=minio&pathStyle=false'), {
    provider: 's3',
    endpoint: 'https://s3.example',
    bucket: 'media',
    accessKeyId: 'AK',
    secretAccessKey: 'secret',
    preset: 'minio',
    forcePathStyle: false,
  });
  assert.deepEqual(mediaFromUrl(`azure://acme1:${encodeURIComponent(key)}@media?prefix=chat`), {
    provider: 'azure',
    account: 'acme1',
    accountKey: key,
    container: 'media',
    prefix: 'chat',
  });
  assert.deepEqual(mediaFromUrl('cloudinary://4711:secret@acme?folder=chat'), {
    provider: 'cloudinary',
    cloudinaryUrl: 'cloudinary://4711:secret@acme',
    folder: 'chat',
  });
});

test('every configuration makes its adapter', () => {
  const deps = { request: () => Promise.reject(new Error('unused')), now: () => new Date() };
  for (const url of [
    's3://a:secret@bucket',
    `azure://acme1:${encodeURIComponent(key)}@media`,
    'cloudinary://a:secret@acme',
  ]) {
    assert.equal(`${createMedia(mediaFromUrl(url), deps).provider}:`, new URL(url).protocol);
  }
});

test('a wrong CHAT_MEDIA_URL is refused with a reason and without its secret', () => {
  for (const [url, reason] of [
    ['media', /is not a URL/],
    ['https://a:hush@bucket', /unknown scheme https/],
    ['s3://bucket', /needs KEY:SECRET/],
    ['s3://a@bucket', /needs KEY:SECRET/],
    ['s3://a:hu/sh@bucket', /%2F/],
    ['s3://a:hush@bucket?presett=aws', /unknown setting "presett"/],
    ['s3://a:hush@bucket?preset=aqs', /unknown preset/],
    ['s3://a:hush@bucket?preset=r2', /endpoint is required/],
    ['s3://a:hush@bucket?preset=spaces', /region is required/],
    ['s3://a:hush@host/bucket/folder', /\?prefix=/],
    ['s3://a:hush@host/bucket?tls=no', /tls neither true nor false/],
    ['s3://a:hush%zz@bucket', /%25/],
    ['s3://a:hush@bucket?prefix=../up', /prefix or folder/],
    ['cloudinary://a:hush@acme?folder=a b', /prefix or folder/],
    ['azure://a:hush@media', /account name/],
    ['azure://acme1:hush@Media_1', /container name/],
    ['azure://acme1:hush@media/sub', /\?prefix=/],
    ['cloudinary://a:hush@acme?signatureAlgorithm=md5', /signatureAlgorithm/],
    ['cloudinary://a:hush@', /is not a URL|names no/],
  ] as const) {
    assert.throws(
      () => mediaFromUrl(url),
      (error: unknown) => {
        assert.ok(error instanceof TypeError, url);
        assert.match(error.message, reason, url);
        assert.doesNotMatch(error.message, /hush|hu\/sh/, url);
        return true;
      },
    );
  }
});
