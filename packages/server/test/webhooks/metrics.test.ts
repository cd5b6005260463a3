import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { serverApi } from '../support/api.ts';
import { startService } from '../support/service.ts';
import { ok, startReceiver, status } from './receiver.ts';
import { addEndpoint, delivery } from './tools.ts';

/** A port that was free a moment ago; the metrics take no port 0. */
async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

test('issue 4: queue depth, attempts and latency are in the metrics', async () => {
  const port = await freePort();
  const [service, receiver] = await Promise.all([
    startService({ env: { CHAT_METRICS_PORT: String(port) } }),
    startReceiver(),
  ]);
  try {
    const server = serverApi(service.url);
    const { id } = await addEndpoint(server, receiver.url, ['conversation.created']);
    receiver.answer = ok;
    await server('POST', '/v1/conversations', { type: 'group', members: ['a'] });
    await delivery(server, id, (d) => d.status === 'succeeded');
    receiver.answer = status(500);
    await server('POST', '/v1/conversations', { type: 'group', members: ['a'] });
    await delivery(server, id, (d) => d.attempts.length === 1 && d.status === 'pending');
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    for (const line of [
      'parley_webhook_attempts_total{result="succeeded"} 1',
      'parley_webhook_attempts_total{result="failed"} 1',
      'parley_webhook_attempt_seconds_count 2',
      'parley_webhook_lag_seconds_count 1',
    ])
      assert.ok(text.includes(`${line}\n`), line);
    assert.match(text, /^parley_queue_webhook_jobs \d+$/m);
  } finally {
    await service.dispose();
    await receiver.close();
  }
});
