import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startWebpush } from '../push/vendors/webpush.ts';
import { parley } from '../support/cli.ts';
import { createScene } from '../support/scene.ts';
import { startService } from '../support/service.ts';
import { openDb, use } from '../support/use.ts';
import { until } from './tools.ts';

const directory = await mkdtemp(join(tmpdir(), 'parley-push-'));
after(() => rm(directory, { recursive: true }));
/** For its keys; pushes go to the server below. */
const vendor = use(
  () => startWebpush(() => Date.now()),
  (v) => v.close(),
);

test('docs/push.md: after kill -9 with a full lane the next process goes on when leases of seconds end', async (t) => {
  let hangs = true;
  const asked: string[] = [];
  const delivered = new Set<string>();
  const server = createServer((request, response) => {
    asked.push(request.url!);
    if (hangs) return;
    delivered.add(request.url!);
    response.writeHead(201).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const service = await startService({ env: { CHAT_ALLOW_PRIVATE_TARGETS: 'true' } });
  t.after(() => service.dispose());
  const { provider: _, ...keys } = vendor.credentials;
  const file = join(directory, 'vapid.json');
  await writeFile(file, JSON.stringify(keys));
  await parley(service, 'push', 'set', 'env_dev', 'webpush', file);
  const scene = createScene(service.url);
  const [sender, member] = [await scene.actor(), await scene.actor()];
  const paths = Array.from({ length: 6 }, (_, i) => `/${i}`);
  for (const path of paths) {
    const endpoint = `http://127.0.0.1:${port}${path}`;
    const token = JSON.stringify({ ...(JSON.parse(vendor.goodToken) as object), endpoint });
    assert.equal((await member.api('POST', '/v1/push/devices', { provider: 'webpush', token })).status, 201);
  }
  const { id } = await scene.group(sender, [member]);
  await scene.send(sender, id);
  await until(() => asked.length >= 2, 'a full lane');
  await service.kill();
  hangs = false;
  const next = await service.restart();
  t.after(() => next.dispose());
  const db = await openDb(next);
  const [{ left }] = (await db.query<{ left: number | null }>(
    `SELECT max(extract(epoch FROM run_at - clock_timestamp()))::float8 AS left FROM jobs WHERE queue = 'push' AND leased`,
  )) as [{ left: number | null }];
  await db.close();
  assert.ok((left ?? 0) <= 8, `the lane stands still for ${left} s`);
  await until(() => delivered.size === paths.length, 'all pushes');
});
