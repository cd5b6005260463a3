import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { addressRefusal } from '../src/platform/outbound/address.ts';
import {
  createOutbound,
  OutboundRefused,
  OutboundTimeout,
  OutboundUnresolved,
} from '../src/platform/outbound/outbound.ts';
import type { OutboundOptions } from '../src/platform/outbound/outbound.ts';
import type { Address } from '../src/platform/outbound/resolver.ts';

const PUBLIC: Address = { address: '93.184.216.34', family: 4 };
const LOOPBACK: Address = { address: '127.0.0.1', family: 4 };

function outbound(t: TestContext, options: Partial<OutboundOptions> = {}) {
  const out = createOutbound({ allowPrivate: false, ...options });
  t.after(() => out.close());
  return out;
}

async function listen(t: TestContext, handler: RequestListener, host = '127.0.0.1', port = 0) {
  const server = createServer(handler);
  await once(server.listen(port, host), 'listening');
  t.after(() => stop(server));
  return { server, port: (server.address() as AddressInfo).port };
}

function stop(server: Server) {
  server.closeAllConnections();
  server.close();
}

const refusedUrls = [
  'http://example.com/',
  'ftp://example.com/',
  'file:///etc/passwd',
  'example.com/hook',
  'https://user:pw@example.com/',
  'https://user@example.com/',
  'https://localhost/',
  'https://LOCALHOST./',
  'https://api.localhost/',
  'https://127.0.0.1/',
  'https://127.0.0.1./',
  'https://127.1/',
  'https://127.0.1/',
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0x7f.0x0.0x0.0x1/',
  'https://0177.0.0.1/',
  'https://017700000001/',
  'https://0/',
  'https://0.0.0.0/',
  'https://１２７.0.0.1/',
  'https://127。0。0。1/',
  'https://%31%32%37.0.0.1/',
  'https://10.1.2.3/',
  'https://172.31.255.255/',
  'https://192.168.0.1/',
  'https://3232235521/',
  'https://0300.0250.0.1/',
  'https://100.64.0.1/',
  'https://169.254.169.254/latest/meta-data/',
  'https://0xa9fea9fe/',
  'https://198.18.0.1/',
  'https://192.0.2.1/',
  'https://224.0.0.1/',
  'https://255.255.255.255/',
  'https://256.256.256.256/',
  'https://[::1]/',
  'https://[::]/',
  'https://[0:0:0:0:0:0:0:1]/',
  'https://[fc00::1]/',
  'https://[fd12:3456::1]/',
  'https://[fe80::1]/',
  'https://[fe80::1%25eth0]/',
  'https://[fe80::1%eth0]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:7f00:1]/',
  'https://[::ffff:93.184.216.34]/',
  'https://[::127.0.0.1]/',
  'https://[64:ff9b::7f00:1]/',
  'https://[64:ff9b:1::7f00:1]/',
  'https://[2002:7f00:1::]/',
  'https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/',
  'https://[2001:db8::1]/',
  'https://[ff02::1]/',
  'https://[100::1]/',
];

test('webhooks#targets: a URL that names a forbidden scheme, credential or address is refused', (t) => {
  const out = outbound(t);
  for (const url of refusedUrls) assert.throws(() => out.checkUrl(url), OutboundRefused, url);
});

test('webhooks#targets: ordinary public URLs pass', (t) => {
  const out = outbound(t);
  for (const url of [
    'https://example.com/hook?x=1',
    'https://example.com:8443/',
    'https://93.184.216.34/',
    'https://[2606:4700::1111]/',
    'https://münchen.example/',
    'https://10.example.com/',
    'https://127.0.0.1.example.com/',
  ]) {
    assert.doesNotThrow(() => out.checkUrl(url), url);
  }
});

test('webhooks#targets: allowing private targets admits http and private addresses, never credentials', (t) => {
  const out = outbound(t, { allowPrivate: true });
  out.checkUrl('http://127.0.0.1:3000/');
  out.checkUrl('https://localhost/');
  assert.throws(() => out.checkUrl('ftp://127.0.0.1/'), OutboundRefused);
  assert.throws(() => out.checkUrl('http://u:p@127.0.0.1/'), OutboundRefused);
});

