import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { useService } from '../support/use.ts';
import { pretendNode, start } from './tools.ts';

/** calls#ring-timeout, once for real; the other tests let its job run early. */

const { scene, server, db, restart } = useService({ own: true });

it('a call that nobody answers is missed after 45 s, although everything was restarted meanwhile', async () => {
  await pretendNode(db);
  const [a, b] = await Promise.all([scene.actor(), scene.actor()]);
  const { id, createdAt } = await start(a, (await scene.direct(a, b)).id);
  await restart();
  let call: any;
  do {
    await delay(500);
    call = (await server('GET', `/v1/calls/${id}`)).body;
  } while (call.status !== 'ended');
  assert.equal(call.endReason, 'missed');
  assert.ok(Date.parse(call.endedAt) - Date.parse(createdAt) >= 45_000, call.endedAt);
});
