import assert from 'node:assert/strict';
import { test } from 'node:test';
import { catchUpAll } from '../src/bots.ts';
import { memoryStorage } from '../src/index.ts';
import type { Client } from '../src/index.ts';
import { connected, world } from './harness.ts';

/** A token that names its user, as real ones do. */
const token = (user: string) => `x.${Buffer.from(JSON.stringify({ sub: user })).toString('base64url')}.y`;
const userOf = (text: string) =>
  (JSON.parse(Buffer.from(text.split('.')[1]!, 'base64url').toString()) as { sub: string }).sub;

function stored() {
  const { clock, server, client } = world();
  server.userOf = userOf;
  const storage = memoryStorage();
  const ann = (more = {}) => client('ann', { token: () => token('ann'), storage, ...more });
  const cursors = () => server.frames.filter((f) => f.t === 'sync').map((f) => f.d.cursor);
  return { clock, server, storage, ann, cursors };
}
const names = (client: Client) => client.conversations.get().items.map((item) => item.id);

test('sdk#saved-list: the list and its cursor survive a restart: shown before the network answers, synced from the cursor', async () => {
  const { clock, server, ann, cursors } = stored();
  const [first, second] = [server.create(['ann', 'bob']), server.create(['ann', 'bob'])];
  server.send(first, 'bob', { text: 'one' });
  const before = await connected(ann(), clock);
  await clock.advance(3_000);
  const shown = before.conversations.get();
  assert.deepEqual([shown.items.length, shown.unreadTotal], [2, 1]);
  before.disconnect();
  await clock.advance(0);

  const late = server.create(['ann', 'bob']);
  server.send(second, 'bob', { text: 'two' });
  server.accept = () => 1006; // Nothing answers yet.
  const after = ann();
  const connecting = after.connect();
  await clock.advance(0);
  assert.equal(after.state, 'reconnecting');
  assert.deepEqual(after.conversations.get(), shown, 'what was there shows at once');
  server.accept = () => null;
  const pages = server.requests.length;
  await clock.advance(60_000);
  await connecting;
  assert.equal(cursors()[0], null);
  assert.notEqual(cursors().at(-1), null, 'from the stored cursor');
  assert.deepEqual(names(after).sort(), [first, second, late].sort());
  assert.equal(after.conversations.get().unreadTotal, 2);
  assert.ok(
    server.requests.slice(pages).every((r) => !r.includes('/messages')),
    'and no history is loaded',
  );
});

test('a conversation that one was removed from meanwhile is gone after the restart', async () => {
  const { clock, server, ann } = stored();
  const [kept, left] = [server.create(['ann', 'bob']), server.create(['ann', 'bob'])];
  const before = await connected(ann(), clock);
  await clock.advance(3_000);
  before.disconnect();
  await clock.advance(0);
  server.removeMember(left, 'ann');
  const after = await connected(ann(), clock);
  await clock.advance(3_000);
  assert.deepEqual(names(after), [kept]);
});

test('another user of the same storage sees nothing of it, and without a storage nothing is kept', async () => {
  const { clock, server, storage, ann } = stored();
  server.create(['ann', 'bob']);
  (await connected(ann(), clock)).disconnect();
  await clock.advance(3_000);
  server.accept = () => 1006;
  const bob = ann({ token: () => token('bob') });
  void bob.connect().catch(() => undefined);
  await clock.advance(0);
  assert.deepEqual(names(bob), []);
  bob.disconnect();
  assert.equal((await storage.list('list/')).length, 1);
  const none = ann({ storage: undefined });
  void none.connect().catch(() => undefined);
  await clock.advance(0);
  assert.deepEqual(names(none), []);
  none.disconnect();
});

