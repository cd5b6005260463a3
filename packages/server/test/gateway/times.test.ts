import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { plans } from '@parley/protocol';
import { createScene } from '../support/scene.ts';
import { open } from '../support/socket.ts';
import type { TestSocket } from '../support/socket.ts';
import { lazy, use } from '../support/use.ts';
import { startHere } from './here.ts';
import { text } from './live-scene.ts';

/** The times of the socket, with the service's clock moved by the test (SPEC 4, socket behaviour rules). */

const here = use(
  () => startHere({ drainMs: 1_500, plans: { ...plans, free: { ...plans.free, connectionLimit: 2 } } }),
  (h) => h.dispose(),
);
const scene = lazy(() => createScene(here.url, 'dev', here.now));

/** Time passes, and these sockets say something often enough to live. */
async function pass(ms: number, sockets: TestSocket[]): Promise<void> {
  for (let left = ms; left > 0; left -= 50_000) {
    here.advance(Math.min(left, 50_000));
    for (const socket of sockets) socket.send('hb');
    for (const socket of sockets) await socket.barrier();
  }
}

/** The service's time when the promise came true. */
async function timed<T>(promise: Promise<T>): Promise<[T, number]> {
  const value = await promise;
  return [value, here.now()];
}

test('SPEC 4.1: the server sends hb every 25 s', async () => {
  const { socket } = await scene.person();
  const start = Date.parse(socket.hello.serverTime);
  here.advance(24_500);
  const [, first] = await timed(socket.ephemeral('hb'));
  assert.ok(first - start >= 25_000, `${first - start} ms`);
  here.advance(24_500);
  const [, second] = await timed(socket.ephemeral('hb'));
  assert.ok(second - first >= 24_500, `${second - first} ms`);
});

test('SPEC 4.1: 60 s of silence closes 1001; a reply to hb, any request and a ping all count as life', async () => {
  const [silent, replies, asks, pings] = await Promise.all(
    Array.from({ length: 4 }, async () => (await scene.person()).socket),
  );
  const start = Date.parse(silent!.hello.serverTime);
  here.advance(50_000);
  replies!.send('hb');
  await asks!.barrier();
  await replies!.barrier();
  const pong = once(pings!.ws, 'pong');
  pings!.ws.ping();
  await pong;
  here.advance(10_000);
  const [{ code }, at] = await timed(silent!.closed);
  assert.equal(code, 1001);
  assert.ok(at - start >= 60_000, `${at - start} ms`);
  for (const socket of [replies, asks, pings]) await socket!.barrier();
});

test('a wall clock that is set ahead or back closes no socket, refuses nobody and holds nothing up', async () => {
  const [me, mate] = [await scene.person(), await scene.person()];
  const conv = await scene.group(me.actor, [mate.actor]);
  for (const ms of [90_000, -3_600_000]) {
    await me.socket.request('message.send', text(conv.id));
    await mate.socket.event('message.new', conv.id);
    here.setClock(ms);
    // Their next heartbeats come when they are due: whatever the seconds in between had closed is closed by then.
    here.advance(25_000);
    for (const { socket } of [me, mate]) await socket.ephemeral('hb');
    const { seq } = await me.socket.request('message.send', text(conv.id));
    await mate.socket.event('message.new', conv.id);
    await mate.socket.request('read', { cid: conv.id, seq });
    await me.socket.ephemeral('receipt', (d) => d.lastReadSeq === seq);
    me.socket.send('typing', { cid: conv.id, state: 'start' });
    await mate.socket.ephemeral('typing');
    here.setClock(-ms);
  }
});

test('SPEC 4.6: token_expiring comes 5 minutes before expiry; token.refresh carries the socket over it', async () => {
  const actor = await scene.actor();
  const exp = Math.floor(here.now() / 1000) + 600;
  const [renewing, lapsing] = await Promise.all(
    [0, 1].map(() => open(here).auth(scene.token(actor, { exp }))),
  );
  await pass(295_000, [renewing!, lapsing!]);
  assert.ok(!renewing!.frames.some((f) => f.t === 'token_expiring'));
  here.advance(4_500);
  for (const socket of [renewing!, lapsing!]) {
    const [frame, at] = await timed(socket.ephemeral('token_expiring'));
    assert.equal(frame.d.expiresAt, new Date(exp * 1000).toISOString());
    assert.ok(at >= exp * 1000 - 300_000);
  }
  const until = exp + 3_600;
  const ack = await renewing!.request('token.refresh', { token: scene.token(actor, { exp: until }) });
  assert.equal(ack.expiresAt, new Date(until * 1000).toISOString());
  await pass(299_000, [renewing!, lapsing!]);
  const [{ code }, at] = await timed(lapsing!.closed);
  assert.equal(code, 4001);
  assert.ok(at >= exp * 1000, 'not before its time');
  assert.equal(lapsing!.frames.filter((f) => f.t === 'token_expiring').length, 1);
  await renewing!.barrier();
  await pass(3_300_000, [renewing!]);
  assert.equal(
    (await renewing!.ephemeral('token_expiring')).d.expiresAt,
    ack.expiresAt,
    'once more for the new token',
  );
});

