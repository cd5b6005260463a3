import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { createDashboard, signedInOwner } from '../../server/test/accounts/dashboard.ts';
import { pretendNode } from '../../server/test/calls/tools.ts';
import { serverApi } from '../../server/test/support/api.ts';
import { use, useService } from '../../server/test/support/use.ts';
import { loaded, openPage, signIn, useBrowser } from './browser.ts';

/** What other sites, and what people write, can do to somebody who is signed in: in a real browser. */

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
  const { service } = useService();
  const browser = useBrowser();
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

/** Each would run in some place of a page that is put together from text. */
const attacks = [
  `<img src=x onerror="globalThis.broken='img'">`,
  `"><script>globalThis.broken='script'</script>`,
  `javascript:globalThis.broken='url'//`,
  `'-globalThis.broken='quote'-'\${globalThis.broken='template'}{{constructor.constructor("globalThis.broken='braces'")()}}`,
];

describe('what people write', () => {
  const { service, db } = useService();
  const browser = useBrowser();

  it('shows every stored field as text, on every page', async () => {
    const server = serverApi(service.url);
    const dashboard = await signedInOwner(service.url);
    const inEnv = dashboard.in('env_dev');
    const text = attacks.join(' ');
    const ok = async (answer: Promise<{ status: number; body: any }>) => {
      const { status, body } = await answer;
      assert.ok(status < 300, JSON.stringify(body));
      return body;
    };
    const session = await ok(dashboard.api('GET', '/v1/session'));
    const organization = session.organizations[0].id as string;

    await ok(
      server('PUT', '/v1/users/mallory', {
        name: text.slice(0, 200),
        metadata: { [text.slice(0, 100)]: text },
      }),
    );
    await ok(
      server('PUT', '/v1/users/mallory', { imageUrl: `https://x.example/"onerror="globalThis.broken=1` }),
    );
    const conversation = await ok(
      server('POST', '/v1/conversations', {
        ...{ type: 'group', members: ['mallory', 'bob'], name: text.slice(0, 200), metadata: { text } },
      }),
    );
    const message = await ok(
      server('POST', `/v1/conversations/${conversation.id}/messages`, {
        senderId: 'mallory',
        text,
        metadata: { text },
      }),
    );
    await ok(server('PATCH', `/v1/messages/${message.id}`, { text: `${text} again`, expectedVersion: 1 }));
    const webhook = await ok(
      server('POST', '/v1/webhooks', {
        url: `http://127.0.0.1:9/${encodeURIComponent(attacks[0]!)}?x="><script>`,
        events: ['message.created'],
        description: text.slice(0, 200),
      }),
    );
    await ok(server('POST', `/v1/webhooks/${webhook.id}/test`));
    await ok(inEnv('POST', '/v1/keys', { name: text.slice(0, 200) }));
    await ok(dashboard.api('PATCH', '/v1/account', { name: text.slice(0, 200) }));
    await ok(dashboard.api('PATCH', `/v1/organizations/${organization}`, { name: text.slice(0, 200) }));
    await ok(dashboard.api('PATCH', '/v1/environments/env_dev', { name: text.slice(0, 200) }));
    await ok(
      dashboard.api('POST', `/v1/organizations/${organization}/invitations`, {
        email: `<script>globalThis.broken='mail'</script>@x.example`,
        role: 'viewer',
      }),
    );

    await pretendNode(db);
    const call = await ok(
      server('POST', '/v1/calls', {
        conversationId: conversation.id,
        kind: 'audio',
        callerId: 'mallory',
        metadata: { text },
      }),
    );
    await ok(
      inEnv('PUT', '/v1/storage/database/b', {
        url: `https://x.example/${encodeURIComponent(attacks[0]!)}?a="><script>`,
      }),
    );
    const { token } = await ok(server('POST', '/v1/tokens', { userId: 'mallory' }));
    const socket = new WebSocket(
      `${service.url.replace('http', 'ws')}/v1?sdk=${encodeURIComponent(attacks[0]!)}`,
      'chat.v1',
    );
    socket.onopen = () => socket.send(JSON.stringify({ t: 'auth', d: { token } }));
    await new Promise((resolve) => (socket.onmessage = resolve));
    const agent = createDashboard(service.url, {
      ...{ origin: service.url, 'sec-fetch-site': 'same-origin' },
      'user-agent': attacks[0],
    });
    await agent.signIn('owner@example.com', 'correct horse');

    const { page, problems } = await openPage(browser, service.url);
    await signIn(page, service.url);
    const paths = [
      ...['', '/users', '/users/mallory', `/users/${encodeURIComponent(attacks[0]!)}`],
      ...['', '?view=messages', '?view=events'].map((view) => `/conversations/${conversation.id}${view}`),
      ...['/webhooks', `/webhooks/${webhook.id}`, '/keys', '/audit', '/team', '/settings', '/push'],
      ...['/live', '/logs', '/analytics', '/usage', '/storage', '/calls', `/calls/${call.id}`],
      ...[`/trace?userId=mallory`, `/delivery?messageId=${message.id}&userId=mallory`],
      `/logs?operation=${encodeURIComponent(attacks[0]!)}`,
      `/audit?action=${encodeURIComponent(text.slice(0, 100))}`,
      `/${encodeURIComponent(attacks[0]!)}`,
      '/../account',
    ];
    for (const path of paths) {
      await page.goto(new URL(`${service.url}/dashboard/env_dev${path}`).href);
      await page.getByRole('main').locator('h1, h3, [role=alert]').first().waitFor();
      await loaded(page);
      assert.equal(await page.evaluate(() => (globalThis as { broken?: string }).broken), undefined, path);
      const found = await page.evaluate(() => ({
        scripts: [...document.scripts].filter((script) => !script.src.startsWith(location.origin)).length,
        handlers: document.querySelectorAll('[onerror], [onload], [onclick], img[src="x"]').length,
        links: [...document.querySelectorAll('a')].filter((a) => !/^https?:$/.test(new URL(a.href).protocol))
          .length,
      }));
      assert.deepEqual(found, { scripts: 0, handlers: 0, links: 0 }, path);
    }
    assert.deepEqual(problems, []);
    socket.close();
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
    const refused = problems.filter((problem) => problem.startsWith('policy:')).join('\n');
    for (const directive of ['img-src', 'style-src-elem', 'script-src-attr', 'connect-src'])
      assert.ok(refused.includes(directive), `${directive} is not among\n${refused}`);
  });
});

const fetchFrom = (page: Page, url: string) => page.evaluate((to) => fetch(to).catch(() => undefined), url);
