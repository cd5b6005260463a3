import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { createManaged } from '../../src/platform/storage/managed.ts';
import type { ManagedStorage } from '../../src/platform/storage/managed.ts';
import { Transfers } from '../../src/platform/storage/managed-transfers.ts';
import type { Slowest } from '../../src/platform/storage/managed-transfers.ts';
import { upload } from './suite.ts';

const never: Slowest = { bytes: 1, ms: 3_600_000 };
/** Soon enough for a test, and longer than a busy machine keeps an upload waiting that goes well. */
const soon: Slowest = { bytes: 64 * 1024, ms: 1_000 };

async function start(t: TestContext, slowest: Slowest) {
  const directory = await mkdtemp(join(tmpdir(), 'managed-'));
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  let serial = 0;
  const storage = createManaged({
    directory,
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/media`,
    secrets: [Buffer.alloc(32, 1)],
    now: () => new Date(),
    uniqueName: () => `upload-${(serial += 1)}`,
    slowest,
  });
  await storage.open();
  server.on('request', (req, res) => void storage.handle(req, res));
  t.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await rm(directory, { recursive: true, force: true });
  });
  return { storage, server, incoming: join(directory, 'incoming') };
}

const ticket = (storage: ManagedStorage, key: string, size: number) =>
  storage.ticket({
    key,
    size,
    contentType: 'image/png',
    filename: 'a.png',
    resource: 'image',
    expiresAt: new Date(Date.now() + 600_000),
  });

/** A machine that is slow itself is cut off like a slow client: the ticket works again. */
async function uploadInTime(...args: Parameters<typeof upload>): Promise<number> {
  let status = 408;
  for (let tries = 0; status === 408 && tries < 100; tries += 1) ({ status } = await upload(...args));
  return status;
}

/** Sends a request's head and the first byte of its body; what comes back is gathered. */
function begin(url: string, size: number, type = 'image/png') {
  const { pathname, search, port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  const answer = { text: '' };
  socket.setEncoding('latin1').on('data', (chunk: string) => (answer.text += chunk));
  socket.on('error', () => undefined);
  socket.write(
    `PUT ${pathname}${search} HTTP/1.1\r\nhost: x\r\ncontent-type: ${type}\r\ncontent-length: ${size}\r\n\r\nx`,
  );
  return { socket, answer };
}

/** A byte now and then keeps the connection busy; ends when the other side lets go of it. */
async function drip(socket: Socket): Promise<void> {
  const timer = setInterval(() => socket.write('x'), 50);
  // A byte that comes too late is an error of the connection, and then it is closed all the same.
  await new Promise((resolve) => socket.once('close', resolve));
  clearInterval(timer);
}

async function until(met: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 2_000; turn += 1) {
    if (await met()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.fail('did not happen');
}

test('one upload of an object at a time: the second is 409 before its body is read, the first goes on', async (t) => {
  const { storage, incoming } = await start(t, never);
  const one = await ticket(storage, 'env_a/1', 1_000);
  const first = begin(one.url, 1_000);
  await until(async () => (await readdir(incoming)).some((name) => name.endsWith('.lock')));
  for (let i = 0; i < 3; i++) {
    const second = await upload(one, Buffer.alloc(1_000));
    assert.equal(second.status, 409);
    assert.ok(Number(second.headers.get('retry-after')) > 0);
    assert.match(await second.text(), /under way/);
  }
  // Its file and its lock; the others' files are gone.
  await until(async () => (await readdir(incoming)).length === 2);
  first.socket.write(Buffer.alloc(999, 'y'));
  await once(first.socket, 'data');
  assert.match(first.answer.text, /^HTTP\/1\.1 201 /);
  first.socket.destroy();
  assert.equal((await storage.inspect('env_a/1', 'image'))?.head[999], 'y'.charCodeAt(0));
  await until(async () => (await readdir(incoming)).length === 0);
});

test('what a crash left behind does not keep an object from being uploaded', async (t) => {
  const { storage, incoming } = await start(t, soon);
  const lock = (key: string) => join(incoming, `${createHash('sha256').update(key).digest('hex')}.lock`);
  await writeFile(join(incoming, 'dead'), 'half');
  await utimes(join(incoming, 'dead'), 1, 1);
  await symlink('dead', lock('env_a/dead'));
  await symlink('nothing', lock('env_a/dangling'));
  for (const key of ['env_a/dead', 'env_a/dangling'])
    assert.equal((await upload(await ticket(storage, key, 3), Buffer.from('abc'))).status, 201, key);
});

test('an upload that drips is cut off, and its ticket works again', async (t) => {
  const { storage } = await start(t, soon);
  const one = await ticket(storage, 'env_a/1', 100_000);
  const { socket, answer } = begin(one.url, 100_000);
  await drip(socket);
  assert.match(answer.text, /^HTTP\/1\.1 408 /);
  assert.equal(await uploadInTime(one, Buffer.alloc(100_000)), 201);
});

test('a refused upload that drips is told why and then let go of', async (t) => {
  const { storage } = await start(t, never);
  const one = await ticket(storage, 'env_a/1', 100_000);
  for (const [url, type, status] of [
    [one.url, 'text/html', 400],
    [`${one.url}x`, 'image/png', 403],
  ] as const) {
    const { socket, answer } = begin(url, 100_000, type);
    await drip(socket);
    assert.match(answer.text, new RegExp(`^HTTP/1\\.1 ${status} `));
  }
});

test('a refused upload whose body has arrived keeps its connection', async (t) => {
  const { storage } = await start(t, never);
  const one = await ticket(storage, 'env_a/1', 1);
  const { socket, answer } = begin(one.url, 1, 'text/html');
  await once(socket, 'data');
  const { pathname, search } = new URL(one.url);
  const head = `PUT ${pathname}${search} HTTP/1.1\r\nhost: x\r\ncontent-type: image/png\r\ncontent-length: 1\r\n\r\nx`;
  // Longer than a connection with an unread body would be kept.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  socket.write(head);
  await once(socket, 'data');
  socket.destroy();
  assert.match(answer.text, /^HTTP\/1\.1 400 [^]*HTTP\/1\.1 201 /);
});

test('a download that nobody reads is cut off', async (t) => {
  const { storage, server } = await start(t, soon);
  const size = 25_000_000;
  assert.equal(await uploadInTime(await ticket(storage, 'env_a/1', size), Buffer.alloc(size)), 201);
  const url = await storage.downloadUrl({
    key: 'env_a/1',
    resource: 'image',
    filename: 'a.png',
    contentType: 'image/png',
    disposition: 'inline',
    expiresIn: 60,
  });
  const { pathname, search, port } = new URL(url);
  const connected = once(server, 'connection') as Promise<[Socket]>;
  const socket = connect({ port: Number(port), host: '127.0.0.1' });
  t.after(() => socket.destroy());
  socket.on('error', () => undefined);
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\nhost: x\r\n\r\n`);
  const [theirs] = await connected;
  await new Promise((resolve) => theirs.once('close', resolve));
  assert.ok(theirs.bytesWritten < size, 'the rest was not waited for');
});

test('transfers under way are bounded for an environment and in all', () => {
  const transfers = new Transfers();
  const ends: (() => void)[] = [];
  const begin = (key: string) => {
    const end = transfers.begin('put', key);
    if (end) ends.push(end);
    return end !== null;
  };
  for (let i = 0; i < 100; i++) assert.ok(begin(`env_a/${i}`));
  assert.ok(!begin('env_a/x'));
  assert.ok(transfers.begin('get', 'env_a/x'), 'downloads have bounds of their own');
  for (const env of ['b', 'c', 'd']) for (let i = 0; i < 100; i++) assert.ok(begin(`env_${env}/${i}`));
  assert.ok(!begin('env_e/1'), 'the process is full');
  ends.pop()!();
  assert.ok(begin('env_e/1'));
  for (const end of ends) end();
  for (let i = 0; i < 100; i++) assert.ok(begin(`env_a/${i}`));
});
