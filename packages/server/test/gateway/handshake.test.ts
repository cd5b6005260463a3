import assert from 'node:assert/strict';
import { connect as tcp } from 'node:net';
import type { Socket } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';
import { featureNames } from '@parley/protocol';
import { environments } from '../support/service.ts';
import { connect, open } from '../support/socket.ts';
import { devToken, nowSeconds, signToken } from '../support/tokens.ts';
import { text } from './live-scene.ts';
import { useService } from '../support/use.ts';

/** Opening, authenticating and refusing sockets (socket#open, socket#auth, errors#close-codes). */

const { service, scene } = useService();

/** What the server answers to an upgrade written by hand. */
async function handshake(lines: string[]): Promise<string> {
  const socket = tcp(service.port, '127.0.0.1');
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    answer += chunk;
    if (answer.startsWith('HTTP/1.1 101')) socket.destroy();
  });
  // Our half stays open: the server must end the connection by itself, be it with a reset.
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('close', resolve));
  return answer;
}
const upgrade = (target: string, headers: string[] = []) => [
  `GET ${target} HTTP/1.1`,
  'Host: x',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ...headers,
];
const chatV1 = 'Sec-WebSocket-Protocol: chat.v1';

test('socket#open: the socket is at /v1 with subprotocol chat.v1; others are refused', async () => {
  assert.match(
    await handshake(upgrade('/v1', [chatV1])),
    /^HTTP\/1.1 101 [^]*sec-websocket-protocol: chat\.v1\r\n/i,
  );
  assert.match(await handshake(upgrade('/v1/?sdk=x/1', [chatV1])), /^HTTP\/1.1 101 /);
  assert.match(
    await handshake(upgrade('/v1', ['Sec-WebSocket-Protocol: chat.v2, chat.v1'])),
    /^HTTP\/1.1 101 /,
  );
  for (const headers of [[], ['Sec-WebSocket-Protocol: chat.v2'], ['Sec-WebSocket-Protocol: CHAT.V1']])
    assert.match(await handshake(upgrade('/v1', headers)), /^HTTP\/1.1 400 /);
  for (const target of ['/', '/v2', '/v1/users', '//', '/v1%2f'])
    assert.match(await handshake(upgrade(target, [chatV1])), /^HTTP\/1.1 40[04] /, target);
  const noKey = upgrade('/v1', [chatV1]).filter((l) => !l.startsWith('Sec-WebSocket-Key'));
  assert.match(await handshake(noKey), /^HTTP\/1.1 400 /);
});

test('RFC 6455, 4.4: any version but 13 is 426 with the version that is spoken here', async () => {
  const lines = upgrade('/v1', [chatV1]);
  const others = ['7', '8', '12', '14', '13, 8', '013', 'x'].map((version) =>
    lines.map((l) => l.replace('Version: 13', `Version: ${version}`)),
  );
  for (const other of [...others, lines.filter((l) => !l.includes('Version: 13'))]) {
    const answer = await handshake(other);
    assert.match(answer, /^HTTP\/1.1 426 Upgrade Required\r\n/, other.join());
    for (const header of ['Sec-WebSocket-Version: 13', 'Upgrade: websocket', 'Connection: Upgrade, close'])
      assert.ok(answer.includes(`\r\n${header}\r\n`), header);
    assert.equal(JSON.parse(answer.split('\r\n\r\n')[1]!).error.code, 'upgrade_required');
  }
});

