import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryStorage } from '../src/index.ts';
import { Refusal } from './fake-server.ts';
import { connected, statuses, texts, world } from './harness.ts';

test('sdk#procedure: connect authenticates, syncs and lists; the token is not in the URL', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  server.send(cid, 'bob', { text: 'hi' });
  const ann = await connected(client('ann'), clock);
  assert.equal(ann.state, 'connected');
  assert.equal(ann.userId, 'ann');
  assert.deepEqual(
    server.frames.map((f) => f.t),
    ['auth', 'sync'],
  );
  assert.deepEqual(server.urls, ['ws://chat.test/v1?env=env_test&sdk=parley-js%2F0.1.0']);
  assert.deepEqual(server.protocols, ['chat.v1']);
  const { items, unreadTotal } = ann.conversations.get();
  assert.equal(items.length, 1);
  assert.equal(items[0]!.unreadCount, 1);
  assert.equal(items[0]!.lastMessage!.text, 'hi');
  assert.equal(unreadTotal, 1);
});

test('two clients talk; echo and ack make one message whichever comes first', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  const bob = await connected(client('bob'), clock);
  const a = ann.conversations.open(cid);
  const b = bob.conversations.open(cid);
  await clock.advance(0);
  const seenTexts: string[] = [];
  a.messages.subscribe(() => seenTexts.push(texts(a).join()));
  const sent = a.send('one');
  assert.equal(sent.status, 'pending');
  assert.deepEqual(statuses(a), ['one:pending']);
  await clock.advance(0);
  assert.deepEqual(statuses(a), ['one:sent']);
  assert.deepEqual(statuses(b), ['one:sent']);
  assert.ok(
    seenTexts.every((t) => t === 'one'),
    'never doubled on the way',
  );
  assert.equal(bob.conversations.get().unreadTotal, 1);
  assert.equal(ann.conversations.get().unreadTotal, 0);
  b.markRead();
  await clock.advance(0);
  assert.equal(bob.conversations.get().unreadTotal, 0);
  assert.equal(server.unread(server.conversations.get(cid)!, 'bob'), 0);
});

test('a message whose ack was lost with the connection is never shown twice while it is sent again', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  const [socket] = server.sockets;
  socket!.push = () => undefined;
  const seen: string[] = [];
  a.messages.subscribe(() => seen.push(texts(a).join()));
  a.send('one');
  await clock.advance(0);
  socket!.end(1006, '');
  server.latency = () => 500;
  await clock.advance(60_000);
  assert.deepEqual(statuses(a), ['one:sent']);
  assert.ok(
    seen.every((t) => t === 'one' || t === ''),
    seen.join(' | '),
  );
});

test('sdk#gap: a lost event is fetched and applied in order', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  const [socket] = server.sockets;
  const push = socket!.push.bind(socket!);
  socket!.push = (frame) => void (frame.t === 'event' && frame.seq === 2 ? null : push(frame));
  server.send(cid, 'bob', { text: 'lost' });
  server.send(cid, 'bob', { text: 'next' });
  await clock.advance(0);
  assert.deepEqual(texts(a), ['lost', 'next']);
  assert.ok(server.requests.some((r) => r.includes('/events?after=1')));
  await clock.advance(3_000);
  assert.equal(ann.conversations.get().unreadTotal, 2, 'unread is settled by a sync');
});

test('sdk#gap: 410 loads the latest page', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  ann.disconnect();
  for (let i = 0; i < 60; i++) server.send(cid, 'bob', { text: `${i}` });
  server.floor = 50;
  await connected(ann, clock);
  assert.equal(texts(a).length, 50);
  assert.equal(texts(a).at(-1), '59');
  assert.equal(a.messages.get().hasOlder, true);
  await a.loadOlder();
  assert.equal(texts(a).length, 60);
  assert.equal(a.messages.get().hasOlder, false);
});

test('sdk#outbox: sends while offline are queued, kept in order and flushed after hello', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  for (const socket of server.sockets) socket.end(1006, '');
  await clock.advance(0);
  assert.equal(ann.state, 'reconnecting');
  a.send('1');
  a.send('2');
  assert.deepEqual(statuses(a), ['1:pending', '2:pending']);
  await clock.advance(1_000);
  assert.equal(ann.state, 'connected');
  assert.deepEqual(statuses(a), ['1:sent', '2:sent']);
  assert.deepEqual(
    server.conversations.get(cid)!.messages.map((m) => m.text),
    ['1', '2'],
  );
});

