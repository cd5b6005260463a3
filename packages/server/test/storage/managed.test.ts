import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createManaged } from '../../src/platform/storage/managed.ts';
import type { ManagedConfig, ManagedStorage } from '../../src/platform/storage/managed.ts';
import { contentDisposition, StorageUnavailable } from '../../src/platform/storage/port.ts';
import { freePort } from './process.ts';
import { png, storageSuite, upload } from './suite.ts';

interface Server {
  storage: ManagedStorage;
  config: ManagedConfig;
  incoming: string;
  stop(): Promise<void>;
}

async function startManaged(options: Partial<ManagedConfig> = {}): Promise<Server> {
  const directory = await mkdtemp(join(tmpdir(), 'managed-'));
  const port = await freePort();
  let serial = 0;
  const config: ManagedConfig = {
    directory,
    baseUrl: `http://127.0.0.1:${port}/media`,
    secrets: [Buffer.alloc(32, 1)],
    now: () => new Date(),
    uniqueName: () => `upload-${(serial += 1)}`,
    ...options,
  };
  const storage = createManaged(config);
  await storage.open();
  const server = createServer((req, res) => {
    if (!storage.handle(req, res)) res.writeHead(418).end();
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return {
    storage,
    config,
    incoming: join(directory, 'incoming'),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

let running: Server;
const minute = () => new Date(Date.now() + 60_000);
const ask = (key: string, size: number) =>
  ({
    key,
    contentType: 'image/png',
    size,
    filename: 'a.png',
    resource: 'image',
    expiresAt: minute(),
  }) as const;
const put = async (key: string, body = png) => {
  const answer = await upload(await running.storage.ticket(ask(key, body.length)), body);
  assert.equal(answer.status, 201);
  return running.storage.downloadUrl({
    key,
    resource: 'image',
    filename: 'a.png',
    contentType: 'image/png',
    disposition: 'inline',
    expiresIn: 60,
  });
};

storageSuite(
  'managed (local disk)',
  async () => {
    running = await startManaged();
    const { config, storage, stop } = running;
    const file = join(config.directory, 'file');
    await writeFile(file, '');
    return {
      storage,
      at: (time) => createManaged({ ...config, now: () => time }),
      unreachable: createManaged({ ...config, directory: file }),
      refuses: { type: true, size: true, overwrite: true, content: false },
      namesDownloads: true,
      stop,
    };
  },
  () => {
    test('paths that are not its own are left to others', async () => {
      const { origin } = new URL(running.config.baseUrl);
      assert.equal((await fetch(`${origin}/v1/health`)).status, 418);
      assert.equal((await fetch(`${origin}/mediator/x`)).status, 418);
    });

    test('stored bytes are never sniffed, run or framed with rights', async () => {
      const { headers } = await fetch(await put('safe/1'));
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.equal(headers.get('content-security-policy'), "sandbox; default-src 'none'");
      const age = /^private, max-age=(\d+), immutable$/.exec(headers.get('cache-control') ?? '');
      assert.ok(age && Number(age[1]) > 0 && Number(age[1]) <= 60, 'until the URL ends');
    });

    test('HEAD, validators and ranges follow RFC 9110', async () => {
      const url = await put('range/1', Buffer.from('0123456789'));
      const head = await fetch(url, { method: 'HEAD' });
      assert.equal(head.headers.get('content-length'), '10');
      assert.equal(head.headers.get('accept-ranges'), 'bytes');
      assert.equal(await head.text(), '');
      const etag = head.headers.get('etag') ?? '';
      const modified = head.headers.get('last-modified') ?? '';
      assert.ok(etag && modified);
      assert.equal((await fetch(url, { headers: { 'if-none-match': etag } })).status, 304);
      const cases: [headers: Record<string, string>, status: number, body?: string, range?: string][] = [
        [{ range: 'bytes=2-4' }, 206, '234', 'bytes 2-4/10'],
        [{ range: 'bytes=7-' }, 206, '789', 'bytes 7-9/10'],
        [{ range: 'bytes=-3' }, 206, '789', 'bytes 7-9/10'],
        [{ range: 'bytes=-30' }, 206, '0123456789', 'bytes 0-9/10'],
        [{ range: 'bytes=8-99' }, 206, '89', 'bytes 8-9/10'],
        [{ range: 'bytes=10-' }, 416, undefined, 'bytes */10'],
        [{ range: 'bytes=-0' }, 416, undefined, 'bytes */10'],
        [{ range: 'bytes=4-2' }, 200, '0123456789'],
        [{ range: 'bytes=0-1,3-4' }, 200, '0123456789'],
        [{ range: 'lines=0-1' }, 200, '0123456789'],
        [{ range: 'bytes=2-4', 'if-range': etag }, 206, '234'],
        [{ range: 'bytes=2-4', 'if-range': modified }, 206, '234'],
        [{ range: 'bytes=2-4', 'if-range': '"other"' }, 200, '0123456789'],
      ];
      for (const [headers, status, body, range] of cases) {
        const answer = await fetch(url, { headers });
        const name = JSON.stringify(headers);
        assert.equal(answer.status, status, name);
        if (range) assert.equal(answer.headers.get('content-range'), range, name);
        const text = await answer.text();
        if (body !== undefined) assert.equal(text, body, name);
      }
    });

    test('a page of another origin may upload and read', async () => {
      const { url } = await running.storage.ticket(ask('cors/1', png.length));
      const preflight = await fetch(url, {
        method: 'OPTIONS',
        headers: { origin: 'https://app.example', 'access-control-request-method': 'PUT' },
      });
      assert.equal(preflight.status, 204);
      assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
      assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /PUT/);
      assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /content-type/);
    });

    test('an upload without its length, with another method, or with a changed query is refused', async () => {
      const ticket = await running.storage.ticket(ask('odd/1', png.length));
      const stream = new Blob([new Uint8Array(png)]).stream();
      const chunked = await fetch(ticket.url, {
        method: 'PUT',
        headers: ticket.headers,
        body: stream,
        duplex: 'half',
      });
      assert.equal(chunked.status, 411);
      assert.equal((await fetch(ticket.url)).status, 405);
      assert.equal((await fetch(ticket.url, { method: 'DELETE' })).status, 405);
      for (const changed of [
        ticket.url.replace(`size=${png.length}`, 'size=9999'),
        ticket.url.replace('image%2Fpng', 'text%2Fhtml'),
        ticket.url.replace(/expires=(\d)/, 'expires=9$1'),
        ticket.url.replace('op=put', 'op=get'),
        `${ticket.url}&x=1`,
        ticket.url.replace(/.$/, (c) => (c === 'A' ? 'B' : 'A')),
        ticket.url.replace(/&sig=.*/, ''),
        ticket.url.replace('/odd/1', '/odd/../odd/2'),
        ticket.url.replace('/odd/1', '/odd%2F1'),
      ]) {
        assert.equal((await upload({ ...ticket, url: changed }, png)).status, 403, changed);
      }
      assert.equal(await running.storage.inspect('odd/1', 'image'), null);
    });

    test('of two uploads of one object at the same time the first stays, whole', async () => {
      const size = 2_000_000;
      const bodies = ['a', 'b', 'c', 'd'].map((c) => Buffer.alloc(size, c));
      const ticket = await running.storage.ticket(ask('race/1', size));
      const statuses = await Promise.all(bodies.map(async (body) => (await upload(ticket, body)).status));
      assert.deepEqual(statuses.toSorted(), [201, 409, 409, 409]);
      const winner = bodies[statuses.indexOf(201)];
      const found = await running.storage.inspect('race/1', 'image');
      assert.equal(found?.size, size);
      assert.equal(found.head[0], winner?.[0]);
      await until(async () => (await readdir(running.incoming)).length === 0);
    });

    test('an upload that breaks off leaves nothing, and the ticket still works', async () => {
      const ticket = await running.storage.ticket(ask('broken/1', 100_000));
      const { pathname, search, port } = new URL(ticket.url);
      const socket = connect(Number(port), '127.0.0.1');
      const head = `PUT ${pathname}${search} HTTP/1.1\r\nhost: x\r\ncontent-type: image/png\r\ncontent-length: 100000\r\n\r\n`;
      socket.write(head + 'x'.repeat(50_000));
      await until(async () => (await readdir(running.incoming)).length > 0);
      socket.destroy();
      await until(async () => (await readdir(running.incoming)).length === 0);
      assert.equal(await running.storage.inspect('broken/1', 'image'), null);
      assert.equal((await upload(ticket, Buffer.alloc(100_000))).status, 201);
    });

    test('opening drops what a crash left half uploaded, and nothing younger', async () => {
      await writeFile(join(running.incoming, 'old'), 'x');
      await utimes(join(running.incoming, 'old'), 1, 1);
      await writeFile(join(running.incoming, 'new'), 'x');
      await running.storage.open();
      assert.deepEqual(await readdir(running.incoming), ['new']);
      await rm(join(running.incoming, 'new'));
    });
  },
);

/** Directory changes have no event to wait for; the test's own time limit ends a wait in vain. */
async function until(met: () => Promise<boolean>): Promise<void> {
  while (!(await met())) await new Promise((resolve) => setTimeout(resolve, 5));
}

test('another secret signs nothing here', async (t) => {
  const server = await startManaged();
  t.after(() => server.stop());
  const stranger = createManaged({ ...server.config, secrets: [Buffer.alloc(32, 2)] });
  assert.equal((await upload(await stranger.ticket(ask('a', png.length)), png)).status, 403);
});

test('a directory that cannot be made is storage_unavailable', async (t) => {
  const server = await startManaged();
  t.after(() => server.stop());
  const file = join(server.config.directory, 'file');
  await writeFile(file, '');
  await assert.rejects(createManaged({ ...server.config, directory: file }).open(), StorageUnavailable);
});

test('RFC 6266: names are quoted, encoded, and cannot break out of the header', () => {
  assert.equal(
    contentDisposition('inline', 'cat.png'),
    `inline; filename="cat.png"; filename*=UTF-8''cat.png`,
  );
  assert.equal(
    contentDisposition('attachment', 'naïve "x"; y=1\r\nz/../.txt'),
    `attachment; filename="na_ve _x__ y=1__z_.._.txt"; filename*=UTF-8''na%C3%AFve%20%22x%22%3B%20y%3D1__z_.._.txt`,
  );
  assert.doesNotThrow(() => contentDisposition('inline', '\ud800'));
});