test('errors#body, api#request-id, plans#rate-headers: a refused upgrade has the specification’s error, a Request-Id and the rate headers', async () => {
  const withoutKey = upgrade('/v1', [chatV1]).filter((l) => !l.startsWith('Sec-WebSocket-Key'));
  const oldVersion = upgrade('/v1', [chatV1]).map((l) => l.replace('Version: 13', 'Version: 7'));
  for (const [lines, status, code] of [
    [upgrade('/v2', [chatV1]), 404, 'not_found'],
    [upgrade('/v1'), 400, 'invalid_request'],
    [withoutKey, 400, 'invalid_request'],
    [oldVersion, 426, 'upgrade_required'],
    [
      ['POST /v1 HTTP/1.1', ...upgrade('/v1', [chatV1]).slice(1), 'Content-Length: 0'],
      400,
      'invalid_request',
    ],
  ] as const) {
    const answer = await handshake([...lines]);
    const [head, body] = answer.split('\r\n\r\n') as [string, string];
    assert.match(head, new RegExp(`^HTTP/1.1 ${status} \\w`), head);
    const requestId = /^Request-Id: (req_\w+)$/m.exec(head)?.[1];
    assert.ok(requestId, head);
    for (const name of ['Limit', 'Remaining', 'Reset'])
      assert.match(head, new RegExp(`^RateLimit-${name}: \\d+$`, 'm'));
    assert.match(head, /^Content-Type: application\/json/m);
    const { error } = JSON.parse(body);
    assert.deepEqual([error.code, error.requestId], [code, requestId]);
    assert.equal(typeof error.message, 'string');
  }
});

test('RFC 9110, 7.8: an upgrade to anything but a websocket is ignored, and the request answered', async () => {
  const h2c = (target: string) => [
    `GET ${target} HTTP/1.1`,
    'Host: x',
    'Connection: Upgrade, HTTP2-Settings, close',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
  ];
  assert.match(await handshake(h2c('/healthz')), /^HTTP\/1.1 200 [^]*"status":"ok"/);
  assert.match(await handshake(h2c('/v1/users/x')), /^HTTP\/1.1 401 [^]*"code":"token_invalid"/);
  assert.match(await handshake(h2c('/v1')), /^HTTP\/1.1 404 [^]*"code":"not_found"/);
});

test('socket#hello: hello carries all its fields', async () => {
  const actor = await scene.actor();
  const exp = nowSeconds() + 7_200;
  const socket = await connect(service, scene.token(actor, { exp }), { env: environments.dev.id });
  const { sessionId, serverTime, storeEpoch, ...rest } = socket.hello;
  assert.match(sessionId, /^ses_[0-9a-z]{26}$/);
  assert.ok(storeEpoch.length > 0);
  assert.ok(Math.abs(Date.parse(serverTime) - Date.now()) < 60_000);
  assert.deepEqual(rest, {
    userId: actor.id,
    heartbeatMs: 25_000,
    tokenExpiresAt: new Date(exp * 1000).toISOString(),
    limits: { maxFrameBytes: 16_384, sendsPerSecond: 10 },
    features: [...featureNames],
    personalRev: 0,
  });
  assert.equal(socket.ws.protocol, 'chat.v1');
  await socket.barrier();
  assert.equal(socket.frames[0].t, 'hello');
  assert.ok(!socket.frames.some((f) => f.t === 'token_expiring'));
  await socket.close();
});

test('socket#token-expiring: a 30-day token keeps its socket (api#clocks), a short one hears token_expiring at once', async () => {
  const actor = await scene.actor();
  const { body } = await scene.server('POST', '/v1/tokens', { userId: actor.id, expiresIn: 2_592_000 });
  const long = await connect(service, body.token);
  assert.equal(long.hello.tokenExpiresAt, new Date(body.expiresAt).toISOString());
  await long.barrier();
  assert.equal(long.frames.filter((f) => f.t === 'token_expiring').length, 0);
  const exp = nowSeconds() + 200;
  const short = await connect(service, scene.token(actor, { exp }));
  assert.equal((await short.ephemeral('token_expiring')).d.expiresAt, new Date(exp * 1000).toISOString());
});

test('socket#auth: a first frame that is not auth closes 4001', async () => {
  for (const frame of [
    '{"t":"hb"}',
    '{"t":"sync","id":"1","d":{"cursor":null}}',
    '{"t":"auth"}',
    '{"t":"auth","d":{}}',
    '{"t":"auth","d":{"token":"x","more":1}}',
    'hello',
    '[]',
    Buffer.from([1, 2, 3]),
  ]) {
    const socket = open(service);
    await socket.opened;
    socket.raw(frame);
    assert.equal((await socket.closed).code, 4001, String(frame));
    assert.deepEqual(socket.frames, []);
  }
});