test('a failed message holds later ones back until it is retried or discarded', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  let refuse = true;
  server.onFrame = (socket, frame) => {
    if (frame.t !== 'message.send' || frame.d.text !== 'bad' || !refuse) return;
    socket.push({ t: 'error', re: frame.id, code: 'forbidden', message: 'no' });
    return 'ignore';
  };
  const bad = a.send('bad');
  a.send('later');
  await clock.advance(0);
  const [first, second] = a.messages.get().items;
  assert.deepEqual([first!.status, first!.error!.code], ['failed', 'forbidden']);
  assert.deepEqual([second!.status, second!.error!.code], ['failed', 'blocked']);
  refuse = false;
  assert.equal(a.retry(bad.clientMsgId!), true);
  await clock.advance(0);
  assert.deepEqual(statuses(a), ['bad:sent', 'later:sent']);
});

test('sdk#outbox: a text that does not fit a frame goes over REST, once', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann']);
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  const big = '😀'.repeat(5_000);
  a.send(big);
  a.send('small');
  await clock.advance(0);
  assert.deepEqual(statuses(a), [`${big}:sent`, 'small:sent']);
  assert.equal(server.requests.filter((r) => r.startsWith('POST')).length, 1);
});

test('transient errors of a send are retried after retryAfterMs, in order', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann']);
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  let left = 2;
  server.onFrame = (socket, frame) => {
    if (frame.t !== 'message.send' || left-- <= 0) return;
    socket.push({ t: 'error', re: frame.id, code: 'rate_limited', message: '', retryAfterMs: 700 });
    return 'ignore';
  };
  a.send('1');
  a.send('2');
  await clock.advance(1_000);
  assert.deepEqual(statuses(a), ['1:pending', '2:pending']);
  await clock.advance(1_500);
  assert.deepEqual(statuses(a), ['1:sent', '2:sent']);
});

test('edits and deletes reach the window; a soft delete is a tombstone, a hard one is gone', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const m1 = server.send(cid, 'bob', { text: '1' });
  const m2 = server.send(cid, 'bob', { text: '2' });
  const m3 = server.send(cid, 'bob', { text: '3' });
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  server.edit(m1.id, '1b');
  server.delete(m2.id);
  server.delete(m3.id, true);
  await clock.advance(2_000);
  assert.deepEqual(texts(a), ['1b', null]);
  assert.equal(a.messages.get().items[1]!.deletedAt !== null, true);
  const [item] = ann.conversations.get().items;
  assert.equal(item!.unreadCount, 1);
  assert.equal(item!.lastMessage!.text, '1b');
});

test('sdk#removed: a removed member drops the conversation; added again, it comes back whole', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  server.send(cid, 'bob', { text: '1' });
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  server.removeMember(cid, 'ann');
  await clock.advance(0);
  assert.equal(a.messages.get().status, 'removed');
  assert.equal(ann.conversations.get().items.length, 0);
  server.send(cid, 'bob', { text: '2' });
  server.addMember(cid, 'ann');
  server.send(cid, 'bob', { text: '3' });
  await clock.advance(3_000);
  assert.deepEqual(texts(a), ['1', '2', '3']);
  assert.equal(ann.conversations.get().items[0]!.unreadCount, 1);
});

test('sdk#delivered: delivered is acknowledged at most once a second, with the last value', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  await connected(client('ann'), clock);
  for (let i = 0; i < 5; i++) {
    server.send(cid, 'bob', { text: `${i}` });
    await clock.advance(100);
  }
  await clock.advance(2_000);
  const acks = server.frames.filter((f) => f.t === 'delivered');
  assert.deepEqual(
    acks.map((f) => f.d.items),
    [[{ cid, seq: 6 }]],
  );
});

test('sdk#typing: typing starts at most once in 3 s, stops on send, and expires after 6 s', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  const bob = await connected(client('bob'), clock);
  const a = ann.conversations.open(cid);
  const b = bob.conversations.open(cid);
  await clock.advance(0);
  const typed = () => server.frames.filter((f) => f.t === 'typing').map((f) => f.d.state);
  a.startTyping();
  a.startTyping();
  await clock.advance(2_999);
  a.startTyping();
  assert.deepEqual(typed(), ['start']);
  assert.deepEqual(b.typing.get(), ['ann']);
  await clock.advance(3_001);
  assert.deepEqual(b.typing.get(), []);
  a.startTyping();
  await clock.advance(0);
  assert.deepEqual(b.typing.get(), ['ann']);
  a.send('done');
  await clock.advance(0);
  assert.deepEqual(typed(), ['start', 'start', 'stop']);
  assert.deepEqual(b.typing.get(), []);
});

