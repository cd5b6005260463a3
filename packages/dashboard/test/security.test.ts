import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { signedInOwner } from '../../server/test/accounts/dashboard.ts';
import { use, useService } from '../../server/test/support/use.ts';
import { openPage, signIn } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';

/** What other sites can do to somebody who is signed in: in a real browser. What people write can do: xss.test.ts. */

const { service } = useService();
const browser = useBrowser();

/** A page of another site. It comes from another port of the same host, so that even SameSite cookies are sent along. */
const startOther = async (): Promise<Server> => {
  const server = createServer((_request, response) =>
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end('<!doctype html><title>other</title><p>other'),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
};

describe('other sites', () => {
  const other = use(startOther, (server) => server.close());
  const otherUrl = (): string => `http://127.0.0.1:${(other.address() as AddressInfo).port}/`;
  const keys = async (): Promise<number> => {
    const dashboard = await signedInOwner(service.url);
    return (await dashboard.in('env_dev')('GET', '/v1/keys')).body.data.length;
  };
  /** A browser that is signed in, on a page of the other site. */
  const elsewhere = async (): Promise<Page> => {
    const { page } = await openPage(browser, service.url);
    await signIn(page, service.url);
    await page.goto(otherUrl());
    return page;
  };

  it('ASVS 3.5.1, 3.5.2: a form of another site changes nothing, whatever its encoding', async () => {
    const page = await elsewhere();
    const before = await keys();
    for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      await page.goto(otherUrl());
      const [answer] = await Promise.all([
        page.waitForResponse((response) => response.url().startsWith(service.url)),
        page.evaluate(
          ([url, type]) => {
            const form = document.createElement('form');
            Object.assign(form, { method: 'POST', action: `${url}/v1/keys?env=env_dev`, enctype: type });
            const field = document.createElement('input');
            Object.assign(field, { name: '{"name":"', value: '"}' });
            form.append(field);
            document.body.append(form);
            form.submit();
          },
          [service.url, enctype] as const,
        ),
      ]);
      assert.equal(answer.status(), 403, enctype);
      assert.ok((await answer.request().allHeaders())['cookie'], 'the browser sent the cookie along');
      await page.waitForURL(`${service.url}/**`);
    }
    assert.equal(await keys(), before);
  });

  it('ASVS 3.4.2, 3.5.3: its fetch changes nothing and reads nothing', async () => {
    const page = await elsewhere();
    const before = await keys();
    const tries = await page.evaluate(async (url) => {
      const json = { 'Content-Type': 'application/json', 'Chat-Env': 'env_dev' };
      const requests: [string, RequestInit][] = [
        ['/v1/session', {}],
        ['/v1/keys?env=env_dev', {}],
        ['/v1/users?env=env_dev', {}],
        ['/dashboard', {}],
        ['/v1/keys', { method: 'POST', headers: json, body: '{}' }],
        ['/v1/keys?env=env_dev', { method: 'POST', body: '{}', headers: { 'Content-Type': 'text/plain' } }],
        ['/v1/session', { method: 'DELETE' }],
      ];
      return Promise.all(
        requests.map(([path, init]) =>
          fetch(url + path, { ...init, credentials: 'include' }).then(
            async (response) => `${path} ${response.status} ${await response.text()}`,
            () => 'refused',
          ),
        ),
      );
    }, service.url);
    assert.deepEqual(new Set(tries), new Set(['refused']));
    // Without waiting for an answer that it may not read.
    await page.evaluate(
      (url) =>
        fetch(`${url}/v1/keys?env=env_dev`, {
          method: 'POST',
          mode: 'no-cors',
          credentials: 'include',
          body: '{}',
        }),
      service.url,
    );
    assert.equal(await keys(), before);
    await page.goto(`${service.url}/dashboard`);
    await page.getByRole('navigation', { name: 'Areas' }).waitFor();
  });

  it('ASVS 3.4.6: it cannot put the dashboard into a frame, nor keep a handle of its window', async () => {
    const page = await elsewhere();
    const shown = await page.evaluate(
      (url) =>
        new Promise<string>((resolve) => {
          const frame = document.createElement('iframe');
          frame.src = `${url}/dashboard`;
          // A page that is refused becomes an opaque error page: nothing of it can be read, and it is not ours.
          frame.onload = () => resolve(frame.contentDocument === null ? 'opaque' : 'readable');
          document.body.append(frame);
        }),
      service.url,
    );
    assert.equal(shown, 'opaque');
    const frame = page.frames().find((candidate) => candidate !== page.mainFrame())!;
    assert.equal(await frame.locator('#app').count(), 0);
  });
});

