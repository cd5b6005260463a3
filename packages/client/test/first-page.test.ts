import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refusal } from './fake-server.ts';
import { connected, texts, world } from './harness.ts';

/** First pages that cannot be loaded: the application says so, and may try again at once. */

test('a conversation says why its first page is not there, and jumpToLatest asks at once', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  server.send(cid, 'bob', { text: 'hello' });
  let away = true;
  server.onRest = (_, path, when) => {
    if (away && when === 'before' && path.includes('/messages'))
      throw new Refusal('history_unavailable', 503, 600_000);
  };
  const ann = await connected(client('ann'), clock);
  const conversation = ann.conversations.open(cid);
  await clock.advance(0);
  const { status, error } = conversation.messages.get();
  assert.deepEqual([status, error?.code], ['loading', 'history_unavailable']);
  away = false;
  await clock.advance(60_000);
  assert.equal(conversation.messages.get().status, 'loading', 'the service asked to wait');
  const loaded = conversation.jumpToLatest();
  await clock.advance(1_000);
  await loaded;
  assert.deepEqual([texts(conversation), conversation.messages.get().error], [['hello'], undefined]);
  // Later pages have errors of their own.
  away = true;
  void conversation.jumpToLatest();
  await clock.advance(1_000);
  assert.deepEqual([texts(conversation), conversation.messages.get().error], [['hello'], undefined]);
});

test('the list says why its first page is not there, and loadMore asks at once', async () => {
  const { clock, server, client } = world();
  server.create(['ann', 'bob']);
  let away = true;
  let asked = 0;
  server.onRest = (_, path, when) => {
    if (when !== 'before' || !/\/conversations(\?|$)/.test(path)) return;
    asked++;
    if (away) throw new Refusal('unavailable', 503, 600_000);
  };
  const ann = await connected(client('ann'), clock);
  const list = () => ann.conversations.get();
  assert.deepEqual([list().items.length, list().error?.code, asked], [0, 'unavailable', 1]);
  away = false;
  const loaded = ann.conversations.loadMore();
  await clock.advance(0);
  await loaded;
  assert.deepEqual([list().items.length, list().error, asked], [1, undefined, 2]);
});

test('sdk#backoff: a list that stays away is asked for ever more rarely, and comes when it is back', async () => {
  const { clock, server, client } = world();
  server.create(['ann', 'bob']);
  let away = true;
  let syncs = 0;
  server.onFrame = (_, frame) => {
    if (frame['t'] === 'sync') syncs++;
  };
  server.onRest = (_, path, when) => {
    if (away && when === 'before' && /\/conversations(\?|$)/.test(path)) throw new Refusal('internal', 500);
  };
  const ann = client('ann');
  void ann.connect();
  await clock.advance(600_000);
  assert.ok(syncs > 10 && syncs < 60, `it asked ${syncs} times in ten minutes`);
  away = false;
  await clock.advance(60_000);
  assert.equal(ann.conversations.get().items.length, 1);
});