test('sdk#one-user: a client whose tokens change to another user shows and sends nothing of the first one as the other', async () => {
  const { clock, server, storage, ann } = stored();
  server.create(['ann', 'bob']);
  const theirs = server.create(['bob', 'cid']);
  let user = 'ann';
  const client = await connected(ann({ token: () => token(user) }), clock);
  await clock.advance(3_000);
  const [saved] = await storage.list('list/');
  const shown = names(client);
  const errors: string[] = [];
  client.on('error', ({ code, message }) => errors.push(`${code}: ${message}`));
  client.disconnect();
  client.conversations.send(shown[0]!, 'of ann');
  user = 'bob';
  server.accept = (text) => (userOf(text) === user ? null : 4001);
  void client.connect().catch(() => undefined);
  await clock.advance(60_000);
  assert.deepEqual([client.userId, names(client)], ['ann', shown]);
  assert.ok(!shown.includes(theirs));
  const sends = () => server.frames.filter((f) => f.t === 'message.send').length;
  assert.equal(sends(), 0);
  assert.deepEqual(await storage.list('list/'), [saved]);
  assert.ok(errors.includes('token_provider: wrong user'), errors.join());
  user = 'ann';
  await clock.advance(60_000);
  assert.deepEqual([client.state, sends()], ['connected', 1]);
  client.disconnect();
});

test('details that were not loaded when the process ended are loaded by the next one', async () => {
  const { clock, server, ann } = stored();
  const cid = server.create(['ann', 'bob']);
  const before = await connected(ann(), clock);
  server.accept = () => 1006;
  server.sockets.values().next().value!.end(1006, '');
  server.rename(cid, 'other');
  // Longer than the 5 s by which a sync overlaps the one before.
  await clock.advance(10_000);
  const never = new Promise<void>(() => {});
  server.onRest = () => never;
  server.accept = () => null;
  await clock.advance(20_000);
  before.disconnect();
  await clock.advance(0);
  server.onRest = () => {};
  const after = await connected(ann(), clock);
  await clock.advance(3_000);
  assert.equal(after.conversations.get().items[0]?.name, 'other');
});

test('a list that was saved in an earlier life of the store is loaded again', async () => {
  const { clock, server, ann } = stored();
  const cid = server.create(['ann', 'bob']);
  const before = await connected(ann(), clock);
  await clock.advance(60_000);
  server.send(cid, 'bob', { text: 'ghost' });
  await clock.advance(3_000);
  before.disconnect();
  await clock.advance(0);
  server.restore(cid, 1);
  const after = await connected(ann(), clock);
  await clock.advance(3_000);
  assert.equal(after.conversations.get().unreadTotal, 0);
  assert.equal(after.conversations.get().items[0]?.lastMessage, null);
});

const heard = (client: Client) => {
  const got: string[] = [];
  client.on('message', ({ conversationId, seq, message }) =>
    got.push(`${conversationId} ${seq} ${message.text}`),
  );
  return got;
};

test('catchUpAll: across a reconnect every event of every conversation comes once and in order', async () => {
  const { clock, server, ann } = stored();
  const [a, b] = [server.create(['ann', 'bob']), server.create(['ann', 'bob'])];
  server.send(a, 'bob', { text: 'history' });
  const bot = ann({ catchUp: catchUpAll, storage: undefined });
  const got = heard(bot);
  await connected(bot, clock);
  server.send(a, 'bob', { text: 'live' });
  await clock.advance(0);
  const [socket] = server.sockets;
  socket!.end(1006, '');
  for (const text of ['1', '2']) for (const cid of [a, b]) server.send(cid, 'bob', { text });
  const fresh = server.create(['ann', 'bob']);
  server.send(fresh, 'bob', { text: 'new' });
  await clock.advance(60_000);
  assert.equal(bot.state, 'connected');
  bot.conversations.open(a);
  await clock.advance(1_000);
  server.send(a, 'bob', { text: '3' });
  await clock.advance(1_000);
  const of = (cid: string) => got.filter((line) => line.startsWith(cid));
  assert.deepEqual(of(a), [`${a} 3 live`, `${a} 4 1`, `${a} 5 2`, `${a} 6 3`], 'no history, no repeats');
  assert.deepEqual(of(b), [`${b} 2 1`, `${b} 3 2`]);
  assert.deepEqual(of(fresh), [`${fresh} 2 new`]);
});

