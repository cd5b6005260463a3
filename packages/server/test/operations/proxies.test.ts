import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { rateLimits } from '@parley/protocol';
import { until } from '../cluster/nodes.ts';
import { createApi } from '../support/api.ts';
import { environments, owner } from '../support/service.ts';
import { devToken } from '../support/tokens.ts';
import { setUp, use, useService } from '../support/use.ts';
import { Browser, publicName } from './browser.ts';
import { proxies, startProxy } from './proxies.ts';

/**
 * docs/operations/deployment.md: the real service behind each proxy, with the file that we ship. Clients have addresses of their own (127.0.0.x),
 * so that the service shows whom it takes them for.
 */

const origin = `https://${publicName}`;
const configured = useService({
  env: { CHAT_TRUST_PROXY: 'true', CHAT_ORIGIN: origin, CHAT_MEDIA_ORIGIN: origin },
});
/** Somebody put a proxy before a service that counts as a developer's machine. */
const careless = useService({ own: true });
setUp(async () => {
  await careless.sql('UPDATE environments SET local = true WHERE id = $1', [environments.dev.id]);
  // The service looks once a second for what others changed.
  const through = { via: '1.1 proxy', 'chat-env': environments.dev.id };
  const stranger = createApi(careless.service.url, devToken({ sub: 'stranger' }), through);
  await until(async () => (await stranger('GET', '/v1/conversations')).status === 403);
});

const upstreamOf = ({ service }: typeof configured): string => `127.0.0.1:${service.port}`;
let addresses = 1;
const newAddress = (): string => `127.0.0.${++addresses}`;
/** Asks the proxy to drop the headers that it adds itself. */
const hopByHop = { connection: 'x-forwarded-for, x-forwarded-proto' };
const ofKey = { authorization: `Bearer ${environments.dev.secretKey}` };
/** Larger than what proxies take of a body unless they are told. */
const large = Buffer.concat([
  Buffer.from('%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer << /Root 1 0 R >>\n'),
  Buffer.alloc(3 * 2 ** 20, 32),
  Buffer.from('\n%%EOF\n'),
]);