test('SPEC 4.2: offline 30 s after the last socket closed, with the last-seen time kept and told', async () => {
  const watcher = await scene.person();
  const leaver = await scene.person();
  const second = await scene.online(leaver.actor);
  await scene.group(watcher.actor, [leaver.actor]);
  const watch = async () =>
    (await watcher.socket.request('presence.watch', { userIds: [leaver.actor.id] })).presence[0];
  await watch();
  await leaver.socket.close();
  here.advance(31_000);
  await watcher.socket.barrier();
  const before = here.now();
  await second.close();
  here.advance(29_000);
  assert.deepEqual(await watch(), { userId: leaver.actor.id, online: true, lastSeenAt: null });
  const [{ d }, at] = await timed(watcher.socket.ephemeral('presence'));
  assert.ok(at - before >= 30_000, `${at - before} ms`);
  assert.deepEqual([d.userId, d.online], [leaver.actor.id, false]);
  const seenAt = Date.parse(d.lastSeenAt) - before;
  assert.ok(seenAt >= 0 && seenAt < 29_000, `when it closed, not when it was noticed: ${seenAt}`);
  assert.deepEqual(await watch(), d);
  await scene.online(leaver.actor);
  const back = await watcher.socket.ephemeral('presence');
  assert.deepEqual([back.d.userId, back.d.online], [leaver.actor.id, true]);
});

test('SPEC 4.2: who is back within the grace period was never away', async () => {
  const watcher = await scene.person();
  const leaver = await scene.person();
  await scene.group(watcher.actor, [leaver.actor]);
  await watcher.socket.request('presence.watch', { userIds: [leaver.actor.id] });
  await leaver.socket.close();
  here.advance(20_000);
  const back = await scene.online(leaver.actor);
  await pass(60_000, [watcher.socket, back]);
  // Grace periods are settled in their order: what was due before this one is through.
  await back.close();
  here.advance(29_500);
  const { d } = await watcher.socket.ephemeral('presence');
  assert.equal(d.online, false);
  assert.equal(watcher.socket.frames.filter((f) => f.t === 'presence').length, 1);
});

test('SPEC 4.4: start is relayed again after 3 s', async () => {
  const typist = await scene.person();
  const mate = await scene.person();
  const conv = await scene.group(typist.actor, [mate.actor]);
  typist.socket.send('typing', { cid: conv.id, state: 'start' });
  await mate.socket.ephemeral('typing');
  typist.socket.send('typing', { cid: conv.id, state: 'start' });
  await typist.socket.barrier();
  here.advance(3_000);
  typist.socket.send('typing', { cid: conv.id, state: 'start' });
  await mate.socket.ephemeral('typing');
  await typist.socket.request('message.send', text(conv.id));
  await mate.socket.event('message.new', conv.id);
  assert.equal(mate.socket.frames.filter((f) => f.t === 'typing').length, 2);
});

test('SPEC 7: over the plan’s connections a socket is closed with 4008 and retryAfterMs in the reason JSON', async () => {
  const tenant = createScene(here.url, 'prod', here.now);
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

test('SPEC 4.8: who does not leave after goaway is closed with 1012 at the end of the drain', async () => {
  const { actor, socket } = await scene.person();
  const conv = await scene.group(actor, []);
  const stopping = here.stop();
  const { d } = await socket.ephemeral('goaway');
  assert.ok(d.reconnectAfterMs >= 0 && d.reconnectAfterMs <= 10_000);
  await assert.rejects(open(here).opened, { status: 503 });
  const ack = await socket.request('message.send', text(conv.id, 'while it drains'));
  assert.equal((await socket.event('message.new', conv.id)).seq, ack.seq);
  assert.equal((await socket.closed).code, 1012);
  await stopping;
});
