import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { assertContiguous } from '../gateway/live-scene.ts';
import { startStoreProxy } from '../support/store-proxy.ts';
import type { StoreProxy } from '../support/store-proxy.ts';
import { use, useService } from '../support/use.ts';
import { outsidePostgres } from './tools.ts';

/** What a network does to the connections to the store: answers that are lost, and connections that die without a word. */

const postgres = use(outsidePostgres, (p) => p.dispose());
const proxy: StoreProxy = use(
  () => startStoreProxy(postgres.connection as Parameters<typeof startStoreProxy>[0]),
  (p) => p.close(),
);
const { scene, server, service } = useService({
  env: () => ({ DATABASE_URL: proxy.url, CHAT_MASTER_KEY: randomBytes(32).toString('base64') }),
});

test('a message whose commit was not answered reaches the others when its sender repeats it, and without that too', async () => {
  const [ann, bob] = await Promise.all([scene.actor(), scene.person()]);
  const conv = await scene.group(ann, [bob.actor]);
  for (const repeats of [true, false]) {
    const body = { clientMsgId: randomUUID(), text: `unanswered ${randomUUID()}` };
    const lost = proxy.loseAnswerTo(body.text);
    const path = `/v1/conversations/${conv.id}/messages`;
    assert.equal((await ann.api('POST', path, body)).status, 503);
    await lost;
    if (repeats) assert.equal((await ann.api('POST', path, body)).body.text, body.text);
    const event = await bob.socket.next((f) => f.t === 'event' && f.d.message?.text === body.text);
    assert.equal(event.e, 'message.new');
  }
  await bob.socket.barrier();
  assertContiguous(bob.socket, conv.id);
});

test('an edit and a new member whose commit was not answered are told all the same', async () => {
  const [ann, bob, cid] = await Promise.all([scene.actor(), scene.person(), scene.person()]);
  const conv = await scene.group(ann, [bob.actor]);
  const message = await scene.send(ann, conv.id);
  const edit = { text: 'edited', expectedVersion: 1 };
  let lost = proxy.loseCommitOf(message.id);
  assert.equal((await ann.api('PATCH', `/v1/messages/${message.id}`, edit)).status, 503);
  await lost;
  assert.equal((await bob.socket.event('message.updated', conv.id)).d.message.text, 'edited');
  lost = proxy.loseCommitOf(cid.actor.id);
  const members = `/v1/conversations/${conv.id}/members`;
  assert.equal((await ann.api('POST', members, { userIds: [cid.actor.id] })).status, 503);
  await lost;
  await cid.socket.event('member.added', conv.id);
  await scene.send(ann, conv.id, { text: 'welcome' });
  assert.equal((await cid.socket.event('message.new', conv.id)).d.message.text, 'welcome');
  assertContiguous(bob.socket, conv.id);
});

test('connections to the store that die without a word are replaced, while new ones work', async (t) => {
  const [ann, bob] = await Promise.all([scene.actor(), scene.person()]);
  const conv = await scene.group(ann, [bob.actor]);
  await scene.send(ann, conv.id);
  proxy.silence();
  const since = performance.now();
  const body = { clientMsgId: randomUUID(), text: 'into the dark' };
  const path = `/v1/conversations/${conv.id}/messages`;
  const ready = async () => (await server('GET', '/readyz')).status;
  const notReady = ready();
  const answers = [];
  do answers.push((await ann.api('POST', path, body)).status);
  while (answers.at(-1) !== 201 && answers.length < 20);
  const back = performance.now() - since;
  assert.equal(answers.at(-1), 201, `answers: ${answers.join(' ')}`);
  t.diagnostic(`acknowledged again after ${Math.round(back)} ms, and ${answers.length - 1} refusals`);
  assert.equal(await notReady, 503, '/readyz looks through connections that carry nothing');
  assert.equal(await ready(), 200);
  await bob.socket.next((f) => f.d?.message?.text === body.text);
  while (!service.output().includes('dead connections were replaced')) await delay(20);
});
