import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { ConnectionAcceptor } from '../../src/platform/connection-acceptor.ts';
import type { Logger } from '../../src/platform/logging.ts';

/** An acceptor of 8 connections. Those from 127.0.0.9 come through a proxy. */
async function open(t: TestContext, connections = 8) {
  const warnings: object[] = [];
  const clock = { at: 1_000_000, monotonic: () => clock.at };
  const server = createServer((_request, response) => void response.end('ok'));
  const acceptor = new ConnectionAcceptor(server, {
    connections,
    clock,
    ownerOf: ({ remoteAddress }) => (remoteAddress === '127.0.0.9' ? null : remoteAddress!),
    logger: { warn: (values: object) => void warnings.push(values) } as unknown as Logger,
  });
  await acceptor.listen('127.0.0.1', 0, (how) => once(server.listen(how), 'listening'));
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await acceptor.close();
  });
  const dial = (from: string): Socket => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: from }).on('error', () => undefined);
    sockets.push(socket);
    return socket;
  };
  /** True: it is answered; false: it was dropped. */
  const answered = async (socket: Socket): Promise<boolean> => {
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    const { promise, resolve } = Promise.withResolvers<boolean>();
    socket.once('data', () => resolve(true)).once('close', () => resolve(false));
    return promise;
  };
  return { acceptor, port, clock, warnings, dial, answered, comes: (from: string) => answered(dial(from)) };
}

describe('the bounds of connections', () => {
  it('accepts as many as fit, and again when some have left', async (t) => {
    const { comes, dial, answered, warnings, clock } = await open(t);
    const held = dial('127.0.0.9');
    assert.equal(await answered(held), true);
    for (let i = 1; i < 8; i++) assert.equal(await comes('127.0.0.9'), true, `the ${i + 1}th`);
    for (let i = 0; i < 3; i++) assert.equal(await comes('127.0.0.9'), false);
    assert.deepEqual(warnings, [{ connections: 8, open: 8, dropped: 1 }]);
    clock.at += 60_000;
    assert.equal(await comes('127.0.0.9'), false);
    assert.deepEqual(warnings[1], { connections: 8, open: 8, dropped: 3 });
    held.destroy();
    while (!(await comes('127.0.0.9')));
  });

  it('keeps a quarter of the room from one address, but not from a proxy', async (t) => {
    const { comes } = await open(t);
    for (let i = 0; i < 6; i++) assert.equal(await comes('127.0.0.2'), true);
    assert.equal(await comes('127.0.0.2'), false);
    assert.deepEqual([await comes('127.0.0.3'), await comes('127.0.0.9')], [true, true]);
  });

  it('accepts many at a time: who dials in a loop does not make others wait for a turn each', async (t) => {
    const { dial, answered } = await open(t, Infinity);
    const crowd = Array.from({ length: 1_000 }, () => dial('127.0.0.2'));
    await Promise.all(crowd.map((socket) => once(socket, 'connect')));
    let turns = 0;
    const count = (): void => void (turns++, (counting = setImmediate(count)));
    let counting = setImmediate(count);
    assert.equal(await answered(dial('127.0.0.3')), true);
    clearImmediate(counting);
    assert.ok(turns < 500, `${turns} turns of the event loop`);
  });

  it('refuses a port that another program listens on', async (t) => {
    const { port } = await open(t);
    const other = await open(t);
    await assert.rejects(
      other.acceptor.listen('127.0.0.1', port, () => Promise.resolve()),
      { code: 'EADDRINUSE' },
    );
  });

  it('drops an address that is refused again and again, for the rest of the second, and nobody else', async (t) => {
    const { acceptor, comes, clock } = await open(t, Infinity);
    for (let i = 0; i < 50; i++) acceptor.refused('127.0.0.2');
    const dropped = async (from: string): Promise<number> => {
      let count = 0;
      for (let i = 0; i < 40; i++) if (!(await comes(from))) count++;
      return count;
    };
    assert.equal(await dropped('127.0.0.2'), 0, 'not yet');
    acceptor.refused('127.0.0.2');
    assert.equal(await dropped('127.0.0.2'), 40);
    assert.deepEqual([await dropped('127.0.0.3'), await dropped('127.0.0.9')], [0, 0]);
    clock.at += 1_000;
    assert.equal(await dropped('127.0.0.2'), 0);
  });
});
