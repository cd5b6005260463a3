import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { chromium } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';
import { startService } from '../../server/test/support/service.ts';
import type { Service } from '../../server/test/support/service.ts';

/** The page in a real Chromium: what a newcomer sees in the first minute. */

const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

describe('playground', () => {
  let service: Service;
  let browser: Browser;
  const outside: string[] = [];
  const problems: string[] = [];

  before(async () => {
    service = await startService();
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: flags });
  });
  after(async () => {
    await browser.close();
    await service.dispose();
  });

  async function visit(name: string): Promise<Page> {
    const context = await browser.newContext();
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    page.on('request', (request) => {
      if (!request.url().startsWith(service.url) && !request.url().startsWith('data:'))
        outside.push(request.url());
    });
    page.on('pageerror', (error) => problems.push(`${name}: ${error.message}`));
    await page.goto(service.url);
    await page.fill('#name', name);
    await page.click('#sign-in button');
    await page.waitForSelector('.state[data-state=connected]');
    return page;
  }
  const talkTo = async (page: Page, people: string): Promise<void> => {
    await page.fill('#new-conversation input', people);
    await page.press('#new-conversation input', 'Enter');
    await page.waitForSelector('#talk:not([hidden])');
  };
  const say = async (page: Page, text: string): Promise<void> => {
    await page.fill('#text', text);
    await page.press('#text', 'Enter');
  };
  const texts = (page: Page): Promise<string[]> => page.locator('.message .body').allInnerTexts();
  const sees = (page: Page, text: string) =>
    page.locator('.message .body', { hasText: text }).first().waitFor();

  it('sdk#procedure: two pages talk, with unread, typing, receipts, replies, edits and deletes', async () => {
    const bob = await visit('bob');
    const ada = await visit('ada');
    await talkTo(ada, 'bob');
    await say(ada, 'Hello Bob');
    await bob.waitForSelector('.badge >> text=1');
    await bob.click('#conversations button');
    await sees(bob, 'Hello Bob');
    await bob.waitForSelector('.badge', { state: 'detached' });
    await ada.waitForSelector('.ticks.read');

    await bob.locator('#text').pressSequentially('thinking');
    await ada.waitForSelector('#typing:text("bob is typing")');
    await bob.fill('#text', '');

    await bob.hover('.message');
    await bob.click('.message >> text=Reply');
    await say(bob, 'Hello Ada');
    await ada.waitForSelector('.quote:text("Hello Bob")');

    await ada.hover('.message.own');
    await ada.click('.message.own >> text=Edit');
    await say(ada, 'Hello dear Bob');
    await sees(bob, 'Hello dear Bob');
    await bob.waitForSelector('.foot:has-text("edited")');

    await bob.hover('.message.own');
    await bob.click('.message.own >> text=Delete');
    await ada.waitForSelector('.message.gone');
    await bob.waitForSelector('.message.gone');
    assert.deepEqual(await texts(ada), await texts(bob));
    await bob.waitForSelector('#subtitle:text("online")');
    await Promise.all([ada.context().close(), bob.context().close()]);
  });

  it('sdk#outbox: one goes offline and sends, comes back, both agree; a third opens late and sees the same', async () => {
    const dan = await visit('dan');
    const eve = await visit('eve');
    const fay = await visit('fay');
    await fay.context().close();
    await talkTo(dan, 'eve, fay');
    await say(dan, 'one');
    await eve.click('#conversations button');
    await sees(eve, 'one');

    await dan.context().setOffline(true);
    await say(dan, 'two, while away');
    await say(dan, 'three, while away');
    await dan.waitForSelector('.message.pending');
    await say(eve, 'meanwhile');
    await dan.context().setOffline(false);
    await dan.waitForSelector('.message.pending', { state: 'detached' });
    await sees(eve, 'three, while away');
    await sees(dan, 'meanwhile');

    const late = await visit('fay');
    await late.click('#conversations button');
    await sees(late, 'three, while away');
    const seen = await texts(eve);
    assert.deepEqual(await texts(dan), seen);
    assert.deepEqual(await texts(late), seen);
    assert.equal(seen.length, 4);
    assert.ok(seen.indexOf('two, while away') < seen.indexOf('three, while away'), 'per-sender order');
    await Promise.all([dan, eve, late].map((p) => p.context().close()));
  });

  it('uploads#ticket: a picture goes from one page to the other', async () => {
    const jan = await visit('jan');
    const kim = await visit('kim');
    await talkTo(kim, 'jan');
    const pixel =
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==';
    await kim.setInputFiles('#file', {
      name: 'dot.png',
      mimeType: 'image/png',
      buffer: Buffer.from(pixel, 'base64'),
    });
    await jan.click('#conversations button');
    const image = jan.locator('.message img');
    await image.waitFor();
    assert.equal(
      await image.evaluate(async (img: HTMLImageElement) => (await img.decode(), img.naturalWidth)),
      1,
    );
    await Promise.all([jan.context().close(), kim.context().close()]);
  });

  it('says who is missing when a name is not known yet', async () => {
    const gus = await visit('gus');
    await gus.fill('#new-conversation input', 'nobody-yet');
    await gus.press('#new-conversation input', 'Enter');
    await gus.waitForSelector('#new-problem:text("nobody-yet")');
    await gus.context().close();
  });

  it('works on a phone: the list, then the conversation', async () => {
    const ivy = await visit('ivy');
    await ivy.context().close();
    const hal = await visit('hal');
    await hal.setViewportSize({ width: 390, height: 700 });
    await talkTo(hal, 'ivy');
    assert.equal(await hal.locator('.side').isVisible(), false);
    await hal.click('#back');
    assert.equal(await hal.locator('.side').isVisible(), true);
    await hal.context().close();
  });

  it('asks nothing of any other host and throws nothing', () => {
    assert.deepEqual(outside, []);
    assert.deepEqual(problems, []);
  });
});