test('identity#token-errors: tokens that are missing, invalid or expired close 4001', async () => {
  const actor = await scene.actor();
  const now = nowSeconds();
  const revoked = await scene.actor();
  const old = scene.token(revoked, { iat: now - 10 });
  await scene.server('POST', `/v1/users/${revoked.id}/revoke-tokens`);
  const good = scene.token(actor);
  for (const token of [
    'nonsense',
    'a.b.c',
    `${good.slice(0, -4)}AAAA`,
    scene.token(actor, { exp: now - 1, iat: now - 60 }),
    scene.token(actor, { iat: now + 3_600, exp: now + 7_200 }),
    signToken({ sub: actor.id }, { secretKey: `sk_live_${'z'.repeat(16)}_${'z'.repeat(32)}` }),
    environments.dev.secretKey,
    old,
    devToken({ sub: actor.id }),
    devToken({ sub: actor.id }, { kid: 'a'.repeat(16) }),
  ]) {
    const socket = open(service);
    await socket.opened;
    socket.send('auth', { token });
    assert.equal((await socket.closed).code, 4001, token);
    assert.deepEqual(socket.frames, []);
  }
});

test('socket#put-out: deactivated users, foreign environments and development tokens in production close 4003', async () => {
  const actor = await scene.actor();
  const token = scene.token(actor);
  const sleeping = await scene.actor();
  await scene.server('POST', `/v1/users/${sleeping.id}/deactivate`);
  const now = nowSeconds();
  const attempts: [string, string | undefined][] = [
    [scene.token(sleeping), undefined],
    [scene.token(sleeping, { iat: now + 30, exp: now + 3_600 }), undefined],
    [token, environments.other.id],
    [token, 'env_nowhere'],
    [devToken({ sub: actor.id }), environments.prod.id],
  ];
  for (const [credential, env] of attempts) {
    const socket = open(service, env === undefined ? {} : { env });
    await socket.opened;
    socket.send('auth', { token: credential });
    assert.equal((await socket.closed).code, 4003, env);
  }
});

test('identity#dev-tokens: a development token works where the environment is named and allows it', async () => {
  const socket = await connect(service, devToken({ sub: 'dev-user' }), { env: environments.dev.id });
  assert.equal(socket.hello.userId, 'dev-user');
});

test('socket#auth: a second auth, or any frame before hello, is a protocol violation (4400)', async () => {
  const { actor, socket } = await scene.person();
  socket.send('auth', { token: scene.token(actor) });
  assert.equal((await socket.closed).code, 4400);
  for (const second of ['auth', 'hb']) {
    const eager = open(service);
    await eager.opened;
    const { _socket: wire } = eager.ws as unknown as { _socket: Socket };
    wire.cork();
    eager.send('auth', { token: scene.token(actor) });
    eager.send(second, second === 'auth' ? { token: scene.token(actor) } : {});
    wire.uncork();
    assert.equal((await eager.closed).code, 4400);
    assert.deepEqual(eager.frames, []);
  }
});

test('socket#invalid-frame: text that is no JSON and binary frames get invalid_frame without re; ten in a row close 4400', async () => {
  const { actor, socket } = await scene.person();
  const bad = ['{', '', 'hello', Buffer.from('{"t":"hb"}'), Buffer.alloc(0), '{"t":"hb"}}'];
  for (let i = 0; i < 9; i++) socket.raw(bad[i % bad.length]!);
  socket.send('hb');
  for (let i = 0; i < 9; i++) socket.raw(bad[i % bad.length]!);
  await socket.barrier();
  const errors = socket.frames.filter((f) => f.t === 'error');
  assert.equal(errors.length, 18);
  for (const error of errors) assert.deepEqual([error.code, 're' in error], ['invalid_frame', false]);
  for (let i = 0; i < 10; i++) socket.raw('{');
  assert.equal((await socket.closed).code, 4400);
  await scene.online(actor);
});

