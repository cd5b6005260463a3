import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { startService } from '../../server/test/support/service.ts';
import type { Service } from '../../server/test/support/service.ts';
import { launchChromium } from '../../server/test/support/chromium.ts';
import { conversation, newChat, row, say, signIn } from './demo.ts';

/** The page in a real Chromium: what a newcomer sees in the first minute. Whom it is shown to is in `start/this-machine`. */

describe('playground', () => {
  let service: Service;
  let browser: Browser;
  const problems: string[] = [];

  before(async () => {
    service = await startService();
    browser = await launchChromium();
  });
  after(async () => {
    await browser.close();
    await service.dispose();
  });

  it('the pages name their assets, which may be kept for ever, and allow nothing from elsewhere', async () => {
    for (const [path, entry] of [
      ['/', 'main'],
      ['/connection-test', 'connection-test'],
    ] as const) {
      const page = await fetch(`${service.url}${path}`);
      const html = await page.text();
      assert.match(page.headers.get('content-security-policy')!, /default-src 'none'; script-src 'self';/);
      assert.match(html, /data-environment="env_dev"/);
      const names = [...html.matchAll(/(?:src|href)="(\/playground\/[^"]+)"/g)].map((match) => match[1]!);
      assert.deepEqual(
        names.map((name) => name.replace(/-[A-Z0-9]{8}\./, '.')),
        ['/playground/geist-latin-wght-normal.woff2', `/playground/${entry}.css`, `/playground/${entry}.js`],
      );
      for (const name of names) {
        const asset = await fetch(`${service.url}${name}`);
        assert.equal(asset.status, 200, name);
        assert.match(asset.headers.get('cache-control')!, /immutable/);
        await asset.arrayBuffer();
      }
    }
    assert.equal((await fetch(`${service.url}/playground/nothing.js`)).status, 404);
  });

  it('sdk#procedure: one begins a chat with somebody new, who comes, sees it unread and reads it', async () => {
    const a = await signIn(browser, service.url, 'Ada');
    await newChat(a.page, ['Bob']);
    await say(a.page, 'Hello Bob');
    const b = await signIn(browser, service.url, 'Bob', { viewport: { width: 390, height: 844 } });
    await conversation(b.page, 'Ada').locator('.parley-unread', { hasText: '1' }).waitFor();
    await conversation(b.page, 'Ada').click();
    await row(b.page, 'Hello Bob').waitFor();
    await row(a.page, 'Hello Bob').locator('.parley-receipt[data-state=read]').waitFor();
    await say(b.page, 'Hello Ada');
    await row(a.page, 'Hello Ada').waitFor();
    await a.page.locator('.parley-frame[data-way=out]', { hasText: 'message.send' }).first().waitFor();
    await a.page.getByRole('tab', { name: 'Code' }).click();
    await a.page.locator('.demo-code li[data-now]').waitFor();
    for (const visit of [a, b]) {
      problems.push(...visit.problems);
      await visit.page.context().close();
    }
  });

  it('asks nothing of any other host and throws nothing', () => assert.deepEqual(problems, []));
});