test('line breaks and other control characters in a URL are refused, not dropped', (t) => {
  for (const allowPrivate of [false, true]) {
    const out = outbound(t, { allowPrivate });
    for (const c of ['\n', '\r', '\t', '\v', '\0', '\x7f', '\x85', '\u2028'])
      for (const url of [
        `https://example.com/a${c}b`,
        `https://exam${c}ple.com/`,
        `https://example.com/${c}`,
      ])
        assert.throws(() => out.checkUrl(url), OutboundRefused, JSON.stringify(url));
  }
});

test('the first and last address of every refused block is refused, its public neighbours are not', () => {
  const blocks: [first: string, last: string, before?: string, after?: string][] = [
    ['0.0.0.0', '0.255.255.255', undefined, '1.0.0.0'],
    ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
    ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
    ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
    ['169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
    ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
    ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
    ['198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
    ['224.0.0.0', '255.255.255.255', '223.255.255.255'],
    ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001:4860:4860::8888', '2003::1'],
  ];
  for (const [first, last, before, after] of blocks) {
    assert.ok(addressRefusal(first), first);
    assert.ok(addressRefusal(last), last);
    for (const next of [before, after]) if (next) assert.equal(addressRefusal(next), null, next);
  }
  for (const odd of ['fe80::1%eth0', '2606:4700::1111%1', '', 'example.com', '127.1', '0x7f000001']) {
    assert.ok(addressRefusal(odd), odd);
  }
});

test('guard: hosts of other protocols are checked too, literals in every notation', async (t) => {
  const out = outbound(t, { resolve: () => Promise.resolve([PUBLIC]) });
  for (const host of [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '::1',
    'fe80::1%eth0',
    'localhost',
    '::ffff:10.0.0.1',
  ]) {
    assert.throws(() => out.checkHost(host), OutboundRefused, host);
    await assert.rejects(out.resolve(host), OutboundRefused, host);
  }
  assert.deepEqual(await out.resolve('db.example.com'), [PUBLIC]);
});

test('guard: a name with one private address among public ones is refused', async (t) => {
  const out = outbound(t, { resolve: () => Promise.resolve([PUBLIC, { address: '10.0.0.7', family: 4 }]) });
  await assert.rejects(out.resolve('mixed.example'), OutboundUnresolved);
  await assert.rejects(out.request({ url: 'https://mixed.example/' }), OutboundUnresolved);
  const socket = connect({ host: 'mixed.example', port: 443, lookup: out.lookup });
  const [error] = (await once(socket, 'error')) as [Error];
  assert.ok(error instanceof OutboundUnresolved);
  assert.match((error.cause as Error).message, /resolves to a private address/, 'our own log may know');
});

test('guard: a name inside our network and a name that does not exist fail alike', async (t) => {
  const known: Record<string, Address[]> = {
    'db.internal': [{ address: '10.0.0.7', family: 4 }],
    'empty.example': [],
  };
  const out = outbound(t, {
    resolve: (host) =>
      known[host] ? Promise.resolve(known[host]) : Promise.reject(new Error(`getaddrinfo ENOTFOUND ${host}`)),
  });
  const failure = async (host: string) => {
    const error: unknown = await out.request({ url: `https://${host}/` }).catch((e: unknown) => e);
    assert.ok(error instanceof OutboundUnresolved);
    return error.message;
  };
  const [inside, ...others] = await Promise.all(
    ['db.internal', 'no-such.example', 'empty.example'].map(failure),
  );
  for (const other of others) assert.equal(other, inside);
  assert.doesNotMatch(inside!, /internal|private|loopback/);
});

test('guard: a name that turns private between check and connect is never connected to', async (t) => {
  let connections = 0;
  const server = createTcpServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const answers = [[PUBLIC], [LOOPBACK]];
  const out = outbound(t, { resolve: () => Promise.resolve(answers.shift() ?? [LOOPBACK]) });

  assert.deepEqual(await out.resolve('rebind.example'), [PUBLIC]);
  await assert.rejects(out.request({ url: `https://rebind.example:${port}/` }), OutboundUnresolved);
  await assert.rejects(out.request({ url: `https://rebind.example:${port}/` }), OutboundUnresolved);
  assert.equal(connections, 0);
});

test('guard: the checked address is the one connected to, with one lookup a connection', async (t) => {
  const seen: (string | undefined)[] = [];
  const first = await listen(t, (req, res) => {
    seen.push(req.socket.localAddress);
    res.end('first');
  });
  await listen(t, (_req, res) => res.end('second'), '127.0.0.2', first.port);
  let lookups = 0;
  const out = outbound(t, {
    allowPrivate: true,
    resolve: () => Promise.resolve([{ address: `127.0.0.${++lookups}`, family: 4 }]),
  });
  const answer = await out.request({ url: `http://rebind.example:${first.port}/` });
  assert.equal(answer.body.toString(), 'first');
  assert.equal(lookups, 1);
  assert.deepEqual(seen, ['127.0.0.1']);
});

test('lookups of one name under way are shared', async (t) => {
  const gate = Promise.withResolvers<Address[]>();
  let lookups = 0;
  const out = outbound(t, {
    resolve: () => {
      lookups += 1;
      return gate.promise;
    },
  });
  const all = Promise.all(Array.from({ length: 20 }, () => out.resolve('slow.example')));
  gate.resolve([PUBLIC]);
  assert.equal((await all).length, 20);
  assert.equal(lookups, 1);
  await out.resolve('slow.example');
  assert.equal(lookups, 2, 'nothing is cached');
});

test('throughput: keep-alive connections are reused, and bounded per host', async (t) => {
  const sockets = new Set<Socket>();
  const { server, port } = await listen(t, (req, res) => {
    req.resume().on('end', () => res.end('ok'));
  });
  server.on('connection', (socket: Socket) => sockets.add(socket));
  const out = outbound(t, { allowPrivate: true, maxSocketsPerHost: 4 });
  for (let round = 0; round < 5; round += 1) {
    await Promise.all(
      Array.from({ length: 20 }, () =>
        out.request({ url: `http://127.0.0.1:${port}/`, method: 'POST', body: 'x' }),
      ),
    );
  }
  assert.ok(sockets.size <= 4, `${sockets.size} connections for 100 requests`);
});

test('a connection the receiver closed while idle is replaced without an error', async (t) => {
  let requests = 0;
  const server = createTcpServer((socket) => {
    let served = false;
    socket.on('error', () => undefined);
    socket.on('data', () => {
      requests += 1;
      if (served) return socket.resetAndDestroy();
      served = true;
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const url = `http://stale.example:${(server.address() as AddressInfo).port}/`;
  let lookups = 0;
  const out = outbound(t, {
    allowPrivate: true,
    resolve: () => {
      lookups += 1;
      return Promise.resolve([LOOPBACK]);
    },
  });
  assert.equal((await out.request({ url })).status, 200);
  assert.equal((await out.request({ url, method: 'POST', body: '{}' })).status, 200);
  assert.equal(requests, 3);
  assert.equal(lookups, 2, 'the new connection was checked too');
});

test('webhooks#success: redirects are not followed', async (t) => {
  let hits = 0;
  const { port } = await listen(t, (req, res) => {
    hits += 1;
    res.writeHead(302, { location: `http://${req.headers.host}/other` }).end();
  });
  const out = outbound(t, { allowPrivate: true });
  const answer = await out.request({ url: `http://127.0.0.1:${port}/` });
  assert.equal(answer.status, 302);
  assert.equal(hits, 1);
});

test('webhooks#bounded-answer: an endless body is cut at the bound and its connection destroyed', async (t) => {
  const closed = Promise.withResolvers<void>();
  const { port } = await listen(t, (_req, res) => {
    res.on('close', () => closed.resolve());
    const pour = () => {
      while (!res.destroyed && res.write(Buffer.alloc(16_384, 'x')));
      res.once('drain', pour);
    };
    pour();
  });
  const out = outbound(t, { allowPrivate: true });
  const answer = await out.request({ url: `http://127.0.0.1:${port}/`, maxBytes: 1000 });
  assert.equal(answer.status, 200);
  assert.equal(answer.body.length, 1000);
  assert.equal(answer.truncated, true);
  assert.equal((await out.request({ url: `http://127.0.0.1:${port}/` })).body.length, 64 * 1024);
  await closed.promise;
});

test('a body of exactly the bound is whole', async (t) => {
  const { port } = await listen(t, (_req, res) => res.end('x'.repeat(1000)));
  const answer = await outbound(t, { allowPrivate: true }).request({
    url: `http://127.0.0.1:${port}/`,
    maxBytes: 1000,
  });
  assert.deepEqual([answer.body.length, answer.truncated], [1000, false]);
});

test('webhooks#bounded-answer: a dripping body ends at the total time, with the status it had given', async (t) => {
  const closed = Promise.withResolvers<void>();
  const { port } = await listen(t, (_req, res) => {
    const drip = setInterval(() => res.write('.'), 20);
    res.on('close', () => {
      clearInterval(drip);
      closed.resolve();
    });
    res.writeHead(200);
    res.write('.');
  });
  const out = outbound(t, { allowPrivate: true });
  const error: unknown = await out
    .request({ url: `http://127.0.0.1:${port}/`, timeoutMs: 3_000 })
    .catch((e: unknown) => e);
  assert.ok(error instanceof OutboundTimeout);
  assert.equal(error.status, 200);
  await closed.promise;
});

test('a receiver that never answers, and a caller that gives up, both end the connection', async (t) => {
  const closes: Promise<unknown>[] = [];
  const arrived = Promise.withResolvers<void>();
  const { port } = await listen(t, (req, res) => {
    closes.push(once(res, 'close'));
    if (req.url === '/abort') arrived.resolve();
  });
  const out = outbound(t, { allowPrivate: true });
  await assert.rejects(out.request({ url: `http://127.0.0.1:${port}/`, timeoutMs: 100 }), OutboundTimeout);
  const controller = new AbortController();
  const aborted = out.request({ url: `http://127.0.0.1:${port}/abort`, signal: controller.signal });
  await arrived.promise;
  controller.abort(new Error('shutting down'));
  await assert.rejects(aborted, /shutting down/);
  await Promise.all(closes);
  await assert.rejects(
    out.request({ url: `http://127.0.0.1:${port}/`, signal: controller.signal }),
    /shutting down/,
  );
});

test('the number of requests under way is bounded', async (t) => {
  const waiting: (() => void)[] = [];
  const both = Promise.withResolvers<void>();
  const { port } = await listen(t, (_req, res) => {
    waiting.push(() => res.end());
    if (waiting.length === 2) both.resolve();
  });
  const url = `http://127.0.0.1:${port}/`;
  const out = outbound(t, { allowPrivate: true, maxInFlight: 2 });
  const running = [out.request({ url }), out.request({ url })];
  await both.promise;
  await assert.rejects(out.request({ url }), /under way already/);
  for (const answer of waiting) answer();
  await Promise.all(running);
});

test('https: the certificate must be trusted and name the host that was asked for, not its address', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'outbound-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
    ].concat([
      '-keyout',
      key,
      '-out',
      cert,
      '-subj',
      '/CN=hooks.example',
      '-addext',
      'subjectAltName=DNS:hooks.example',
    ]),
    { stdio: 'ignore' },
  );
  const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_req, res) =>
    res.end('secure'),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const out = outbound(t, { allowPrivate: true, resolve: () => Promise.resolve([LOOPBACK]) });
  await assert.rejects(out.request({ url: `https://hooks.example:${port}/` }), {
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  });
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, readFileSync(cert, 'utf8')]);
  t.after(() => setDefaultCACertificates(before));
  assert.equal((await out.request({ url: `https://hooks.example:${port}/` })).body.toString(), 'secure');
  await assert.rejects(out.request({ url: `https://other.example:${port}/` }), {
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  });
});
