import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { describe, it, test } from 'node:test';
import type { TestContext } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { plans, rateLimits } from '@parley/protocol';
import { createIds, pooledRandom } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import { memoryRateLimiter } from '../../src/platform/rate-limit/memory.ts';
import type { RestOptions } from '../../src/transport/rest/options.ts';
import { createRest } from '../../src/transport/rest/server.ts';
import { slowClientLimits } from '../../src/transport/rest/slow-clients.ts';
import { createTurns } from '../../src/transport/turns.ts';

/** The binding with one page, at a time that stands still. */
function start(t: TestContext) {
  const clock = { at: 1_700_000_000_000, now: () => clock.at, monotonic: () => clock.at };
  const page = { text: 'words '.repeat(20_000), asked: 0 };
  const app = createRest({
    operations: [],
    handlers: {},
    services: { clock, ids: createIds(clock, pooledRandom()), plans },
    limiter: memoryRateLimiter(clock),
    turns: createTurns(10),
    logger: createLogger('silent'),
    metrics: createMetrics(),
    recorder: { add: () => undefined },
    trustProxy: false,
    readiness: () => Promise.resolve({ status: 'ready' }),
    started: () => true,
    details: () => ({}),
    pages: [
      {
        path: '/page',
        contentType: 'text/plain; charset=utf-8',
        headers: { 'cache-control': 'public, max-age=300' },
        body: () => {
          page.asked += 1;
          return Promise.resolve(page.text);
        },
      },
    ],
  } as unknown as RestOptions);
  t.after(() => app.close());
  const get = (url: string, headers: Record<string, string> = {}, remoteAddress = '192.0.2.1') =>
    app.inject({ method: 'GET', url, headers, remoteAddress });
  return { app, clock, page, get };
}

describe('public pages', () => {
  it('are compressed once, in the form that the browser takes, each with a tag of its own', async (t) => {
    const { page, get } = start(t);
    const tags = new Set<string>();
    for (const [accept, encoding, open] of [
      ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
      ['gzip, br;q=0', 'gzip', gunzipSync],
      ['identity', undefined, (b: Buffer) => b],
      ['', undefined, (b: Buffer) => b],
    ] as const)
      for (let i = 0; i < 3; i++) {
        const answer = await get('/page', { 'accept-encoding': accept });
        assert.equal(answer.statusCode, 200);
        assert.equal(answer.headers['content-encoding'], encoding);
        assert.equal(open(answer.rawPayload).toString(), page.text);
        assert.equal(answer.headers['vary'], 'Accept-Encoding');
        assert.equal(answer.headers['cache-control'], 'public, max-age=300');
        assert.equal(answer.headers['content-length'], String(answer.rawPayload.length));
        tags.add(String(answer.headers['etag']));
      }
    assert.equal(page.asked, 1);
    assert.equal(tags.size, 3);
  });

  it('are 304 for whoever has them, until they change', async (t) => {
    const { page, get, clock } = start(t);
    const etag = String((await get('/page')).headers['etag']);
    for (const seen of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await get('/page', { 'if-none-match': seen });
      assert.deepEqual([again.statusCode, again.body, again.headers['etag']], [304, '', etag]);
    }
    page.text = 'other words';
    clock.at += 10_000;
    const changed = await get('/page', { 'if-none-match': etag });
    assert.deepEqual([changed.statusCode, changed.body], [200, 'other words']);
  });
});

describe('who has no credential', () => {
  it('is refused pages and unknown paths past 100 a second, burst 200, by address; health never', async (t) => {
    const { get, clock } = start(t);
    const statuses = new Map<number, number>();
    for (let i = 0; i < rateLimits.anonymous.burst; i++) {
      const { statusCode } = await get(i % 2 ? '/page' : `/nowhere/${i}`);
      statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
    }
    assert.deepEqual(
      [...statuses].toSorted(([a], [b]) => a - b),
      [
        [200, 100],
        [404, 100],
      ],
    );
    for (const path of ['/page', '/nowhere']) {
      const refused = await get(path);
      assert.equal(refused.statusCode, 429);
      const { error } = refused.json<{ error: { code: string; retryAfterMs: number; requestId: string } }>();
      assert.deepEqual([error.code, error.retryAfterMs], ['rate_limited', 10]);
      assert.equal(refused.headers['request-id'], error.requestId);
      assert.equal(refused.headers['retry-after'], '1');
      assert.equal(refused.headers['ratelimit-remaining'], '0');
    }
    for (const path of ['/healthz', '/readyz']) assert.equal((await get(path)).statusCode, 200);
    assert.equal((await get('/page', {}, '192.0.2.2')).statusCode, 200, 'another address');
    clock.at += 10;
    assert.equal((await get('/page')).statusCode, 200);
  });
});

test('a connection that was used for requests and then upgraded is no idle one', async (t) => {
  const { app, clock } = start(t);
  const upgrade = once(app.server, 'upgrade');
  await app.listen({ host: '127.0.0.1', port: 0 });
  const dial = async () => {
    const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
    socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(socket, 'data');
    return socket;
  };
  const [idle, upgraded] = [await dial(), await dial()];
  upgraded.write('GET /v1 HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
  const [, theirs] = (await upgrade) as [IncomingMessage, Duplex];
  clock.at += slowClientLimits.idleMs;
  assert.equal(((await once(idle, 'error'))[0] as NodeJS.ErrnoException).code, 'ECONNRESET');
  const isOpen = !theirs.destroyed;
  // The server closes only when its connections have ended.
  for (const socket of [theirs, upgraded]) socket.destroy();
  assert.equal(isOpen, true);
});
