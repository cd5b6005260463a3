import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { parley } from '../support/cli.ts';
import type { Actor } from '../support/scene.ts';
import { setUp, useService } from '../support/use.ts';
import { act, done, pretendNode, start } from './tools.ts';

/** SPEC 6, call push notifications. No worker runs: what would be sent stays in its queue. */

const { service, scene, db } = useService({ env: { CHAT_ROLES: 'api,gateway' } });
setUp(async () => {
  await pretendNode(db);
  const directory = await mkdtemp(join(tmpdir(), 'parley-calls-'));
  const file = join(directory, 'c.json');
  await writeFile(file, JSON.stringify({ accessToken: 'x' }));
  await parley(service, 'push', 'set', 'env_dev', 'expo', file);
  await rm(directory, { recursive: true });
});

interface Push {
  usr: number;
  expiresAt: string;
  notification: {
    data: Record<string, string>;
    collapseKey: string;
    ttlSeconds: number;
    priority: string;
    title: string;
  };
}
const pushes = async (callId: string): Promise<Push[]> =>
  (await db.query<{ data: Push }>(`SELECT data FROM jobs WHERE queue = 'push' ORDER BY no`))
    .map((r) => r.data)
    .filter((p) => p.notification.data['callId'] === callId);
const device = (of: Actor) => of.api('POST', '/v1/push/devices', { provider: 'expo', token: `t-${of.id}` });

it('a callee without a socket gets a push that lives as long as it rings; when missed, one that replaces it', async () => {
  const [a, b, c] = await Promise.all([scene.actor(), scene.actor(), scene.actor()]);
  for (const one of [a, b, c]) await device(one);
  await scene.online(c);
  const { id: cid } = await scene.group(a, [b, c]);
  const call = await start(a, cid, { kind: 'video' });
  const [incoming, ...others] = await pushes(call.id);
  assert.deepEqual(others, [], 'neither the caller nor who has a socket');
  const { data, collapseKey, ttlSeconds, priority, title } = incoming!.notification;
  const about = { callId: call.id, conversationId: cid, kind: 'video', callerId: a.id };
  assert.deepEqual(data, { type: 'call.incoming', ...about });
  assert.deepEqual([collapseKey, ttlSeconds, priority, title], [call.id, 45, 'high', '']);
  await done(act(a, call.id, 'leave'));
  const [, missed, ...more] = await pushes(call.id);
  assert.deepEqual(more, []);
  assert.deepEqual(missed!.notification.data, { type: 'call.missed', ...about });
  assert.equal(missed!.notification.collapseKey, collapseKey);
});

it('who answered or declined gets no push that it missed the call', async () => {
  const [a, b, c] = await Promise.all([scene.actor(), scene.actor(), scene.actor()]);
  for (const one of [b, c]) await device(one);
  const call = await start(a, (await scene.group(a, [b, c])).id);
  await done(act(b, call.id, 'decline'));
  await done(act(c, call.id, 'join'));
  for (const one of [a, c]) await done(act(one, call.id, 'leave'));
  assert.deepEqual(
    (await pushes(call.id)).map((p) => p.notification.data['type']),
    ['call.incoming', 'call.incoming'],
  );
});