test('presence is watched again after every hello', async () => {
  const { clock, server, client } = world();
  const ann = await connected(client('ann'), clock);
  await ann.presence.watch(['bob']);
  assert.equal(ann.presence.store.get().get('bob')!.online, true);
  for (const socket of server.sockets) socket.end(1006, '');
  await clock.advance(1_000);
  const [socket] = server.sockets;
  socket!.push({ t: 'presence', d: { userId: 'bob', online: false, lastSeenAt: server.now() } });
  await clock.advance(0);
  assert.equal(ann.presence.store.get().get('bob')!.online, false);
  assert.equal(server.frames.filter((f) => f.t === 'presence.watch').length, 2);
});

test('sdk#token-refresh: REST refreshes an expired token and retries once', async () => {
  const { clock, server, client } = world();
  server.create(['ann']);
  let tokens = 0;
  let expired = true;
  server.onRest = (_method, _path, when) => {
    if (when === 'before' && expired) {
      expired = false;
      throw new Refusal('token_expired', 401);
    }
  };
  const ann = await connected(client('ann', { token: () => `ann#${++tokens}` }), clock);
  assert.equal(ann.conversations.get().items.length, 1);
  assert.equal(tokens, 2);
});

test('a read mark made offline arrives later; a sync in between does not bring the count back', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  server.send(cid, 'bob', { text: '1' });
  const ann = await connected(client('ann'), clock);
  for (const socket of server.sockets) socket.end(1006, '');
  await clock.advance(0);
  ann.conversations.markRead(cid);
  const counts: number[] = [];
  ann.conversations.subscribe(() => counts.push(ann.conversations.get().unreadTotal));
  await clock.advance(5_000);
  assert.equal(server.unread(server.conversations.get(cid)!, 'ann'), 0);
  assert.deepEqual([...new Set(counts)], [0]);
});

test('paging both ways: jumpTo shows a middle part, loadNewer leads back to the live end', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  for (let i = 0; i < 120; i++) server.send(cid, 'bob', { text: `${i}` });
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  await a.jumpTo(40);
  assert.equal(texts(a).length, 50);
  assert.equal(a.messages.get().hasNewer, true);
  server.send(cid, 'bob', { text: 'live' });
  await clock.advance(0);
  assert.equal(texts(a).includes('live'), false, 'no hole in the window');
  while (a.messages.get().hasNewer) await a.loadNewer();
  while (a.messages.get().hasOlder) await a.loadOlder();
  assert.deepEqual(texts(a), [...Array.from({ length: 120 }, (_, i) => `${i}`), 'live']);
});

test('sdk#resync: fullReload starts over, windows included', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const gone = server.create(['ann', 'bob']);
  server.send(cid, 'bob', { text: '1' });
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  for (const socket of server.sockets) socket.end(1006, '');
  await clock.advance(0);
  server.send(cid, 'bob', { text: '2' });
  server.conversations.delete(gone);
  const before = server.requests.length;
  server.onFrame = (socket, frame) => {
    if (frame.t !== 'sync') return;
    const conversations = [{ id: cid, lastSeq: 3, unreadCount: 2 }];
    socket.push({ t: 'ack', re: frame.id, d: { conversations, removed: [], cursor: 'c', fullReload: true } });
    return 'ignore';
  };
  await clock.advance(1_000);
  assert.deepEqual(
    ann.conversations.get().items.map((c) => c.id),
    [cid],
  );
  assert.deepEqual(texts(a), ['1', '2']);
  const requests = server.requests.slice(before);
  assert.ok(requests.includes(`GET /conversations/${cid}/messages?limit=50`), 'the latest page');
  assert.ok(!requests.some((r) => r.includes('/events')));
});

test('who is typing, and how often it is told, does not depend on a clock that is set', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const [a, b] = await Promise.all(
    ['ann', 'bob'].map(async (user) => (await connected(client(user), clock)).conversations.open(cid)),
  );
  await clock.advance(0);
  const started = () => server.frames.filter((f) => f.t === 'typing' && f.d.state === 'start').length;
  a!.startTyping();
  await clock.advance(0);
  assert.deepEqual(b!.typing.get(), ['ann']);
  clock.set = -3_600_000;
  await clock.advance(3_000);
  a!.startTyping();
  await clock.advance(0);
  assert.equal(started(), 2);
  await clock.advance(6_000);
  assert.deepEqual(b!.typing.get(), []);
});

