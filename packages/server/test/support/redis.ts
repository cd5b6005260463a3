import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';

/** A throw-away Redis of the system on loopback. It keeps nothing: what starts again is empty. */
export interface TestRedis {
  url: string;
  port: number;
  /** kill -9. */
  kill(): Promise<void>;
  /** Starts again on the same port. */
  start(): Promise<void>;
  /** Stands still with its connections open, and goes on. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}

function launch(directory: string, port: number, extra: string[]): Promise<ChildProcess | null> {
  const options = ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', [...options, '--dir', directory, ...extra], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return new Promise((resolve, reject) => {
    child.once('error', () => reject(new Error('Redis is needed: the Debian package redis-server.')));
    child.once('exit', () => resolve(null));
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes('Ready to accept connections')) resolve(child);
    });
  });
}

export async function startRedis(
  extra: (port: number) => Promise<string[]> = () => Promise.resolve([]),
): Promise<TestRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-redis-'));
  let child: ChildProcess | null = null;
  let port = 0;
  let options: string[] = [];
  // Another process may take the port in between.
  for (let attempt = 0; child === null && attempt < 10; attempt++) {
    port = await freePort();
    options = await extra(port);
    child = await launch(directory, port, options);
  }
  if (!child) throw new Error('Redis did not start');
  const atExit = (): void => void child?.kill('SIGKILL');
  process.once('exit', atExit);
  const kill = async (): Promise<void> => {
    const running = child;
    child = null;
    if (!running || running.exitCode !== null || running.signalCode !== null) return;
    const exited = once(running, 'exit');
    running.kill('SIGKILL');
    await exited;
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill,
    async start() {
      child = await launch(directory, port, options);
      if (!child) throw new Error('Redis did not start again');
    },
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    async stop() {
      await kill();
      process.removeListener('exit', atExit);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export interface TestRedisCluster {
  url: string;
  nodes: TestRedis[];
  /** Gives the slot of a key to the node at this place. */
  moveSlot(slot: number, to: number): Promise<void>;
  stop(): Promise<void>;
}

/** Three masters without replicas. */
export async function startRedisCluster(): Promise<TestRedisCluster> {
  const size = 3;
  const buses: number[] = [];
  const nodes: TestRedis[] = [];
  for (let i = 0; i < size; i++)
    nodes.push(
      await startRedis(async () => {
        buses[i] = await freePort();
        return [
          '--cluster-enabled',
          'yes',
          '--cluster-port',
          String(buses[i]),
          // A node that gets no time of the machine for a while is not taken for dead.
          '--cluster-node-timeout',
          '10000',
        ];
      }),
    );
  const clients = nodes.map(({ port }) => new Redis(port, '127.0.0.1'));
  // A node that is killed is no surprise here.
  for (const client of clients) client.on('error', () => undefined);
  const share = Math.ceil(16_384 / size);
  for (const [i, client] of clients.entries()) {
    await client.cluster('SET-CONFIG-EPOCH', i + 1);
    await client.call('CLUSTER', 'ADDSLOTSRANGE', i * share, Math.min(16_383, (i + 1) * share - 1));
  }
  const meet = async (): Promise<void> => {
    for (const client of clients.slice(1))
      await client.call('CLUSTER', 'MEET', '127.0.0.1', nodes[0]!.port, buses[0]!);
  };
  await meet();
  const ids = await Promise.all(clients.map((client) => client.call('CLUSTER', 'MYID') as Promise<string>));
  for (const client of clients)
    for (let looks = 1; !isWhole((await client.call('CLUSTER', 'INFO')) as string, size); looks++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      // A handshake that took too long is forgotten.
      if (looks % 250 === 0) await meet();
    }
  return {
    url: `redis://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodes,
    async moveSlot(slot, to) {
      // The new owner first: it then tells the others with a higher epoch.
      for (const client of [clients[to]!, ...clients])
        await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', ids[to]!);
    },
    async stop() {
      for (const client of clients) client.disconnect();
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

const isWhole = (info: string, size: number): boolean =>
  info.includes('cluster_state:ok') &&
  info.includes(`cluster_known_nodes:${size}`) &&
  info.includes('cluster_slots_ok:16384');
