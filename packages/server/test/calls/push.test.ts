import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { parley } from '../support/cli.ts';
import type { Actor } from '../support/scene.ts';
import { setUp, useService } from '../support/use.ts';
import { act, done, pretendNode, start } from './tools.ts';

/** push#calls. No worker runs: what would be sent stays in its queue. */

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
  type: string;
  expiresAt: string;
}
const pushes = (callId: string): Promise<Push[]> =>
  db.query<Push>(
    `SELECT (j.data ->> 'usr')::bigint AS usr, j.data ->> 'type' AS type, j.data ->> 'expiresAt' AS "expiresAt"
     FROM jobs j JOIN calls c ON c.no = (j.data ->> 'call')::bigint
     WHERE j.queue = 'push' AND c.id = $1 ORDER BY j.no`,
    [callId],
  );
const device = (of: Actor) => of.api('POST', '/v1/push/devices', { provider: 'expo', token: `t-${of.id}` });
const numberOf = async (actor: Actor): Promise<number> =>
  (await db.query<{ no: number }>('SELECT no FROM users WHERE id = $1', [actor.id]))[0]!.no;

it('a callee without a socket gets a push that lives as long as it rings; when missed, another', async () => {
  const [a, b, c] = await Promise.all([scene.actor(), scene.actor(), scene.actor()]);
  for (const one of [a, b, c]) await device(one);
  await scene.online(c);
  const { id: cid } = await scene.group(a, [b, c]);
  const call = await start(a, cid, { kind: 'video' });
  const [incoming, ...others] = await pushes(call.id);
  assert.deepEqual(others, [], 'neither the caller nor who has a socket');
  assert.deepEqual([incoming!.usr, incoming!.type], [await numberOf(b), 'incoming']);
  const lives = Date.parse(incoming!.expiresAt) - Date.parse(call.createdAt);
  assert.ok(lives > 40_000 && lives < 50_000, `${lives} ms`);
  await done(act(a, call.id, 'leave'));
  const [, missed, ...more] = await pushes(call.id);
  assert.deepEqual(more, []);
  assert.deepEqual([missed!.usr, missed!.type], [incoming!.usr, 'missed']);
});

it('who answered or declined gets no push that it missed the call', async () => {
  const [a, b, c] = await Promise.all([scene.actor(), scene.actor(), scene.actor()]);
  for (const one of [b, c]) await device(one);
  const call = await start(a, (await scene.group(a, [b, c])).id);
  await done(act(b, call.id, 'decline'));
  await done(act(c, call.id, 'join'));
  for (const one of [a, c]) await done(act(one, call.id, 'leave'));
  assert.deepEqual(
    (await pushes(call.id)).map((p) => p.type),
    ['incoming', 'incoming'],
  );
});