for (const name of Object.keys(proxies) as (keyof typeof proxies)[])
  describe(`${name}, deploy/${proxies[name].file}`, () => {
    const proxy = use(
      () => startProxy(name, upstreamOf(configured)),
      (running) => running.stop(),
    );
    const trap = use(
      () => startProxy(name, upstreamOf(careless)),
      (running) => running.stop(),
    );
    const from = async <T>(to: typeof proxy, run: (browser: Browser) => Promise<T>): Promise<T> => {
      const browser = new Browser(to, newAddress());
      try {
        return await run(browser);
      } finally {
        browser.close();
      }
    };

    it('http leads to https; REST and the reference are there', () =>
      from(proxy, async (browser) => {
        const redirect = await browser.plain('/docs?a=b');
        assert.equal(redirect.status, 308);
        assert.match(redirect.headers.location ?? '', /^https:\/\/chat\.example\.com(:\d+)?\/docs\?a=b$/);
        const made = await browser.json('PUT', '/v1/users/ann', { name: 'Ann' }, ofKey);
        assert.equal(made.status, 200, made.text);
        assert.match(String(made.headers['request-id']), /^req_/);
        assert.equal(made.headers['strict-transport-security'], 'max-age=31536000');
        assert.equal((await browser.send('GET', '/docs')).status, 200);
      }));

    it('socket#open: the socket carries frames both ways', () =>
      from(proxy, async (browser) => {
        const { scene } = configured;
        const [ann, bob] = await Promise.all([scene.actor('ann'), scene.actor('bob')]);
        const { id: cid } = await scene.direct(ann, bob);
        const socket = await browser.open().auth(scene.token(ann));
        const sent = await socket.request('message.send', { cid, clientMsgId: randomUUID(), text: 'hello' });
        assert.ok(sent.id);
        await scene.send(bob, cid, { text: 'back' });
        const told = await socket.next((f) => f.t === 'event' && f.d.message?.text === 'back');
        assert.equal(told.cid, cid);
        await socket.close();
      }));

    it('uploads#direct: a file of 3 MB goes up and comes back as it was', () =>
      from(proxy, async (browser) => {
        const { scene } = configured;
        const ann = await scene.actor('ann');
        const { id: conversationId } = await scene.group(ann, [ann]);
        const authorization = `Bearer ${scene.token(ann)}`;
        const announced = await browser.json(
          'POST',
          '/v1/uploads',
          { conversationId, filename: 'large.pdf', size: large.length, contentType: 'application/pdf' },
          { authorization },
        );
        assert.equal(announced.status, 201, announced.text);
        const { attachmentId, upload } = announced.body;
        const pathOf = (url: string): string => {
          assert.ok(url.startsWith(`${origin}/media/`), url);
          return url.slice(origin.length);
        };
        const stored = await browser.send(upload.method, pathOf(upload.url), {
          headers: upload.headers,
          body: large,
        });
        assert.equal(stored.status, 201, stored.text);
        const done = await browser.send('POST', `/v1/uploads/${attachmentId}/complete`, {
          headers: { authorization },
        });
        assert.equal(done.status, 200, done.text);
        const { body } = await browser.send('GET', `/v1/attachments/${attachmentId}/url`, {
          headers: { authorization },
        });
        const back = await browser.send('GET', pathOf(body.url));
        assert.equal(back.status, 200);
        assert.ok(Buffer.from(back.text).equals(large));
      }));

    it('dashboard#session: people sign in over https; dashboard#audit: the audit log has their address, whatever they claim', () =>
      from(proxy, async (browser) => {
        assert.match((await browser.send('GET', '/dashboard')).text, /<html/);
        const same = { origin: browser.origin, 'sec-fetch-site': 'same-origin' };
        const signedIn = await browser.json(
          'POST',
          '/v1/session',
          { email: owner.email, password: owner.password },
          same,
        );
        assert.equal(signedIn.status, 200, signedIn.text);
        const [cookie] = signedIn.headers['set-cookie']!;
        assert.match(cookie!, /; Secure/, 'the service knows that the browser came over https');
        const changed = await browser.json(
          'PATCH',
          `/v1/environments/${environments.dev.id}`,
          { name: `behind ${name}` },
          {
            ...same,
            cookie: cookie!.split(';', 1)[0]!,
            'x-forwarded-for': '203.0.113.66',
            forwarded: 'for=203.0.113.66',
          },
        );
        assert.equal(changed.status, 200, changed.text);
        const [row] = await configured.sql('SELECT ip FROM audit ORDER BY no DESC LIMIT 1');
        assert.equal(row!['ip'], `127.0.0.${addresses}`);
      }));

    it('plans#addresses: requests and sockets count for the address of the client', async () => {
      const { burst } = rateLimits.anonymous;
      const left = (headers: Record<string, unknown>): number => Number(headers['ratelimit-remaining']);
      for (const claimed of [{}, { 'x-forwarded-for': '127.0.0.1' }] as Record<string, string>[])
        await from(proxy, async (browser) => {
          const wrong = await browser.send('GET', '/v1/conversations', {
            headers: { authorization: 'Bearer wrong', ...claimed },
          });
          assert.equal(wrong.status, 401);
          assert.equal(left(wrong.headers), burst - 1, 'the first request of this address');
        });
      await from(proxy, async (browser) => {
        const socket = browser.open({ protocols: 'another', headers: { 'x-forwarded-for': '127.0.0.1' } });
        const refused = new Promise<Record<string, unknown>>((resolve) =>
          socket.ws.once('unexpected-response', (_request, response) => resolve(response.headers)),
        );
        await assert.rejects(socket.opened, /refused with 400/);
        assert.equal(left(await refused), burst - 1, 'the first upgrade of this address');
      });
    });

    it('identity#this-machine: before a service without CHAT_ORIGIN and CHAT_TRUST_PROXY, strangers get no development tokens', () =>
      from(trap, async (browser) => {
        const token = devToken({ sub: 'stranger' });
        for (const host of [publicName, 'localhost', '127.0.0.1'])
          for (const claimed of [{}, hopByHop] as Record<string, string>[]) {
            const answer = await browser.send('GET', '/v1/conversations', {
              headers: {
                host,
                authorization: `Bearer ${token}`,
                'chat-env': environments.dev.id,
                ...claimed,
              },
            });
            // Caddy answers other names than its own by itself.
            if (name === 'Caddy' && host !== publicName) assert.equal(answer.text, '');
            else assert.equal(answer.body?.error?.code, 'dev_tokens_disabled', `${host}: ${answer.text}`);
          }
        const socket = browser.open({ env: environments.dev.id });
        await socket.opened;
        socket.send('auth', { token });
        assert.equal((await socket.closed).code, 4003);
      }));
  });
