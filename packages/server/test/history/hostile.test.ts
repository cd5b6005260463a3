import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostileCases } from '../support/hostile/cases.ts';
import { createScene } from '../support/scene.ts';
import type { Scene } from '../support/scene.ts';
import { use, useService } from '../support/use.ts';
import { startHistoryReceiver } from './servers.ts';
import { eventually, openStorage } from './world.ts';
import type { StorageWorld } from './world.ts';

/**
 * docs/storage.md, Safety: whatever a customer's database sends, the service goes on, and so do the databases of
 * others.
 */

const receiver = use(startHistoryReceiver, (it) => it.close());
const { service, db } = useService({ env: { CHAT_ALLOW_PRIVATE_TARGETS: 'true' } });

let mine: StorageWorld;
let others: StorageWorld;
let other: Scene;

test('another environment keeps its history in a database that works', async () => {
  mine = await openStorage(service, db, 'env_dev');
  others = await openStorage(service, db, 'env_other');
  other = createScene(service.url, 'other');
  const { body } = await others.api('PUT', '/v1/storage/database/a', { url: receiver.url });
  receiver.secret = body.signingSecret;
  assert.equal((await others.api('POST', '/v1/storage/database/test', { slot: 'a' })).body.ok, true);
  assert.equal((await others.api('PATCH', '/v1/storage', { mode: 'byo_db' })).status, 200);
  await others.settled();
});

/** Asks as long as something goes on; every answer must be right. */
async function healthyWhile<T>(work: Promise<T>): Promise<T> {
  let done = false;
  const asking = (async () => {
    while (!done) {
      const answer = await fetch(`${service.url}/healthz`, { signal: AbortSignal.timeout(10_000) });
      assert.equal(answer.status, 200);
      await answer.text();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  try {
    return (await Promise.all([work.finally(() => (done = true)), asking]))[0];
  } finally {
    done = true;
  }
}

/** A message of the other environment reaches its database. */
async function othersWork(): Promise<void> {
  const ann = await other.actor();
  const { id } = await other.group(ann, []);
  const { id: message } = await other.send(ann, id);
  await eventually(
    () => Promise.resolve(receiver.store.environments.get('env_other')?.message.has(message as string)),
    'the message of the other environment is in its database',
  );
}

for (const [what, start] of Object.entries(hostileCases))
  test(`docs/storage.md, Safety: the test fails and nothing else does. ${what}`, async () => {
    const hostile = await start();
    try {
      const put = await mine.api('PUT', '/v1/storage/database/a', { url: hostile.url });
      assert.equal(put.status, 200, JSON.stringify(put.body));
      const tried = await healthyWhile(mine.api('POST', '/v1/storage/database/test', { slot: 'a' }));
      assert.equal(tried.status, 200, JSON.stringify(tried.body));
      assert.equal(tried.body.ok, false, JSON.stringify(tried.body));
      assert.ok(hostile.connections() > 0, 'it was asked at all');
      assert.equal(service.process.exitCode ?? service.process.signalCode, null, service.output());
      await othersWork();
    } finally {
      await hostile.close();
    }
  });
