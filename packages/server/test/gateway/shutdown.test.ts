import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { startService } from '../support/service.ts';
import { connect, open } from '../support/socket.ts';
import { text } from './live-scene.ts';
import { createScene } from '../support/scene.ts';

/** socket#goaway: goaway, no new sockets, drain, exit 0. */

test('socket#goaway: SIGTERM sends goaway, refuses new sockets, lets the clients leave and ends with 0', async () => {
  const service = await startService();
  try {
    const scene = createScene(service.url);
    const people = await Promise.all(Array.from({ length: 12 }, () => scene.person()));
    const [first, second] = people;
    const conv = await scene.group(first!.actor, [second!.actor]);
    const waiting = open(service);
    await waiting.opened;
    const ended = service.stop();
    const delays = await Promise.all(
      people.map(async ({ socket }) => (await socket.ephemeral('goaway')).d.reconnectAfterMs as number),
    );
    for (const ms of delays) assert.ok(Number.isInteger(ms) && ms >= 0 && ms <= 10_000, String(ms));
    assert.ok(new Set(delays).size > 1, 'each client gets its own');
    assert.equal((await waiting.closed).code, 1012, 'not authenticated yet: nothing to drain');
    await assert.rejects(open(service).opened, { status: 503 });
    assert.equal((await fetch(`${service.url}/readyz`)).status, 503);
    assert.equal((await fetch(`${service.url}/healthz`)).status, 200);

    // What is under way is finished.
    const ack = await first!.socket.request('message.send', text(conv.id, 'last words'));
    assert.equal((await second!.socket.event('message.new', conv.id)).seq, ack.seq);
    second!.socket.send('delivered', { items: [{ cid: conv.id, seq: ack.seq }] });
    await second!.socket.barrier();

    for (const { socket } of people) await socket.close();
    assert.equal(await ended, 0);

    const again = await service.restart();
    try {
      const later = createScene(again.url);
      const watcher = await later.online(first!.actor);
      const { presence } = await watcher.request('presence.watch', { userIds: [second!.actor.id] });
      assert.equal(presence[0].online, false);
      assert.ok(Date.parse(presence[0].lastSeenAt) <= Date.now(), 'last seen is kept over a restart');
      const { body } = await later.server('GET', `/v1/conversations/${conv.id}/members`);
      const mark = body.data.find((m: { userId: string }) => m.userId === second!.actor.id);
      assert.equal(mark.lastDeliveredSeq, ack.seq, 'marks that waited were written');
      assert.equal((await later.events(conv.id)).at(-1).message.text, 'last words');
    } finally {
      await again.dispose();
    }
  } finally {
    await service.dispose();
  }
});

test('Ctrl-C waits for no socket of this machine; a development environment that others can reach is told at every start', async () => {
  const loud = /ANYBODY WHO REACHES THIS SERVICE CAN BE ANY USER/;
  const service = await startService({ env: { HOST: '0.0.0.0' } });
  try {
    assert.match(service.output(), loud);
    const { socket } = await createScene(service.url).person();
    const from = Date.now();
    const exited = once(service.process, 'exit');
    service.process.kill('SIGINT');
    assert.equal((await socket.closed).code, 1012);
    assert.deepEqual(await exited, [0, null]);
    assert.ok(Date.now() - from < 28_000, 'the drain alone would take 30 s');
    const again = await service.restart();
    assert.match(again.output(), loud);
    await again.dispose();
  } finally {
    await service.dispose();
  }
});

test('Ctrl-C on the only node: clients of other machines are told to come back, and not waited for', async () => {
  const service = await startService({ env: { CHAT_TRUST_PROXY: 'true', CHAT_LOG_LEVEL: 'info' } });
  try {
    const scene = createScene(service.url);
    const socket = await connect(service, scene.token(await scene.actor()), {
      headers: { 'x-forwarded-for': '203.0.113.7' },
    });
    const exited = once(service.process, 'exit');
    // As a terminal does it: all processes of the group get it.
    process.kill(-service.process.pid!, 'SIGINT');
    await socket.ephemeral('goaway');
    assert.equal((await socket.closed).code, 1012);
    assert.deepEqual(await exited, [0, null]);
    const [stopping, stopped] = ['stopping', 'stopped'].map((msg) => {
      const line = service
        .output()
        .split('\n')
        .find((l) => l.includes(`"msg":"${msg}"`));
      return Date.parse((JSON.parse(line!) as { time: string }).time);
    });
    assert.ok(stopped! - stopping! < 20_000, 'a drain takes 26 s');
    const [, end] = service.output().split('"stopping"');
    assert.doesNotMatch(end!, /FATAL|"level":"(warn|error)"/);
  } finally {
    await service.dispose();
  }
});
