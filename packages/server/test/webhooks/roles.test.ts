import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { outsidePostgres } from '../core/tools.ts';
import { serverApi } from '../support/api.ts';
import { startService } from '../support/service.ts';
import { startReceiver, verify } from './receiver.ts';
import { addEndpoint, delivery } from './tools.ts';

const open: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const close of open.reverse()) await close();
});

test('one process takes the requests, two others deliver; what is written while none works is delivered later', async () => {
  const postgres = await outsidePostgres();
  open.push(() => postgres.dispose());
  const receiver = await startReceiver();
  open.push(() => receiver.close());
  const env = {
    DATABASE_URL: postgres.url,
    CHAT_MASTER_KEY: randomBytes(32).toString('base64'),
    CHAT_ALLOW_PRIVATE_TARGETS: 'true',
  };
  const api = await startService({ env: { ...env, CHAT_ROLES: 'api' } });
  open.push(() => api.dispose());
  const server = serverApi(api.url);
  const { id, secret } = await addEndpoint(server, receiver.url, ['message.created']);
  const cid = (await server('POST', '/v1/conversations', { type: 'group', members: ['a'] })).body
    .id as string;
  const send = async (text: string): Promise<string> =>
    (await server('POST', `/v1/conversations/${cid}/messages`, { text })).body.id;
  const before = await Promise.all(['a', 'b', 'c'].map(send));
  assert.deepEqual(receiver.received, []);

  for (let i = 0; i < 2; i++) {
    const worker = await startService({ env: { ...env, CHAT_ROLES: 'worker' } });
    open.push(() => worker.dispose());
  }
  await receiver.wait(3);
  const later = await Promise.all(Array.from({ length: 50 }, (_, i) => send(`${i}`)));
  const received = await receiver.wait(53);
  for (const r of received) verify(secret, r);
  assert.deepEqual(received.map((r) => r.data.message.id).sort(), [...before, ...later].sort());

  const first = await delivery(server, id, (d) => d.status === 'succeeded');
  await server('POST', `/v1/webhooks/${id}/deliveries/${first.id}/replay`);
  await receiver.wait(2, (r) => r.id === first.eventId);
});
