import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../../server/test/cluster/nodes.ts';
import { decide, setHook } from '../../../server/test/hooks/tools.ts';
import { use, useService } from '../../../server/test/support/use.ts';
import { startReceiver, status } from '../../../server/test/webhooks/receiver.ts';
import { newClient, whenReady } from './people.ts';

/** sdk#hooks, with a real client of the real service. */

const { service, scene, server } = useService();
const receiver = use(startReceiver, (r) => r.close());

test('sdk#hooks: what was rejected fails with its reason, a rewritten text shows, and without an answer it is tried again', async () => {
  receiver.answer = decide;
  await setHook(server, receiver.url, { onFailure: 'reject' });
  const anna = await scene.actor('anna');
  const { id: cid } = await scene.group(anna, []);
  const client = newClient(service.url, anna.id);
  try {
    await client.connect();
    const handle = client.conversations.open(cid);
    await whenReady(handle);
    const texts = () => handle.messages.get().items.map((m) => m.text);
    handle.send('re these words');
    await until(() => texts().join() === 'kind 14');
    const [item] = handle.messages.get().items;
    await handle.edit(item!.id!, { text: 'return to sender' });
    await until(() => texts().join() === 'kind 16');

    // The first attempt has no answer, the second has one.
    receiver.answer = (received, res) => {
      receiver.answer = decide;
      status(500)(received, res);
    };
    handle.send('at last');
    await until(() => texts().join() === 'kind 16,at last');
    await until(() => handle.messages.get().items.at(-1)?.status === 'sent');
    assert.equal(receiver.received.filter((r) => r.data.message.text === 'at last').length, 2);

    const failed = new Promise<{ code: string; message: string }>((resolve) =>
      client.on('failed', ({ error }) => resolve(error!)),
    );
    handle.send('no');
    const { code, message } = await failed;
    assert.deepEqual([code, message], ['message_rejected', 'Be kind.']);
  } finally {
    client.disconnect();
    await server('DELETE', '/v1/hooks/before-send');
  }
});