test('a store that was restored to an earlier state: nothing of what it lost is shown, and what follows is', async () => {
  const { clock, server, client } = world();
  const [cid, lost] = [server.create(['ann', 'bob']), server.create(['ann', 'bob'])];
  server.send(cid, 'bob', { text: 'kept' });
  const ann = await connected(client('ann'), clock);
  const [a, l] = [cid, lost].map((id) => ann.conversations.open(id));
  await clock.advance(30_000);
  // After the last sync: its cursor knows nothing of them.
  for (const text of ['ghost 1', 'ghost 2']) server.send(cid, 'bob', { text });
  server.send(lost, 'bob', { text: 'ghost 3' });
  await clock.advance(0);
  assert.deepEqual(texts(a!), ['kept', 'ghost 1', 'ghost 2']);
  a!.markRead();
  await clock.advance(0);
  server.conversations.get(cid)!.members.get('ann')!.lastReadSeq = 1;
  server.restore(cid, 2);
  server.restore(lost, 1);
  await clock.advance(30_000);
  assert.equal(ann.state, 'connected');
  assert.deepEqual([texts(a!), texts(l!)], [['kept'], []]);
  assert.equal(ann.conversations.get().unreadTotal, 1);
  assert.equal(ann.conversations.get().items.find((c) => c.id === cid)?.lastReadSeq, 1);
  server.send(cid, 'bob', { text: 'new' });
  await clock.advance(1_000);
  assert.deepEqual(texts(a!), ['kept', 'new']);
  assert.equal(ann.conversations.get().items.find((c) => c.id === cid)?.lastMessage?.text, 'new');
});

test('sdk#resync: the resync_required frame reloads that conversation; resync_hint runs sync', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  const [socket] = server.sockets;
  const push = socket!.push.bind(socket!);
  socket!.push = (frame) => void (frame.t === 'event' ? null : push(frame));
  server.send(cid, 'bob', { text: 'lost' });
  push({ t: 'resync_required', d: { cid } });
  await clock.advance(2_000);
  assert.deepEqual(texts(a), ['lost']);
  server.send(cid, 'bob', { text: 'lost too' });
  push({ t: 'resync_hint', d: {} });
  await clock.advance(0);
  assert.deepEqual(texts(a), ['lost', 'lost too']);
  assert.equal(ann.conversations.get().unreadTotal, 2);
});

test('sdk#closes, 1009: the frame is not sent again; the message goes over REST', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann']);
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(0);
  server.onFrame = (socket, frame) => {
    if (frame.t !== 'message.send') return;
    socket.end(1009, '');
    return 'ignore';
  };
  a.send('cursed');
  await clock.advance(2_000);
  assert.deepEqual(statuses(a), ['cursed:sent']);
  assert.equal(server.frames.filter((f) => f.t === 'message.send').length, 1);
});

test('a message sent from another device of ours, and one that the other tab sent, show once', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann']);
  const one = await connected(client('ann'), clock);
  const two = await connected(client('ann'), clock);
  const [a, b] = [one.conversations.open(cid), two.conversations.open(cid)];
  await clock.advance(0);
  a.send('same');
  b.send('same');
  await clock.advance(0);
  assert.deepEqual(statuses(a), ['same:sent', 'same:sent']);
  assert.deepEqual(statuses(b), ['same:sent', 'same:sent']);
  assert.equal(new Set(a.messages.get().items.map((m) => m.id)).size, 2);
});

test('unsent messages of the last launch show before hello and are sent after it', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann']);
  const storage = memoryStorage();
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const jwt = `${encode({ alg: 'none' })}.${encode({ sub: 'ann' })}.`;
  const first = client('ann', { storage, token: () => jwt });
  server.accept = () => 1006;
  void first.connect().catch(() => {});
  await clock.advance(0);
  first.conversations.send(cid, 'unsent');
  await clock.advance(0);
  first.disconnect();
  const second = client('ann', { storage, token: () => jwt });
  const a = second.conversations.open(cid);
  const connecting = second.connect();
  await clock.advance(0);
  assert.deepEqual(statuses(a), ['unsent:pending']);
  server.accept = () => null;
  server.userOf = () => 'ann';
  await clock.advance(60_000);
  await connecting;
  assert.deepEqual(statuses(a), ['unsent:sent']);
});

test('createDirect and createGroup give the handle that open gives: it shows, sends and hears', async () => {
  const { clock, server, client } = world();
  const [ann, bob] = [await connected(client('ann'), clock), await connected(client('bob'), clock)];
  for (const made of [ann.conversations.createDirect('bob'), ann.conversations.createGroup(['bob'])]) {
    await clock.advance(0);
    const chat = await made;
    const there = bob.conversations.open(chat.id);
    await clock.advance(0);
    chat.send({ text: 'hi' });
    await clock.advance(2_000);
    server.send(chat.id, 'bob', { text: 'hello' });
    await clock.advance(0);
    for (const handle of [chat, there]) assert.deepEqual(texts(handle), ['hi', 'hello']);
    assert.deepEqual(texts(ann.conversations.open(chat.id)), ['hi', 'hello']);
  }
});
