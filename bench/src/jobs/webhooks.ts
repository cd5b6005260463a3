import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { startService } from '../../../packages/server/test/support/service.ts';
import { serverApi } from '../../../packages/server/test/support/api.ts';

/**
 * node bench/src/jobs/webhooks.ts [events]: how long 49 endpoints take for their part of 10,000 events, without and with one
 * that never answers among them. The 50 lie in three environments (20 are an environment's most); each gets events / 50.
 */

const events = Number(process.argv[2] ?? 10_000);
const endpoints = 50;
const names = ['dev', 'other', 'prod'] as const;

async function measure(dead: boolean): Promise<{ seconds: number; delivered: number }> {
  const service = await startService();
  let delivered = 0;
  let wanted = Infinity;
  let finished!: () => void;
  const end = new Promise<void>((resolve) => (finished = resolve));
  const receiver = createServer((req, res) => {
    req.resume().on('end', () => {
      res.writeHead(204).end();
      if (++delivered >= wanted) finished();
    });
  });
  const hanging = createServer(() => undefined);
  const urls = await Promise.all(
    [receiver, hanging].map(
      (server) =>
        new Promise<string>((resolve) =>
          server.listen(0, '127.0.0.1', () =>
            resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
          ),
        ),
    ),
  );
  try {
    // Endpoint 0 is the dead one; without it there are 49.
    for (let i = dead ? 0 : 1; i < endpoints; i++) {
      const e = i % names.length;
      await serverApi(service.url, names[e])('POST', '/v1/webhooks', {
        url: i === 0 ? urls[1] : `${urls[0]}/${i}`,
        events: ['message.created'],
      });
    }
    const each = Math.ceil(events / endpoints);
    wanted = each * (endpoints - 1);
    const begin = performance.now();
    await Promise.all(
      names.map(async (name) => {
        const api = serverApi(service.url, name);
        const { body } = await api('POST', '/v1/conversations', { type: 'group', members: ['a'] });
        for (let n = 0; n < each;) {
          const answers = await Promise.all(
            Array.from({ length: Math.min(20, each - n) }, () =>
              api('POST', `/v1/conversations/${body.id}/messages`, { text: 'hello' }),
            ),
          );
          n += answers.filter((a) => a.status === 201).length;
          if (answers.some((a) => a.status === 429)) await delay(200);
        }
      }),
    );
    await end;
    return { seconds: (performance.now() - begin) / 1000, delivered };
  } finally {
    await service.dispose();
    for (const server of [receiver, hanging]) {
      server.closeAllConnections();
      server.close();
    }
  }
}

const rounds = 3;
const best = { without: Infinity, with: Infinity };
for (let round = 0; round < rounds; round++) {
  const without = await measure(false);
  const beside = await measure(true);
  best.without = Math.min(best.without, without.seconds);
  best.with = Math.min(best.with, beside.seconds);
  process.stdout.write(
    `${without.delivered} deliveries to 49 endpoints: ${without.seconds.toFixed(2)} s; beside a dead one ${beside.seconds.toFixed(2)} s\n`,
  );
}
process.stdout.write(`best of ${rounds}: ${(best.with / best.without).toFixed(2)} times\n`);
