import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { plans } from '@parley/protocol';
import { createScene } from '../support/scene.ts';
import { open } from '../support/socket.ts';
import type { TestSocket } from '../support/socket.ts';
import { lazy } from '../support/use.ts';
import { useStandingHere } from './here.ts';
import { text } from './live-scene.ts';

/** The times of the socket, with the service's clock moved by the test (socket#heartbeat). */

const { here, time } = useStandingHere({
  drainMs: 1_500,
  plans: { ...plans, free: { ...plans.free, connectionLimit: 2 } },
});
const scene = lazy(() => createScene(here.url, 'dev', time.now));

/** Time passes, and these sockets say something often enough to live. */
async function pass(ms: number, sockets: TestSocket[]): Promise<void> {
  for (let left = ms; left > 0; left -= 50_000) {
    time.advance(Math.min(left, 50_000));
    for (const socket of sockets) socket.send('hb');
    for (const socket of sockets) await socket.barrier();
  }
}

/** Closes the socket; the service has seen it when another one has its answers. */
async function closed(socket: TestSocket, other: TestSocket): Promise<void> {
  await socket.close();
  for (let i = 0; i < 3; i++) await other.barrier();
}

const seen = (socket: TestSocket, t: string) => socket.frames.filter((f) => f.t === t).map((f) => f.d);

test('socket#heartbeat: the server sends hb every 25 s', async () => {
  const { socket } = await scene.person();
  for (const count of [1, 2]) {
    time.advance(24_000);
    await socket.barrier();
    assert.equal(seen(socket, 'hb').length, count - 1);
    time.advance(1_000);
    await socket.ephemeral('hb');
  }
});

test('socket#heartbeat: 60 s of silence closes 1001; a reply to hb, any request and a ping all count as life', async () => {
  const [silent, replies, asks, pings] = await Promise.all(
    Array.from({ length: 4 }, async () => (await scene.person()).socket),
  );
  for (const socket of [silent, replies, asks, pings]) socket!.isSilent = true;
  time.advance(50_000);
  replies!.send('hb');
  await asks!.barrier();
  await replies!.barrier();
  const pong = once(pings!.ws, 'pong');
  pings!.ws.ping();
  await pong;
  time.advance(9_000);
  await asks!.barrier();
  assert.equal(silent!.ws.readyState, 1);
  // It will not answer the close either, as one whose packets are lost.
  silent!.ws.close = () => undefined;
  time.advance(1_000);
  const late = sleep(20_000, 'the server waits for an answer', { ref: false });
  assert.deepEqual(await Promise.race([silent!.closed.then(({ code }) => code), late]), 1001);
  for (const socket of [replies, asks, pings]) await socket!.barrier();
});

test('a wall clock that is set ahead or back closes no socket, refuses nobody and holds nothing up', async () => {
  const [me, mate] = [await scene.person(), await scene.person()];
  const conv = await scene.group(me.actor, [mate.actor]);
  for (const ms of [90_000, -3_600_000]) {
    await me.socket.request('message.send', text(conv.id));
    await mate.socket.event('message.new', conv.id);
    time.set(ms);
    // Their next heartbeats come when they are due: whatever the seconds in between had closed is closed by then.
    time.advance(25_000);
    for (const { socket } of [me, mate]) await socket.ephemeral('hb');
    const { seq } = await me.socket.request('message.send', text(conv.id));
    await mate.socket.event('message.new', conv.id);
    await mate.socket.request('read', { cid: conv.id, seq });
    await me.socket.ephemeral('receipt', (d) => d.lastReadSeq === seq);
    me.socket.send('typing', { cid: conv.id, state: 'start' });
    await mate.socket.ephemeral('typing');
    time.set(-ms);
  }
});

test('socket#auth: a socket that does not authenticate within 5 s is closed with 4001', async () => {
  const { socket } = await scene.person();
  const silent = open(here);
  await silent.opened;
  time.advance(4_000);
  await socket.barrier();
  assert.equal(silent.ws.readyState, 1);
  time.advance(1_000);
  assert.equal((await silent.closed).code, 4001);
});

