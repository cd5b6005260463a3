import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refusal } from './fake-server.ts';
import { connected, world } from './harness.ts';

/** sdk#pins, in every order in which answers and events may come. */

async function talk() {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const messages = ['one', 'two'].map((text) => server.send(cid, 'bob', { text }));
  const ann = await connected(client('ann'), clock);
  const conversation = ann.conversations.open(cid);
  /** The modules are loaded, and what is under way arrives. */
  const settle = async (): Promise<void> => {
    await Promise.all([import('../src/features/conversation.ts'), import('../src/features/pins.ts')]);
    for (let i = 0; i < 5; i++) await clock.advance(0);
  };
  await settle();
  const texts = () => conversation.pins.get().items.map((item) => item.text);
  const marks = () => conversation.messages.get().items.map((item) => item.pinned?.by);
  return { clock, server, ann, cid, messages, conversation, settle, texts, marks };
}

test('an answer that the stream overtook changes nothing', async () => {
  const { server, messages, conversation, settle, texts, marks } = await talk();
  texts();
  await settle();
  let go = (): void => undefined;
  const held = new Promise<void>((resolve) => (go = resolve));
  server.onRest = (method, _path, when) => (method === 'PUT' && when === 'after' ? held : undefined);
  const pinning = conversation.pin(messages[0]!.id);
  await settle();
  assert.deepEqual([texts(), marks()], [['one'], ['ann', undefined]]);
  server.pin(messages[0]!.id, false, 'bob');
  await settle();
  go();
  await pinning;
  await settle();
  assert.deepEqual([texts(), marks()], [[], [undefined, undefined]]);
});

test('what happened while the list was loading, or could not be loaded, is in it', async () => {
  const { server, messages, conversation, settle, texts } = await talk();
  let go = (): void => undefined;
  let held: Promise<void> | undefined = new Promise<void>((resolve) => (go = resolve));
  server.onRest = (_method, path, when) => (path.endsWith('/pins') && when === 'after' ? held : undefined);
  assert.deepEqual(texts(), []);
  await settle();
  server.pin(messages[1]!.id, true, 'bob');
  await settle();
  held = undefined;
  go();
  await settle();
  assert.deepEqual(texts(), ['two']);
  assert.equal(conversation.pins.get().status, 'ready');
});

test('a list that was refused is asked for again, and one that is off is empty', async () => {
  const { server, cid, messages, ann, conversation, settle, texts } = await talk();
  server.pin(messages[1]!.id, true, 'bob');
  await settle();
  let refuse = true;
  server.onRest = (_method, path, when) => {
    if (refuse && path.endsWith('/pins') && when === 'before') throw new Refusal('not_member', 403);
  };
  assert.deepEqual(texts(), []);
  await settle();
  assert.equal(conversation.pins.get().status, 'loading');
  refuse = false;
  server.send(cid, 'bob', { text: 'three' });
  await settle();
  assert.deepEqual(texts(), ['two']);

  server.features = [];
  ann.disconnect();
  await ann.connect();
  const asked = server.requests.length;
  await assert.rejects(conversation.pin(messages[0]!.id), { code: 'feature_disabled' });
  assert.ok(server.requests.slice(asked).every((request) => !request.endsWith('/pin')));
});

test('a call waits for the one before it, and the last intention shows at once', async () => {
  const { server, messages, conversation, settle, texts, marks } = await talk();
  texts();
  await settle();
  let go = (): void => undefined;
  const held = new Promise<void>((resolve) => (go = resolve));
  server.onRest = (method, _path, when) => (method === 'PUT' && when === 'before' ? held : undefined);
  const { id } = messages[0]!;
  const all = Promise.all([conversation.pin(id), conversation.unpin(id)]);
  await settle();
  assert.deepEqual([texts(), marks()], [[], [undefined, undefined]]);
  go();
  await all;
  await settle();
  assert.deepEqual([texts(), marks()], [[], [undefined, undefined]]);
  assert.equal(server.conversations.get(messages[0]!.conversationId)!.events.at(-1)!.e, 'message.pinned');
});

test('the last intention wins, also where a refusal comes between', async () => {
  const { server, messages, conversation, settle, texts, marks } = await talk();
  texts();
  await settle();
  const { id } = messages[0]!;
  server.onRest = (method, _path, when) => {
    if (method === 'DELETE' && when === 'before') throw new Refusal('forbidden', 403);
  };
  const all = Promise.allSettled([conversation.pin(id), conversation.unpin(id), conversation.pin(id)]);
  await settle();
  assert.deepEqual(marks(), ['ann', undefined]);
  const results = await all;
  assert.deepEqual(
    results.map((r) => r.status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  await settle();
  assert.deepEqual([texts(), marks()], [['one'], ['ann', undefined]]);
});