test('socket#frame-size: a frame of 16 KB is taken, one byte more closes 1009, in one piece or in many', async () => {
  const { actor } = await scene.person();
  const conv = await scene.group(actor, []);
  const frame = JSON.stringify({ t: 'message.send', id: 1, d: text(conv.id) });
  const sized = (bytes: number): string => frame + ' '.repeat(bytes - frame.length);
  const fits = await scene.online(actor);
  fits.asked.set(1, 'message.send');
  fits.raw(sized(16_384));
  await fits.event('message.new', conv.id);
  const over = await scene.online(actor);
  over.raw(sized(16_385));
  assert.equal((await over.closed).code, 1009);
  const pieces = await scene.online(actor);
  for (let i = 0; i < 5; i++) pieces.ws.send('x'.repeat(4_000), { fin: false });
  assert.equal((await pieces.closed).code, 1009);
});

test('RFC 6455: fragmented frames are put together, pings are answered, invalid UTF-8 closes 1007', async () => {
  const { actor, socket } = await scene.person();
  const conv = await scene.group(actor, []);
  const frame = JSON.stringify({ t: 'message.send', id: 'f', d: text(conv.id, 'in pieces 🎉') });
  const bytes = Buffer.from(frame);
  socket.asked.set('f', 'message.send');
  for (let i = 0; i < bytes.length; i += 7)
    socket.ws.send(bytes.subarray(i, i + 7), { binary: false, fin: i + 7 >= bytes.length });
  assert.equal((await socket.event('message.new', conv.id)).d.message.text, 'in pieces 🎉');
  const pong = once(socket.ws, 'pong');
  socket.ws.ping('abc');
  assert.equal(String((await pong)[0]), 'abc');
  socket.ws.send(Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), { binary: false });
  assert.equal((await socket.closed).code, 1007);
});

test('socket#ten-sockets: a user may hold 10 sockets; with the 11th the oldest is closed with 4009', async () => {
  const actor = await scene.actor();
  const sockets = [];
  for (let i = 0; i < 10; i++) sockets.push(await scene.online(actor));
  for (const socket of sockets) await socket.barrier();
  const eleventh = await scene.online(actor);
  assert.equal((await sockets[0]!.closed).code, 4009);
  const twelfth = await scene.online(actor);
  assert.equal((await sockets[1]!.closed).code, 4009);
  const conv = await scene.group(actor, []);
  for (const socket of [...sockets.slice(2), eleventh, twelfth])
    await socket.event('conversation.created', conv.id);
});

test('socket#ten-sockets: of 15 sockets opened at once, 10 stay', async () => {
  const actor = await scene.actor();
  const sockets = Array.from({ length: 15 }, () => open(service));
  await Promise.all(sockets.map((s) => s.opened));
  const codes: number[] = [];
  const fiveClosed = new Promise<void>((resolve) => {
    for (const s of sockets)
      void s.closed.then(({ code }) => {
        if (codes.push(code) === 5) resolve();
      });
  });
  for (const socket of sockets) socket.send('auth', { token: scene.token(actor) });
  await fiveClosed;
  assert.deepEqual(codes, [4009, 4009, 4009, 4009, 4009]);
  const left = sockets.filter((s) => s.ws.readyState === 1);
  assert.equal(left.length, 10);
  // Events come from `hello` on, and a socket counts a moment before that.
  for (const socket of left) await socket.next((f) => f.t === 'hello', 'hello');
  const conv = await scene.group(actor, []);
  for (const socket of left) await socket.event('conversation.created', conv.id);
});

test('socket#health: /healthz and /readyz are beside the socket', async () => {
  for (const path of ['/healthz', '/readyz']) assert.equal((await fetch(service.url + path)).status, 200);
});
