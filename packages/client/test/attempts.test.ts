import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { createClient, ParleyError } from '../src/index.ts';
import type { ClientOptions } from '../src/index.ts';
import { connected, world } from './harness.ts';

const options = (url: string): ClientOptions => ({ url, token: () => 'x.y.z' });

async function address(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The first error of a client that cannot connect. */
async function firstError(t: TestContext, url: string): Promise<ParleyError> {
  const client = createClient(options(url));
  t.after(() => client.disconnect());
  const error = new Promise<ParleyError>((resolve) => client.on('error', resolve));
  client.connect().catch(() => undefined);
  return error;
}

test('createClient refuses at once what could never connect', (t) => {
  for (const url of ['', 'chat.example.com', 'ftp://chat.example.com', 'ws://chat.example.com', 'https://'])
    assert.throws(() => createClient(options(url)), { code: 'invalid_url' }, url);
  const real = globalThis.WebSocket;
  t.after(() => void (globalThis.WebSocket = real));
  delete (globalThis as { WebSocket?: unknown }).WebSocket;
  assert.throws(
    () => createClient(options('http://chat.test')),
    (e: ParleyError) => {
      assert.equal(e.code, 'no_websocket');
      assert.match(e.message, /pass one/);
      return true;
    },
  );
});

test('nobody listens: the error names the address and the reason', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  const error = await firstError(t, `http://127.0.0.1:${port}`);
  assert.equal(error.code, 'network');
  assert.match(error.message, new RegExp(`^ws://127.0.0.1:${port}/v1 opens no socket: .*ECONNREFUSED`));
});

test('a wrong URL: the error has the address and the status', async (t) => {
  const url = await address(t, (_request, response) => void response.writeHead(404).end('<html>'));
  const error = await firstError(t, url);
  assert.equal(error.status, 404);
  assert.equal(error.message, `${url.replace('http', 'ws')}/v1 opens no socket: HTTP 404`);
});

test('a proxy that drops the upgrade: the error says what the server says', async (t) => {
  const message = 'Here is the socket.';
  const url = await address(
    t,
    (_request, response) =>
      void response.writeHead(400).end(JSON.stringify({ error: { code: 'invalid_request', message } })),
  );
  const error = await firstError(t, url);
  assert.deepEqual(
    [error.status, error.message],
    [400, `${url.replace('http', 'ws')}/v1 opens no socket: ${message}`],
  );
});

test('a refused login: every attempt tells why, and connect rejects with the final one', async () => {
  const { clock, server, client } = world();
  const ann = client('ann');
  const errors: ParleyError[] = [];
  ann.on('error', (e) => errors.push(e));
  server.onFrame = (socket, frame) => {
    if (frame.t !== 'auth') return;
    socket.end(4001, 'token_invalid: The signature is wrong.');
    return 'ignore';
  };
  const failing = assert.rejects(ann.connect(), {
    code: 'token_invalid',
    message: 'The signature is wrong.',
  });
  await clock.advance(60_000);
  await failing;
  assert.deepEqual(
    errors.map((e) => [e.code, e.message]),
    [1, 2].map(() => ['token_invalid', 'The signature is wrong.']),
  );
});

test('every attempt that fails is told, and no more when one has succeeded', async () => {
  const { clock, server, client } = world();
  const ann = client('ann');
  const errors: ParleyError[] = [];
  ann.on('error', (e) => errors.push(e));
  server.accept = () => 1006;
  const connecting = ann.connect();
  await clock.advance(60_000);
  const attempts = server.urls.length;
  assert.ok(attempts > 3, `${attempts} attempts`);
  assert.deepEqual(
    errors.map((e) => e.code),
    Array<string>(attempts).fill('network'),
  );
  server.accept = () => null;
  await clock.advance(60_000);
  await connecting;
  assert.equal(errors.length, server.urls.length - 1);
});

test('a user who was deactivated: connect rejects with the server’s own code', async () => {
  const { clock, server, client } = world();
  const ann = client('ann');
  server.onFrame = (socket, frame) => {
    if (frame.t !== 'auth') return;
    socket.end(4003, 'user_deactivated: The user is deactivated.');
    return 'ignore';
  };
  const failing = assert.rejects(ann.connect(), {
    code: 'user_deactivated',
    message: 'The user is deactivated.',
  });
  await clock.advance(1_000);
  await failing;
});

test('no message just repeats its code', async () => {
  for (const code of ['network', 'timeout', 'disconnected', 'aborted', 'outbox_full'])
    assert.notEqual(new ParleyError(code).message, code);
});

test('events name the conversation as everything else does', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  const got: object[] = [];
  ann.on('event', ({ conversationId, type, data }) => {
    if (type === 'message.new')
      got.push({ conversationId, text: data.message.text, replyTo: data.message.replyTo });
  });
  ann.on('typing', (typing) => got.push(typing));
  ann.on('receipt', (receipt) => got.push(receipt));
  server.send(cid, 'bob', { text: 'hi' });
  const [socket] = server.sockets;
  socket!.push({ t: 'typing', d: { cid, userId: 'bob', state: 'start' } });
  socket!.push({ t: 'receipt', d: { cid, userId: 'bob', lastReadSeq: 2 } });
  await clock.advance(0);
  assert.deepEqual(got, [
    { conversationId: cid, text: 'hi', replyTo: null },
    { conversationId: cid, userId: 'bob', state: 'start' },
    { conversationId: cid, userId: 'bob', lastReadSeq: 2 },
  ]);
});
