import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectRedis, parseRedisUrl } from '../../src/platform/redis.ts';
import { startRedis } from '../support/redis.ts';
import { patienceMs, silent, until } from './tools.ts';

test('REDIS_URL: one server, with or without TLS, credentials and database', () => {
  assert.deepEqual(parseRedisUrl('redis://localhost'), {
    nodes: [{ host: 'localhost', port: 6379 }],
    cluster: false,
    tls: false,
    db: 0,
  });
  assert.deepEqual(parseRedisUrl('rediss://me:p%40ss@[::1]:7000/3'), {
    nodes: [{ host: '::1', port: 7000 }],
    cluster: false,
    tls: true,
    username: 'me',
    password: 'p@ss',
    db: 3,
  });
  assert.equal(parseRedisUrl('redis://:secret@h').password, 'secret');
  assert.equal(parseRedisUrl('redis://:secret@h').username, undefined);
});

test('REDIS_URL: several hosts, or cluster=true, are a cluster', () => {
  const several = parseRedisUrl('redis://a:1,b,c:3');
  assert.equal(several.cluster, true);
  assert.deepEqual(several.nodes, [
    { host: 'a', port: 1 },
    { host: 'b', port: 6379 },
    { host: 'c', port: 3 },
  ]);
  assert.equal(parseRedisUrl('redis://a?cluster=true').cluster, true);
  assert.equal(parseRedisUrl('redis://a/?cluster=true').cluster, true);
});

test('REDIS_URL: what is no address is refused without being repeated', () => {
  for (const url of [
    '',
    'http://secret@x',
    'redis://',
    'redis://secret@',
    'redis://a:secret',
    'redis://a?secret=1',
  ])
    assert.throws(
      () => parseRedisUrl(url),
      (error: Error) => !error.message.includes('secret'),
    );
});

test('While Redis is gone commands fail instead of waiting, and the connection comes back by itself', async () => {
  const server = await startRedis();
  const connection = connectRedis(server.url, silent);
  const { client } = connection;
  assert.equal(await connection.ready(patienceMs), true);
  await client.set('k', 'v');
  await server.kill();
  await until(() => client.status !== 'ready');
  await assert.rejects(client.get('k'));
  assert.equal(await connection.ready(1), false);
  await server.start();
  assert.equal(await connection.ready(patienceMs), true);
  assert.equal(await client.get('k'), null);
  server.pause();
  await assert.rejects(client.get('k'), /timed out/);
  server.resume();
  await connection.close();
  await server.stop();
});

test('A connection ends whatever its state is', async () => {
  const server = await startRedis();
  const connection = connectRedis(server.url, silent);
  await connection.ready(patienceMs);
  connection.subscriber();
  await server.kill();
  await until(() => connection.client.status === 'reconnecting');
  await connection.close();
  await connectRedis(server.url, silent).close();
  await server.stop();
});
