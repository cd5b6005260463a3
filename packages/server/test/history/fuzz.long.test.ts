import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { test } from 'node:test';
import { seed } from '../../../../scripts/seed.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { message } from '../../src/platform/history/conformance.ts';
import { migrateHistory, openHistory } from '../../src/platform/history/open.ts';
import { HistoryError } from '../../src/platform/history/port.ts';
import { createRemoteHistories } from '../../src/platform/history/remote.ts';
import type { HistorySource } from '../../src/platform/history/target.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { use } from '../support/use.ts';
import {
  startCustomerMariadb,
  startCustomerPostgres,
  startHistoryReceiver,
  startMongoJavaServer,
} from './servers.ts';
import type { CustomerDatabase } from './servers.ts';
import { depsOf } from './world.ts';

/**
 * docs/storage.md, Safety: real databases, and a relay that changes what they answer, at a random place of each
 * session. Whatever arrives, every request ends with a record that fits its schema or with a HistoryError, this process
 * goes on, and an unchanged session works afterwards.
 */

const sessions = 500;
const atOnce = 25;
/** Milliseconds without a byte after which a session that was changed is cut, instead of waiting for a driver's time-out. */
const quietMs = 200;

function randomFrom(start: number): (below: number) => number {
  let state = start;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}
type Random = ReturnType<typeof randomFrom>;

const numbers = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/** The chunk as a server with a fault, or with intent, would send it. */
function mutated(chunk: Buffer, random: Random): Buffer {
  const bytes = Buffer.from(chunk);
  const at = random(bytes.length);
  const noise = () => Buffer.from(Array.from({ length: 1 + random(64) }, () => random(256)));
  switch (random(8)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      return Buffer.concat([bytes, bytes]);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), noise(), bytes.subarray(at)]);
    case 3:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random(16))]);
    case 4:
    case 5: {
      // A number, as lengths and counts are: four bytes in either order.
      if (bytes.length < 4) return noise();
      const value = numbers[random(numbers.length)]!;
      const where = random(bytes.length - 3);
      if (random(2) === 0) bytes.writeUInt32BE(value, where);
      else bytes.writeUInt32LE(value, where);
      return bytes;
    }
    default:
      for (let n = 1 + random(4); n > 0; n--) bytes[random(bytes.length)] = random(256);
      return bytes;
  }
}

/** A way to a server that changes what it answers while `random` is set. */
async function startRelay(port: number) {
  const state: { random: Random | null } = { random: null };
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one
        .on('error', () => undefined)
        .on('close', () => {
          open.delete(one);
          other.destroy();
        });
    }
    const { random } = state;
    // Most of a session's chunks are answers to single statements, so its depth is a number of chunks.
    let chunksLeft = random ? random(24) : Infinity;
    near.pipe(far);
    far.on('data', (chunk: Buffer) => {
      near.write(random && chunksLeft-- <= 0 && random(3) > 0 ? mutated(chunk, random) : chunk);
      if (chunksLeft === -1) near.setTimeout(quietMs, () => near.destroy());
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    state,
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const histories = use(
  () =>
    Promise.resolve(
      createRemoteHistories({
        settings: { allowPrivate: true, dnsServers: [] },
        clock: systemClock,
        logger: createLogger('silent'),
      }),
    ),
  (it) => it.close(),
);

async function session(source: HistorySource, tenant: number): Promise<void> {
  const expected = (error: unknown) => assert.ok(error instanceof HistoryError, String(error));
  let history;
  try {
    history = await histories.open(source, { no: tenant, id: 'env_a' }, () => undefined);
  } catch (error) {
    return expected(error);
  }
  await Promise.all([
    history.test().catch(expected),
    history.read({ conversationId: 'conv_fuzz', limit: 50 }).catch(expected),
    history.get('msg_fuzz_1').catch(expected),
    history.write([message({ id: 'msg_fuzz_1', conversationId: 'conv_fuzz', seq: 1 })]).catch(expected),
  ]);
  await history.close().catch(expected);
}

async function survives(source: HistorySource, port: number, name: string): Promise<void> {
  const direct = await openHistory(source, depsOf('env_a'));
  await direct.write(
    Array.from({ length: 30 }, (_, n) =>
      message({ id: `msg_fuzz_${n}`, conversationId: 'conv_fuzz', seq: n + 1, text: 'x'.repeat(n * 20) }),
    ),
  );
  await direct.close();
  const relay = await startRelay(port);
  try {
    const relayed = { ...source, url: source.url.replace(`:${port}/`, `:${relay.port}/`) };
    relay.state.random = randomFrom(seed(`fuzz of ${name}`));
    let left = sessions;
    await Promise.all(
      Array.from({ length: atOnce }, async (_, lane) => {
        while (left-- > 0) await session(relayed, lane + 1);
      }),
    );
    relay.state.random = null;
    const history = await histories.open(relayed, { no: 999, id: 'env_a' }, () => undefined);
    assert.equal((await history.read({ conversationId: 'conv_fuzz', limit: 50 })).data.length, 30);
    await history.close();
  } finally {
    await relay.close();
  }
}

const servers: [name: string, start: () => Promise<CustomerDatabase | null>][] = [
  ['PostgreSQL', startCustomerPostgres],
  ['MariaDB', startCustomerMariadb],
];
const mongodb = await startMongoJavaServer();
if (mongodb) servers.push(['MongoDB', () => Promise.resolve(mongodb)]);
else
  console.log(
    '!!! LEFT OUT: THE FUZZ OF MONGODB: npm test fetches mongo-java-server where Maven and Java are.',
  );

for (const [name, start] of servers)
  test(`docs/storage.md, Safety: ${sessions} changed sessions of ${name} end, and the next one works`, async () => {
    const server = (await start())!;
    try {
      const admin = await server.createDatabase();
      const { runtimeUrl } = await migrateHistory({ url: admin }, depsOf('env_a'));
      const url = runtimeUrl ?? admin;
      await survives({ url }, Number(/:(\d+)\//.exec(url)![1]), name);
    } finally {
      await server.stop();
    }
  });

test(`docs/storage.md, Safety: ${sessions} changed sessions of an http endpoint end, and the next one works`, async () => {
  const receiver = await startHistoryReceiver();
  try {
    const source = { url: receiver.url, secrets: [receiver.secret] };
    await survives(source, Number(new URL(receiver.url).port), 'http');
  } finally {
    await receiver.close();
  }
});