describe('the policy', () => {
  it('scripts and styles are named by their content, kept for ever, and compressed beforehand', async () => {
    const text = await (await fetch(`${service.url}/dashboard`)).text();
    const assets = [...text.matchAll(/(?:src|href)="(\/dashboard\/assets\/[^"]+)"/g)].map(
      (found) => found[1]!,
    );
    assert.ok(assets.length >= 3);
    for (const asset of assets) {
      assert.match(asset, /-[A-Z0-9]{8}\.(js|css|woff2)$/);
      const bodies = [];
      // A font is compressed by itself.
      for (const encoding of asset.endsWith('.woff2') ? ['identity'] : ['br', 'gzip', 'identity']) {
        const answer = await fetch(service.url + asset, { headers: { 'accept-encoding': encoding } });
        assert.equal(answer.headers.get('content-encoding') ?? 'identity', encoding);
        assert.match(answer.headers.get('cache-control')!, /max-age=31536000, immutable/);
        bodies.push(await answer.text());
      }
      assert.ok(bodies[0]!.length > 0 && new Set(bodies).size === 1);
    }
    assert.equal((await fetch(`${service.url}/dashboard/assets/nothing.js`)).status, 404);
  });

  it('has a policy that refuses scripts, styles and connections that are not ours, and a new nonce for every page', async () => {
    const nonces = new Set<string>();
    for (let i = 0; i < 2; i++) {
      const answer = await fetch(`${service.url}/dashboard/env_dev/users`);
      const policy = answer.headers.get('content-security-policy')!;
      const [, nonce] = /script-src 'nonce-([^']+)' 'strict-dynamic';/.exec(policy)!;
      nonces.add(nonce!);
      assert.ok((await answer.text()).includes(`nonce="${nonce}"`));
      for (const part of [
        "default-src 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "connect-src 'self'",
      ])
        assert.ok(policy.includes(part), part);
      assert.ok(!/unsafe|\*|http/.test(policy));
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
      assert.equal(answer.headers.get('referrer-policy'), 'same-origin');
      assert.equal(answer.headers.get('access-control-allow-origin'), null);
    }
    assert.equal(nonces.size, 2);

    const { page, problems } = await openPage(browser, service.url);
    await page.goto(`${service.url}/dashboard`);
    await page.evaluate(() => {
      const script = document.createElement('div');
      script.innerHTML = '<img src="https://elsewhere.example/x"><style>body{color:red}</style>';
      document.body.append(script);
      const inline = document.createElement('a');
      inline.setAttribute('onclick', 'globalThis.broken = true');
      document.body.append(inline);
      inline.click();
    });
    await fetchFrom(page, 'https://elsewhere.example/');
    assert.equal(await page.evaluate(() => (globalThis as { broken?: boolean }).broken), undefined);
    // The browser reports each a moment later.
    for (const directive of ['img-src', 'style-src-elem', 'script-src-attr', 'connect-src'])
      while (!problems.some((problem) => problem.startsWith('policy:') && problem.includes(directive)))
        await page.waitForTimeout(20);
  });
});

const fetchFrom = (page: Page, url: string) => page.evaluate((to) => fetch(to).catch(() => undefined), url);
