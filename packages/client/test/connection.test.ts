import assert from 'node:assert/strict';
import { test } from 'node:test';
import { afterClose, backoff } from '../src/connection/backoff.ts';
import type { FakeSocket } from './fake-server.ts';
import { connected, world } from './harness.ts';

const only = (sockets: Set<FakeSocket>): FakeSocket => {
  assert.equal(sockets.size, 1);
  return [...sockets][0]!;
};

test('sdk#backoff: full jitter up to min(30 s, 0.5 s x 2^attempt)', () => {
  const most = [0, 1, 2, 3, 4, 5, 6, 7, 50].map((attempt) => backoff(attempt, () => 0.999_999));
  assert.deepEqual(most, [499, 999, 1999, 3999, 7999, 15999, 29999, 29999, 29999]);
  assert.equal(
    backoff(5, () => 0),
    0,
  );
});

test('sdk#closes: every close code with its client action', () => {
  const half = { attempt: 0, authFailures: 1, random: () => 0.5 };
  assert.deepEqual(afterClose(4001, '', half), { final: false, delayMs: 250, refresh: true });
  assert.deepEqual(afterClose(4001, '', { ...half, authFailures: 2 }), { final: true });
  assert.deepEqual(afterClose(4003, '', half), { final: true });
  assert.deepEqual(afterClose(4009, '', half), { final: true });
  assert.deepEqual(afterClose(4008, '{"retryAfterMs":7000}', half), {
    final: false,
    delayMs: 7_000,
    hard: true,
  });
  for (const reason of ['', 'x', 'null', '{}', '{"retryAfterMs":-1}'])
    assert.deepEqual(afterClose(4008, reason, half), { final: false, delayMs: 250 });
  assert.deepEqual(afterClose(1012, '', half), { final: false, delayMs: 2_500 });
  for (const code of [1000, 1001, 1006, 1009, 1013, 4400])
    assert.deepEqual(afterClose(code, '', half), { final: false, delayMs: 250 });
});

test('sdk#closes, 4001: a token is obtained once; the second failure in a row is final', async () => {
  const { clock, server, client } = world();
  let asked = 0;
  const ann = client('ann', { token: () => `ann#${++asked}` });
  server.accept = () => 4001;
  const failing = assert.rejects(ann.connect(), { code: 'token_invalid' });
  await clock.advance(60_000);
  await failing;
  assert.equal(ann.state, 'failed');
  assert.equal(asked, 2);
  assert.equal(server.urls.length, 2);

  server.accept = (token) => (token === 'ann#2' ? 4001 : null);
  const done = ann.connect();
  await clock.advance(1_000);
  await done;
  assert.equal(asked, 3);
  // An accepted token ends the row: the next 4001 is a first one again.
  only(server.sockets).end(4001, '');
  server.accept = (token) => (token === 'ann#3' ? 4001 : null);
  await clock.advance(1_000);
  assert.equal(ann.state, 'connected');
  assert.equal(asked, 4);
});

test('sdk#closes: 4003 and 4009 are final, and no attempt follows', async () => {
  for (const code of [4003, 4009]) {
    const { clock, server, client } = world();
    const ann = await connected(client('ann'), clock);
    only(server.sockets).end(code, '');
    await clock.advance(600_000);
    assert.equal(ann.state, 'failed');
    assert.equal(server.urls.length, 1);
    assert.equal(clock.pending, 0);
  }
});

test('sdk#closes, 4008: waits retryAfterMs of the close reason, and nothing shortens it', async () => {
  const { clock, server, client } = world();
  let wake = () => {};
  const ann = await connected(client('ann', { wake: (fn) => ((wake = fn), () => {}) }), clock);
  only(server.sockets).end(4008, '{"retryAfterMs":40000}');
  await clock.advance(39_999);
  wake();
  await clock.advance(0);
  assert.equal(server.urls.length, 1);
  await clock.advance(1);
  assert.equal(ann.state, 'connected');
});

test('sdk#backoff: network-online or foreground tries at once with the counter reset', async () => {
  const { clock, server, client } = world();
  let wake = () => {};
  const ann = client('ann', { wake: (fn) => ((wake = fn), () => {}), random: () => 0.999 });
  server.accept = () => 1006;
  void ann.connect();
  await clock.advance(100_000);
  const before = server.urls.length;
  server.accept = () => null;
  wake();
  await clock.advance(0);
  assert.equal(server.urls.length, before + 1);
  assert.equal(ann.state, 'connected');
});

