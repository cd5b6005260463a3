import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { hostLane, userLane } from '../../src/features/push/lanes.ts';
import { startWebpush } from '../push/vendors/webpush.ts';
import { parley } from '../support/cli.ts';
import type { Actor } from '../support/scene.ts';
import { setUp, use, useService } from '../support/use.ts';
import { until } from './tools.ts';

/** docs/push.md: a slow push service, or a user with many browsers, delays nobody else. */

const { service, scene, db } = useService({ env: { CHAT_ALLOW_PRIVATE_TARGETS: 'true' } });
const vendor = use(
  () => startWebpush(() => Date.now()),
  (v) => v.close(),
);
/** A push service that takes requests and never answers. */
const hanging = use(
  async () => {
    let asked = 0;
    const server = createServer(() => void asked++);
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    return { server, port: (server.address() as AddressInfo).port, asked: () => asked };
  },
  ({ server }) => {
    server.close();
    server.closeAllConnections();
  },
);
let directory: string;
setUp(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-push-'));
  const { provider: _, ...keys } = vendor.credentials;
  const file = join(directory, 'vapid.json');
  await writeFile(file, JSON.stringify(keys));
  await parley(service, 'push', 'set', 'env_dev', 'webpush', file);
});
after(() => rm(directory, { recursive: true }));

const add = async (actor: Actor, token: string): Promise<void> => {
  for (;;) {
    const { status, body } = await actor.api('POST', '/v1/push/devices', { provider: 'webpush', token });
    if (status === 201) return;
    // A user makes 20 requests a second.
    assert.equal(status, 429, JSON.stringify(body));
    await delay(body.error.retryAfterMs);
  }
};
const slowToken = (host: string, path: string): string =>
  JSON.stringify({
    ...(JSON.parse(vendor.goodToken) as object),
    endpoint: `http://${host}:${hanging.port}/${path}`,
  });
const numberOf = async (actor: Actor): Promise<number> =>
  (await db.query<{ no: number }>('SELECT no FROM users WHERE id = $1', [actor.id]))[0]!.no;

describe('50 browsers of one user on a push service that hangs', () => {
  // Hosts share lanes; the addresses here are such that the slow ones share none with the good one.
  const apart = (host: string): boolean =>
    hostLane(1, slowToken(host, 'x')) !== hostLane(1, vendor.goodToken);
  const hosts = (): string[] =>
    Array.from({ length: 100 }, (_, i) => `127.0.0.${i + 2}`)
      .filter(apart)
      .slice(0, 50);
  const cases: [string, () => string[]][] = [
    ['of one host', () => Array<string>(50).fill(hosts()[0]!)],
    ['of 50 hosts', hosts],
  ];
  for (const [what, chosen] of cases)
    it(`${what} delay no push to others`, async () => {
      const [sender, member] = [await scene.actor(), await scene.actor()];
      let slow = await scene.actor();
      while (userLane(1, await numberOf(slow)) === hostLane(1, vendor.goodToken)) slow = await scene.actor();
      for (const [i, host] of chosen().entries()) await add(slow, slowToken(host, `${slow.id}-${i}`));
      await add(member, vendor.tokenOf(member.id));
      const { id } = await scene.group(sender, [slow, member]);
      const before = hanging.asked();
      for (let i = 0; i < 10; i++) await scene.send(sender, id);
      // A push that a newer one of the conversation has overtaken is dropped.
      const other = await numberOf(member);
      await until(async () => {
        const left = await db.query(
          `SELECT 1 FROM outbox WHERE consumer = 2 UNION ALL SELECT 1 FROM jobs WHERE queue = 'push_plan' UNION ALL
           SELECT 1 FROM jobs WHERE queue = 'push' AND (data ->> 'usr')::bigint = $1`,
          [other],
        );
        return left.length === 0;
      }, 'the pushes to the other user');
      assert.ok(vendor.delivered.some((d) => d.token === vendor.tokenOf(member.id)));
      const asked = hanging.asked() - before;
      assert.ok(asked < 250, `${asked} of 500 pushes to the slow service had been tried before`);
      const [{ most }] = (await db.query<{ most: number }>(
        `SELECT count(*)::int AS most FROM jobs WHERE queue = 'push' AND leased AND (data ->> 'usr')::bigint = $1`,
        [await numberOf(slow)],
      )) as [{ most: number }];
      assert.ok(most <= 12, `one user occupies ${most} places`);
      await db.query(`DELETE FROM jobs WHERE queue = 'push' AND NOT leased`);
      await db.query('DELETE FROM push_devices');
    });
});
