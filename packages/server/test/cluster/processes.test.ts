import assert from 'node:assert/strict';
import { readdir, readFile, readlink } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertContiguous, text } from '../gateway/live-scene.ts';
import { run } from '../start/npm-start.ts';
import type { Service } from '../support/service.ts';
import type { TestSocket } from '../support/socket.ts';
import { useNodes, until } from './nodes.ts';

/** CHAT_PROCESSES: several processes behind one port. */

// Six processes share what one PostgreSQL gives out, which is 100 connections.
const settings = { CHAT_PROCESSES: '2', CHAT_DATABASE_POOL: '4' };
const { cluster, scene, nodes } = useNodes([settings, settings, settings]);
const service = nodes[0]!;

const childrenOf = async (node: Service): Promise<number[]> => {
  const { pid } = node.process;
  const list = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return list.trim().split(' ').filter(Boolean).map(Number);
};

/** Its two processes, without one that was killed. The list of children is not exact while one of them begins or ends. */
async function processesOf(node: Service, killed?: number): Promise<number[]> {
  let found: number[] = [];
  const complete = async (): Promise<boolean> => {
    found = await childrenOf(node);
    return found.length === 2 && !found.includes(killed!);
  };
  await until(complete, async () => {
    const commands = found.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => 'gone'));
    return `${found.join(' ')}: ${(await Promise.all(commands)).join(', ')}\n${node.output()}`;
  });
  return found;
}

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const hexOf = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');

/**
 * The process among these that has the other end of the socket. Both ports name the connection: another one may have
 * the same port here and go elsewhere. The kernel's table may also leave out a row while others come and go.
 */
async function holderOf(socket: TestSocket, pids: readonly number[]): Promise<number> {
  const { localPort, remotePort } = (socket.ws as unknown as { _socket: Socket })._socket;
  let holder: number | undefined;
  const find = async (): Promise<boolean> => {
    const rows = (await readFile('/proc/net/tcp', 'utf8'))
      .split('\n')
      .map((line) => line.trim().split(/\s+/));
    const isIt = ([, local, remote]: string[]): boolean =>
      !!local?.endsWith(`:${hexOf(remotePort!)}`) && !!remote?.endsWith(`:${hexOf(localPort!)}`);
    const inode = rows.find(isIt)?.[9];
    for (const pid of pids)
      for (const fd of await readdir(`/proc/${pid}/fd`))
        if ((await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')) === `socket:[${inode}]`) holder = pid;
    return holder !== undefined;
  };
  await until(find, () => `no process has the socket at port ${localPort}`);
  return holder!;
}

/** New connections go to the processes in turn. */
const several = (n: number, connect: () => Promise<TestSocket>): Promise<TestSocket[]> =>
  Promise.all(Array.from({ length: n }, connect));

test('CHAT_PROCESSES=2: sockets of both processes share one order, one presence and one set of rules', async () => {
  await processesOf(service);
  const [one, two] = await Promise.all([scene.actor(), scene.actor()]);
  const conv = await scene.group(one, [two]);
  const sockets = [
    ...(await several(4, () => scene.online(one))),
    ...(await several(4, () => scene.online(two))),
  ];
  const sends = await Promise.all(
    sockets.flatMap((socket, i) =>
      [0, 1, 2].map((n) => socket.request('message.send', text(conv.id, `${i} ${n}`))),
    ),
  );
  const last = conv.lastSeq + sends.length;
  for (const socket of sockets) {
    await socket.next((f) => f.t === 'event' && f.seq === last, 'the last event');
    assertContiguous(socket, conv.id);
    assert.equal(socket.events(conv.id).length, sends.length);
  }
  await several(7, () => scene.online(one));
  const closed = await Promise.race(sockets.slice(0, 4).map((s) => s.closed));
  assert.equal(closed.code, 4009, 'ten for all processes together');
  for (const socket of sockets) if (socket.ws.readyState === 1) await socket.close();
});

test('CHAT_PROCESSES=2: a process killed with -9 is replaced, and the service goes on', async () => {
  const [one, two] = await Promise.all([scene.actor(), scene.actor()]);
  const conv = await scene.group(one, [two]);
  const before = await processesOf(service);
  const sockets = await several(6, () => scene.online(two));
  // On a busy machine all of them may be with one process.
  const killed = await holderOf(sockets[0]!, before);
  process.kill(killed, 'SIGKILL');
  const lost = await Promise.race(sockets.map(async (s, i) => ({ i, ...(await s.closed) })));
  assert.equal(lost.code, 1006);
  // The other process serves meanwhile; a connection may still have been given to the dead one.
  await until(() =>
    scene.send(one, conv.id).then(
      () => true,
      () => false,
    ),
  );
  const now = await processesOf(service, killed);
  assert.deepEqual(
    before.filter((pid) => now.includes(pid)),
    before.filter((pid) => pid !== killed),
  );
  const sent = await scene.send(one, conv.id);
  const again = await scene.online(two);
  const { conversations } = await again.request('sync', { cursor: null });
  assert.equal(conversations.find((c: { id: string }) => c.id === conv.id).lastSeq, sent.seq);
  const alive = sockets.filter((s) => s.ws.readyState === 1);
  for (const socket of alive) await socket.next((f) => f.t === 'event' && f.seq === sent.seq, 'the message');
  for (const socket of [...alive, again]) await socket.close();
});

for (const [index, name, signal] of [
  [1, 'the primary', (node: Service) => node.process.kill('SIGTERM')],
  [2, 'the whole process group', (node: Service) => process.kill(-node.process.pid!, 'SIGTERM')],
] as const)
  test(`CHAT_PROCESSES=2: SIGTERM to ${name} drains every process, ends with 0, and leaves nothing running`, async () => {
    const node = cluster.nodes[index]!;
    const pids = await processesOf(node);
    const user = await scene.actor();
    const conv = await scene.group(user, []);
    const sockets = await several(4, () => cluster.online(node, user));
    const exited = new Promise((resolve) => node.process.once('exit', (code) => resolve(code)));
    signal(node);
    for (const socket of sockets) await socket.ephemeral('goaway');
    // What is under way is finished.
    const acks = await Promise.all(sockets.map((s) => s.request('message.send', text(conv.id))));
    assert.equal(new Set(acks.map((ack) => ack.seq)).size, sockets.length);
    for (const socket of sockets) await socket.close();
    assert.equal(await exited, 0);
    assert.deepEqual(pids.filter(isRunning), []);
  });

test('CHAT_PROCESSES=2: SIGTERM while it starts ends it with 0 and starts nothing more', async () => {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  const starting = run([process.execPath, main], { env: service.env });
  const { pid } = starting.process;
  const children = () => readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  await until(async () => (await children()) !== '');
  const [child] = (await children()).trim().split(' ').map(Number);
  process.kill(pid!, 'SIGTERM');
  assert.equal(await starting.exited, 0, starting.output());
  assert.doesNotMatch(starting.output(), /ready at/);
  assert.equal(isRunning(child!), false);
});
