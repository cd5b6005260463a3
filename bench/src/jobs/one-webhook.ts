import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serverApi } from '../../../packages/server/test/support/api.ts';
import { startService } from '../../../packages/server/test/support/service.ts';
import { openDb } from '../../../packages/server/test/support/use.ts';

/**
 * node bench/src/jobs/one-webhook.ts [events] [ms]: how many of a backlog of 20,000 events a second reach a single endpoint that
 * takes `ms` for an answer (0). The rate is taken from the first tenth of the deliveries to the last.
 */

const events = Number(process.argv[2] ?? 20_000);
const takesMs = Number(process.argv[3] ?? 0);

const service = await startService();
const db = await openDb(service);
const ids = new Set<string>();
let received = 0;
let atOnce = 0;
let most = 0;
let begun = 0;
const finished = Promise.withResolvers<void>();
const receiver = createServer((req, res) => {
  most = Math.max(most, ++atOnce);
  const answer = (): void => {
    atOnce--;
    res.writeHead(204).end();
    ids.add(String(req.headers['webhook-id']));
    if (++received === Math.floor(events / 10)) begun = performance.now();
    if (ids.size === events) finished.resolve();
  };
  req.resume().on('end', () => (takesMs > 0 ? setTimeout(answer, takesMs) : answer()));
});
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
try {
  const server = serverApi(service.url);
  const { body } = await server('POST', '/v1/conversations', { type: 'group', members: ['ann'] });
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  await server('POST', '/v1/webhooks', { url, events: ['message.created'] });
  await db.query(
    `WITH made AS (
       INSERT INTO messages (env, conv, seq, id, sender, text, created_at)
       SELECT c.env, c.no, c.last_seq + i, make_id('msg_', clock_timestamp()), u.no, repeat('x', 120), clock_timestamp()
       FROM conversations c JOIN users u ON u.env = c.env AND u.id = 'ann', generate_series(1, $2::int) i WHERE c.id = $1
       RETURNING *
     ) INSERT INTO outbox (consumer, id, env, type, conv, seq, message, actor, created_at, due_at)
       SELECT 1, 'evt_' || substr(id, 5), env, 'message.created', conv, seq, seq, sender, created_at, created_at FROM made`,
    [body.id, events],
  );
  await finished.promise;
  const seconds = (performance.now() - begun) / 1000;
  process.stdout.write(
    `${events} events to one endpoint that takes ${takesMs} ms: ${Math.round((events * 0.9) / seconds)}/s, ${most} at once, ${received - events} repeated\n`,
  );
} finally {
  receiver.closeAllConnections();
  receiver.close();
  await db.close();
  await service.dispose();
}