test('a socket that seems alive when the app comes back must answer within 5 s', async () => {
  const { clock, server, client } = world();
  let wake = () => {};
  const ann = await connected(client('ann', { wake: (fn) => ((wake = fn), () => {}) }), clock);
  const dead = only(server.sockets);
  server.onFrame = (socket) => (socket === dead ? 'ignore' : undefined);
  wake();
  await clock.advance(4_999);
  assert.equal(server.urls.length, 1);
  await clock.advance(1_001);
  assert.equal(server.urls.length, 2);
  assert.equal(ann.state, 'connected');
});

test('a socket over which only the server is heard is given up when a request and a sync stay unanswered', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  const oneWay = only(server.sockets);
  server.onFrame = (socket) => (socket === oneWay ? 'ignore' : undefined);
  const conversation = ann.conversations.open(cid);
  conversation.send('is anybody there');
  for (let seconds = 0; seconds < 30; seconds++) {
    oneWay.push({ t: 'hb', d: {} });
    await clock.advance(1_000);
  }
  assert.equal(oneWay.closedWith, 4000);
  assert.equal(ann.state, 'connected');
  assert.equal(server.urls.length, 2);
  assert.equal(conversation.messages.get().items.at(-1)!.status, 'sent');
});

test('sdk#heartbeat: heartbeats are answered; 60 s without a frame closes and reconnects', async () => {
  const { clock, server, client } = world();
  const ann = await connected(client('ann'), clock);
  const socket = only(server.sockets);
  let beats = 0;
  server.onFrame = (_socket, frame) => void (frame.t === 'hb' && beats++);
  for (let i = 0; i < 4; i++) {
    await clock.advance(25_000);
    socket.push({ t: 'hb', d: {} });
  }
  await clock.advance(0);
  assert.equal(beats, 4);
  await clock.advance(59_999);
  assert.equal(socket.closedWith, null);
  await clock.advance(1);
  assert.equal(socket.closedWith, 4000);
  await clock.advance(1_000);
  assert.equal(ann.state, 'connected');
  assert.equal(server.urls.length, 2);
});

test('a clock that is set changes nothing: a live socket stays, a dead one is given up after 60 s', async () => {
  for (const set of [-3_600_000, -30_000, 90_000, 3_600_000]) {
    const { clock, server, client } = world();
    const ann = await connected(client('ann'), clock);
    const socket = only(server.sockets);
    for (let i = 0; i < 3; i++) {
      await clock.advance(25_000);
      if (i === 1) clock.set = set;
      socket.push({ t: 'hb', d: {} });
    }
    clock.set += set;
    await clock.advance(59_999);
    assert.equal(socket.closedWith, null, `set by ${set}`);
    await clock.advance(1);
    assert.equal(socket.closedWith, 4000, `set by ${set}`);
    await clock.advance(1_000);
    assert.equal(ann.state, 'connected');
  }
});

test('a server that accepts but never says hello is given up after 15 s', async () => {
  const { clock, server, client } = world();
  server.onFrame = () => 'ignore';
  const ann = client('ann');
  void ann.connect();
  await clock.advance(14_999);
  assert.equal(server.urls.length, 1);
  server.onFrame = () => {};
  await clock.advance(1_000);
  assert.equal(ann.state, 'connected');
});

test('sdk#backoff: goaway reconnects after reconnectAfterMs; also when 1012 comes first', async () => {
  for (const closeFirst of [false, true]) {
    const { clock, server, client } = world();
    const ann = await connected(client('ann'), clock);
    const old = only(server.sockets);
    old.push({ t: 'goaway', d: { reconnectAfterMs: 3_000 } });
    await clock.advance(1_000);
    assert.equal(ann.state, 'connected');
    if (closeFirst) old.end(1012, '');
    await clock.advance(1_999);
    assert.equal(server.urls.length, 1);
    await clock.advance(1);
    assert.equal(server.urls.length, 2);
    assert.equal(ann.state, 'connected');
    assert.equal(server.sockets.has(old), false);
  }
});