test('catchUpAll with a storage goes on where the process before stopped', async () => {
  const { clock, server, ann } = stored();
  const a = server.create(['ann', 'bob']);
  const before = await connected(ann({ catchUp: catchUpAll }), clock);
  server.send(a, 'bob', { text: 'seen' });
  await clock.advance(3_000);
  before.disconnect();
  await clock.advance(0);
  server.send(a, 'bob', { text: 'missed' });
  const after = ann({ catchUp: catchUpAll });
  const got = heard(after);
  await connected(after, clock);
  await clock.advance(3_000);
  assert.deepEqual(got, [`${a} 3 missed`]);
});

test('catchUpAll: a conversation begun while the bot was away is told from its beginning, also if the next event is there before the sync', async () => {
  const { clock, server, ann } = stored();
  const bot = ann({ catchUp: catchUpAll, storage: undefined });
  const got = heard(bot);
  await connected(bot, clock);
  server.sockets.values().next().value!.end(1006, '');
  const fresh = server.create(['ann', 'bob']);
  server.send(fresh, 'bob', { text: 'first' });
  server.onFrame = (_, { t }) => {
    if (t !== 'sync') return;
    server.onFrame = () => {};
    server.send(fresh, 'bob', { text: 'second' });
  };
  await clock.advance(60_000);
  server.send(fresh, 'bob', { text: 'third' });
  await clock.advance(1_000);
  assert.deepEqual(got, [`${fresh} 2 first`, `${fresh} 3 second`, `${fresh} 4 third`]);
});

test('catchUpAll: a bot that comes back to a conversation is told nothing twice', async () => {
  const { clock, server, ann } = stored();
  const a = server.create(['ann', 'bob']);
  const before = await connected(ann({ catchUp: catchUpAll }), clock);
  await clock.advance(3_000);
  before.disconnect();
  await clock.advance(0);
  const bot = ann({ catchUp: catchUpAll });
  const got = heard(bot);
  await connected(bot, clock);
  server.send(a, 'bob', { text: 'inside' });
  server.removeMember(a, 'ann');
  server.send(a, 'bob', { text: 'outside' });
  await clock.advance(3_000);
  server.addMember(a, 'ann');
  server.send(a, 'bob', { text: 'back' });
  await clock.advance(3_000);
  assert.deepEqual(got, [`${a} 2 inside`, `${a} 6 back`]);
});

test('catchUpAll: what the service no longer keeps is told as an error, and what follows arrives', async () => {
  const { clock, server, ann } = stored();
  const a = server.create(['ann', 'bob']);
  const bot = await connected(ann({ catchUp: catchUpAll, storage: undefined }), clock);
  const got = heard(bot);
  const errors: string[] = [];
  bot.on('error', (e) => errors.push(e.code));
  const [socket] = server.sockets;
  socket!.end(1006, '');
  for (const text of ['1', '2', '3']) server.send(a, 'bob', { text });
  server.floor = 3;
  await clock.advance(60_000);
  assert.ok(errors.includes('resync_required'));
  server.send(a, 'bob', { text: '4' });
  await clock.advance(1_000);
  assert.deepEqual(got, [`${a} 5 4`]);
});

test('catchUpAll: after the store was restored to an earlier state it goes on from there, also in the next process', async () => {
  const { clock, server, ann } = stored();
  const a = server.create(['ann', 'bob']);
  const bot = await connected(ann({ catchUp: catchUpAll }), clock);
  const got = heard(bot);
  await clock.advance(60_000);
  for (const text of ['1', '2', '3']) server.send(a, 'bob', { text });
  await clock.advance(3_000);
  server.restore(a, 2);
  await clock.advance(60_000);
  server.send(a, 'bob', { text: 'after' });
  await clock.advance(3_000);
  assert.deepEqual(got, [`${a} 2 1`, `${a} 3 2`, `${a} 4 3`, `${a} 3 after`]);
  bot.disconnect();
  await clock.advance(0);
  server.restore(a, 1);
  const next = ann({ catchUp: catchUpAll });
  const heardNext = heard(next);
  await connected(next, clock);
  server.send(a, 'bob', { text: 'again' });
  await clock.advance(3_000);
  assert.deepEqual(heardNext, [`${a} 2 again`]);
});
