import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { systemClock } from '../../src/platform/clock.ts';
import { message } from '../../src/platform/history/conformance.ts';
import { migrateHistory } from '../../src/platform/history/open.ts';
import type { MemberRecord } from '../../src/platform/history/port.ts';
import { createRemoteHistories } from '../../src/platform/history/remote.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { startMongoJavaServer } from './servers.ts';
import { depsOf } from './world.ts';

/** storage#erasure: a user is erased in a customer's database, however much it has of them. */

const server = await startMongoJavaServer();
if (!server) console.log('!!! LEFT OUT: ERASING MUCH IN MONGODB: Java or mongo-java-server is not at hand.');
else {
  after(() => server.stop());
  test('docs/storage.md, Safety: MongoDB: an erasure may need more bytes than one answer has', async () => {
    const url = await server.createDatabase();
    await migrateHistory({ url }, depsOf('env_a'));
    const remote = createRemoteHistories({
      settings: { allowPrivate: true, dnsServers: [] },
      clock: systemClock,
      logger: createLogger('silent'),
    });
    const history = await remote.open({ url }, { no: 1, id: 'env_a' }, () => undefined);
    try {
      const [conversationId, userId, replacement] = ['conv_x', 'usr_gone', 'deleted_1'];
      for (let batch = 0; batch < 6; batch++) {
        const numbers = Array.from({ length: 200 }, (_, i) => batch * 200 + i + 1);
        await history.write(
          numbers.map((seq) =>
            message({ id: `msg_${seq}`, conversationId, seq, senderId: userId, text: 'x'.repeat(5_000) }),
          ),
        );
        await history.write(
          numbers.map((no): MemberRecord => ({
            kind: 'member',
            conversationId: `conv_${no}`,
            userId,
            role: 'member',
            extras: null,
            removed: false,
            revision: 1,
          })),
        );
      }
      await history.erase({ userId, replacement, messages: 'anonymize' });
      for (let seq = 1; seq < 1_200; seq += 100)
        assert.equal((await history.get(`msg_${seq}`))?.senderId, replacement);
    } finally {
      await history.close();
      await remote.close();
    }
  });
}
