import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freePort } from '../storage/process.ts';
import { serverApi } from '../support/api.ts';
import { startService } from '../support/service.ts';
import { ok, startReceiver, status } from './receiver.ts';
import { addEndpoint, delivery } from './tools.ts';

test('queue depth, attempts and latency are in the metrics', async () => {
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