test('socket#token-expiring: token_expiring comes 5 minutes before expiry; token.refresh carries the socket over it', async () => {
  const actor = await scene.actor();
  const exp = time.now() / 1_000 + 600;
  const [renewing, lapsing] = await Promise.all(
    [0, 1].map(() => open(here).auth(scene.token(actor, { exp }))),
  );
  assert.equal(lapsing!.hello.tokenExpiresAt, new Date(exp * 1_000).toISOString());
  await pass(299_000, [renewing!, lapsing!]);
  assert.deepEqual(seen(renewing!, 'token_expiring'), []);
  time.advance(1_000);
  for (const socket of [renewing!, lapsing!]) {
    const frame = await socket.ephemeral('token_expiring');
    assert.equal(frame.d.expiresAt, new Date(exp * 1_000).toISOString());
  }
  const until = exp + 3_600;
  const ack = await renewing!.request('token.refresh', { token: scene.token(actor, { exp: until }) });
  assert.equal(ack.expiresAt, new Date(until * 1_000).toISOString());
  await pass(299_000, [renewing!, lapsing!]);
  time.advance(1_000);
  assert.equal((await lapsing!.closed).code, 4001);
  assert.equal(seen(lapsing!, 'token_expiring').length, 1);
  await renewing!.barrier();
  await pass(3_300_000, [renewing!]);
  assert.equal(
    (await renewing!.ephemeral('token_expiring')).d.expiresAt,
    ack.expiresAt,
    'once more for the new token',
  );
});

test('presence#grace: offline 30 s after the last socket closed, with the last-seen time kept and told', async () => {
  const watcher = await scene.person();
  const leaver = await scene.person();
  const second = await scene.online(leaver.actor);
  await scene.group(watcher.actor, [leaver.actor]);
  const watch = async () =>
    (await watcher.socket.request('presence.watch', { userIds: [leaver.actor.id] })).presence[0];
  await watch();
  await closed(leaver.socket, watcher.socket);
  time.advance(31_000);
  second.send('hb');
  await second.barrier();
  await closed(second, watcher.socket);
  const lastSeenAt = new Date(time.now()).toISOString();
  time.advance(29_000);
  assert.deepEqual(await watch(), { userId: leaver.actor.id, online: true, lastSeenAt: null });
  time.advance(1_000);
  const { d } = await watcher.socket.ephemeral('presence');
  assert.deepEqual(d, { userId: leaver.actor.id, online: false, lastSeenAt }, 'when it closed');
  assert.deepEqual(await watch(), d);
  await scene.online(leaver.actor);
  const back = await watcher.socket.ephemeral('presence');
  assert.deepEqual(back.d, { userId: leaver.actor.id, online: true, lastSeenAt });
  assert.deepEqual(await watch(), back.d, 'the snapshot says the same');
});

test('presence#grace: who is back within the grace period was never away', async () => {
  const watcher = await scene.person();
  const leaver = await scene.person();
  await scene.group(watcher.actor, [leaver.actor]);
  await watcher.socket.request('presence.watch', { userIds: [leaver.actor.id] });
  await closed(leaver.socket, watcher.socket);
  time.advance(20_000);
  await watcher.socket.barrier();
  const back = await scene.online(leaver.actor);
  await pass(60_000, [watcher.socket, back]);
  // Grace periods are settled in their order: what was due before this one is through.
  await closed(back, watcher.socket);
  time.advance(30_000);
  assert.equal((await watcher.socket.ephemeral('presence')).d.online, false);
  assert.equal(seen(watcher.socket, 'presence').length, 1);
});

/** A conversation of two, both online. */
async function pair() {
  const [one, two] = [await scene.person(), await scene.person()];
  return { one, two, conv: await scene.group(one.actor, [two.actor]) };
}

test('presence#typing-pace: start is relayed again after 3 s', async () => {
  const { one: typist, two: mate, conv } = await pair();
  typist.socket.send('typing', { cid: conv.id, state: 'start' });
  await mate.socket.ephemeral('typing');
  typist.socket.send('typing', { cid: conv.id, state: 'start' });
  await typist.socket.barrier();
  time.advance(3_000);
  typist.socket.send('typing', { cid: conv.id, state: 'start' });
  await mate.socket.ephemeral('typing');
  await typist.socket.request('message.send', text(conv.id));
  await mate.socket.event('message.new', conv.id);
  assert.equal(seen(mate.socket, 'typing').length, 2);
});

test('presence#typing-pace: start is relayed at most once per 3 s, also with stops in between; stop only after a start', async () => {
  const { one: typist, two: mate, conv } = await pair();
  typist.socket.send('typing', { cid: conv.id, state: 'stop' });
  for (let i = 0; i < 20; i++) typist.socket.send('typing', { cid: conv.id, state: 'start' });
  for (let i = 0; i < 20; i++) {
    typist.socket.send('typing', { cid: conv.id, state: 'stop' });
    typist.socket.send('typing', { cid: conv.id, state: 'start' });
  }
  await typist.socket.request('message.send', text(conv.id));
  await mate.socket.event('message.new', conv.id);
  assert.deepEqual(
    seen(mate.socket, 'typing').map((d) => d.state),
    ['start', 'stop'],
  );
});