test('sdk#closes: after a goaway the close code still decides', async () => {
  const away = async (options: Parameters<ReturnType<typeof world>['client']>[1] = {}) => {
    const { clock, server, client } = world();
    const ann = await connected(client('ann', options), clock);
    const old = only(server.sockets);
    old.push({ t: 'goaway', d: { reconnectAfterMs: 8_000 } });
    await clock.advance(1_000);
    return { clock, server, ann, old };
  };
  for (const code of [4003, 4009]) {
    const { clock, server, ann, old } = await away();
    old.end(code, '');
    await clock.advance(600_000);
    assert.equal(ann.state, 'failed');
    assert.equal(server.urls.length, 1, `${code} is final`);
    assert.equal(clock.pending, 0);
  }
  {
    const { clock, server, ann, old } = await away();
    old.end(4008, '{"retryAfterMs":60000}');
    await clock.advance(59_999);
    assert.equal(server.urls.length, 1);
    await clock.advance(1);
    assert.equal(ann.state, 'connected');
  }
  {
    let asked = 0;
    const { clock, server, ann, old } = await away({ token: () => `ann#${++asked}` });
    server.accept = (token) => (token === 'ann#1' ? 4001 : null);
    old.end(4001, '');
    await clock.advance(60_000);
    assert.equal(ann.state, 'connected');
    assert.equal(asked, 2);
    assert.equal(server.urls.length, 2, 'the refused token is not tried again');
  }
  for (const code of [1009, 1011, 4400]) {
    const { clock, server, ann, old } = await away();
    old.end(code, '');
    await clock.advance(500);
    assert.equal(ann.state, 'connected', `${code} comes back with backoff`);
    await clock.advance(10_000);
    assert.equal(server.urls.length, 2, 'and not once more when the goaway would have');
  }
  for (const code of [1000, 1001, 1006, 1012]) {
    const { clock, server, ann, old } = await away();
    old.end(code, '');
    await clock.advance(6_999);
    assert.equal(server.urls.length, 1);
    await clock.advance(1);
    assert.equal(ann.state, 'connected');
  }
});

test('sdk#closes, 1012: reconnects within 5 s', async () => {
  const { clock, server, client } = world();
  const ann = await connected(client('ann', { random: () => 0.9 }), clock);
  only(server.sockets).end(1012, '');
  await clock.advance(4_499);
  assert.equal(ann.state, 'reconnecting');
  await clock.advance(1);
  assert.equal(ann.state, 'connected');
});

test('sdk#token-refresh: token_expiring fetches a token and sends token.refresh, again when the provider fails', async () => {
  const { clock, server, client } = world();
  let asked = 0;
  const token = () => {
    asked++;
    if (asked === 2) throw new Error('down');
    return `ann#${asked}`;
  };
  const ann = await connected(client('ann', { token }), clock);
  const errors: string[] = [];
  ann.on('error', (e) => errors.push(e.code));
  only(server.sockets).push({ t: 'token_expiring', d: { expiresAt: server.now() } });
  await clock.advance(3_000);
  const refreshes = server.frames.filter((f) => f.t === 'token.refresh');
  assert.deepEqual(
    refreshes.map((f) => f.d.token),
    ['ann#3'],
  );
  assert.deepEqual(errors, ['token_provider']);
  assert.equal(server.urls.length, 1);
});

test('a sync that fails drops the socket and tries again with backoff', async () => {
  const { clock, server, client } = world();
  let left = 2;
  server.onFrame = (socket, frame) => {
    if (frame.t !== 'sync' || left-- <= 0) return;
    socket.push({ t: 'error', re: frame.id, code: 'service_unavailable', message: '', retryAfterMs: 1 });
    return 'ignore';
  };
  const ann = client('ann');
  const done = ann.connect();
  await clock.advance(5_000);
  await done;
  assert.equal(server.urls.length, 3);
});

test('disconnect leaves no timer and no socket; connect goes on with the same state', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  const a = ann.conversations.open(cid);
  await clock.advance(2_000);
  a.startTyping();
  ann.disconnect();
  assert.equal(ann.state, 'idle');
  assert.equal(server.sockets.size, 0);
  assert.equal(clock.pending, 0);
  server.send(cid, 'bob', { text: 'meanwhile' });
  await connected(ann, clock);
  assert.deepEqual(
    a.messages.get().items.map((m) => m.text),
    ['meanwhile'],
  );
});

test('connect, disconnect, connect again in one go, as StrictMode does: both settle with the second', async () => {
  const { clock, server, client } = world();
  const ann = client('ann');
  const first = ann.connect();
  ann.disconnect();
  const second = ann.connect();
  await clock.advance(0);
  await Promise.all([first, second]);
  assert.equal(ann.state, 'connected');
  assert.equal(server.sockets.size, 1);
});
