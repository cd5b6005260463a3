import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { systemClock } from '../../src/platform/clock.ts';
import { message } from '../../src/platform/history/conformance.ts';
import { migrateHistory } from '../../src/platform/history/open.ts';
import { createRemoteHistories } from '../../src/platform/history/remote.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { startPostgresWithTls } from './servers.ts';
import { depsOf } from './world.ts';

/** docs/storage.md, Safety: a database that sends more than its requests can need is cut off. */

test('docs/storage.md, Safety: what a database sends over TLS is counted, and counted once', async () => {
  const server = await startPostgresWithTls();
  const remote = createRemoteHistories({
    settings: { allowPrivate: true, dnsServers: [] },
    clock: systemClock,
    logger: createLogger('silent'),
  });
  const plain = await server.createDatabase();
  const client = new pg.Client(plain.replace(/\?.*/, ''));
  await client.connect();
  try {
    await migrateHistory({ url: plain }, depsOf('env_a'));
    const url = plain.replace('?sslmode=disable', `?ca=${encodeURIComponent(server.ca)}`);
    const open = () => remote.open({ url }, { no: 1, id: 'env_a' }, () => undefined);
    const history = await open();
    const [id, conversationId] = ['msg_1', 'conv_x'];
    await history.write([message({ id, conversationId, seq: 1 })]);
    const megabytes = (count: number) =>
      client.query(`UPDATE parley_messages SET text = repeat('x', $1)`, [count * 1_048_576]);
    // A request for one message may receive 5 MB; a text that is no message's is left out.
    await megabytes(4);
    for (let i = 0; i < 3; i++)
      assert.deepEqual(await history.read({ conversationId, limit: 1 }), { data: [], hasMore: false });
    await megabytes(40);
    await assert.rejects(history.read({ conversationId, limit: 1 }), {
      message: /sent more than was asked for/,
    });
    await megabytes(1);
    const again = await open();
    assert.equal(await again.get(id), null);
    assert.equal((await again.test()).ok, true);
  } finally {
    await client.end();
    await remote.close();
    await server.stop();
  }
});