test('receipts#receipt: reads send receipts at most once per second per member, and the last value always arrives', async () => {
  const { one: a, two: b, conv } = await pair();
  for (let i = 0; i < 12; i++) await scene.send(a.actor, conv.id);
  const last = conv.lastSeq + 12;
  for (let seq = 2; seq <= last; seq++) await b.socket.request('read', { cid: conv.id, seq });
  await a.socket.barrier();
  const receipt = (lastReadSeq: number) => ({ cid: conv.id, userId: b.actor.id, lastReadSeq });
  assert.deepEqual(seen(a.socket, 'receipt'), [receipt(2)], 'the first at once');
  time.advance(1_000);
  await a.socket.ephemeral('receipt', (d) => d.lastReadSeq === last);
  // The same mark again moves nothing and tells nobody; REST reads are told as well.
  time.advance(2_000);
  await b.socket.request('read', { cid: conv.id, seq: last });
  const { seq } = await a.socket.request('message.send', text(conv.id));
  await b.actor.api('POST', `/v1/conversations/${conv.id}/read`, { seq });
  await a.socket.ephemeral('receipt', (d) => d.lastReadSeq === seq);
  assert.deepEqual(seen(a.socket, 'receipt'), [receipt(2), receipt(last), receipt(seq)]);
});

test('plans#rates: sends are 10/s with a burst of 20, shared with REST; the refusal is an error frame with retryAfterMs', async () => {
  const { actor, socket } = await scene.person();
  const conv = await scene.group(actor, []);
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => socket.ask('message.send', text(conv.id))),
  );
  const refused = answers.filter((a) => a.t === 'error');
  assert.equal(refused.length, 20);
  for (const { code, retryAfterMs } of refused) assert.deepEqual([code, retryAfterMs], ['rate_limited', 100]);
  assert.equal(socket.ws.readyState, 1);
  const sendOverRest = () =>
    actor.api('POST', `/v1/conversations/${conv.id}/messages`, { clientMsgId: 'r', text: 'r' });
  assert.equal((await sendOverRest()).status, 429);
  time.advance(100);
  await socket.request('message.send', text(conv.id));
  await socket.refused('message.send', text(conv.id), 'rate_limited');
  time.advance(100);
  assert.equal((await sendOverRest()).status, 201);
  const sent = (await scene.events(conv.id)).filter((e) => e.type === 'message.new');
  assert.equal(sent.length, 22, 'what was refused was not sent');
});

test('socket#flood: a client that keeps on after rate_limited is closed with 4008 and retryAfterMs in the reason JSON', async () => {
  const { actor, socket } = await scene.person();
  const conv = await scene.group(actor, []);
  for (let i = 0; i < 400; i++) socket.send('message.send', text(conv.id), i + 1);
  const { code, reason } = await socket.closed;
  assert.equal(code, 4008);
  assert.ok(JSON.parse(reason).retryAfterMs >= 10_000, `a real pause: ${reason}`);
  assert.ok(socket.frames.some((f) => f.code === 'rate_limited'));
});

test('plans#connections: over the plan’s connections a socket is closed with 4008 and retryAfterMs in the reason JSON', async () => {
  const tenant = createScene(here.url, 'prod', time.now);
  const [first, second] = [await tenant.person(), await tenant.person()];
  const refused = open(here);
  await refused.opened;
  refused.send('auth', { token: tenant.token(await tenant.actor()) });
  const { code, reason } = await refused.closed;
  assert.equal(code, 4008);
  assert.ok(JSON.parse(reason).retryAfterMs > 0, reason);
  await scene.person();
  for (const { socket } of [first, second]) await socket.barrier();
  await first.socket.close();
  await tenant.person();
});

test('socket#goaway: who does not leave after goaway is closed with 1012 at the end of the drain', async () => {
  const { actor, socket } = await scene.person();
  const conv = await scene.group(actor, []);
  const stopping = here.stop();
  const { d } = await socket.ephemeral('goaway');
  assert.ok(d.reconnectAfterMs >= 0 && d.reconnectAfterMs <= 10_000);
  await assert.rejects(open(here).opened, { status: 503 });
  const ack = await socket.request('message.send', text(conv.id, 'while it drains'));
  assert.equal((await socket.event('message.new', conv.id)).seq, ack.seq);
  time.advance(1_000);
  await socket.barrier();
  time.advance(500);
  assert.equal((await socket.closed).code, 1012);
  await stopping;
});
