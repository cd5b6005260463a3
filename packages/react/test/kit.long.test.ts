import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import type { Actor } from '../../server/test/support/scene.ts';
import { setUp, useService } from '../../server/test/support/use.ts';
import { accessibilityProblems, serverModule, visit } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';
import type { Visit } from './browser.ts';
import type { Kit } from './page/app.tsx';

/** Two people with the whole kit, against the real service. SHOTS=folder keeps pictures. */

const shots = process.env['SHOTS'];
const shoot = async (page: Page, name: string): Promise<void> => {
  if (shots === undefined) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`) });
};

const row = (page: Page, text: string) => page.locator(`.parley-message[aria-label*="${text}"]`).last();
const field = (page: Page) => page.locator('.parley-composer textarea');
const openFirst = (page: Page) => page.locator('.parley-conversation').first().click();
const say = async (page: Page, text: string): Promise<void> => {
  await field(page).fill(text);
  await field(page).press('Enter');
  await row(page, text).waitFor();
};
const cut = (page: Page, offline: boolean) =>
  page.evaluate((off) => (globalThis as unknown as { kit: Kit }).kit.cut(off), offline);
const rendered = (page: Page) =>
  page.evaluate(() => (globalThis as unknown as { kit: Kit }).kit.rendered.splice(0));

describe('the kit', () => {
  const { service, scene, server } = useService();
  const browser = useBrowser();
  let nora: Actor;
  let tomas: Actor;
  let chat: string;
  setUp(async () => {
    [nora, tomas] = [await scene.actor('nora'), await scene.actor('tomas')];
    await server('PUT', `/v1/users/${nora.id}`, { name: 'Nora Lind' });
    await server('PUT', `/v1/users/${tomas.id}`, { name: 'Tomás Barreiro' });
    chat = (await scene.direct(nora, tomas)).id;
    for (let i = 1; i <= 70; i++) await tell(i % 3 ? tomas : nora, `Line ${i}`);
    await scene.send(nora, chat, { text: 'I have read all this' }); // By herself: that moves her mark.
    const question = 'The lamp is here, but the arm wobbles. Is a screw missing?';
    await tell(tomas, `${question} See https://lumen.shop/parts/m4-kit.`);
  });
  /** By the server's key: people may write ten messages a second. */
  const tell = async (from: Actor, text: string): Promise<void> => {
    const answer = await server('POST', `/v1/conversations/${chat}/messages`, { senderId: from.id, text });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
  };
  const enter = (of: Actor, more: object = {}, how?: Parameters<typeof visit>[2]): Promise<Visit> =>
    visit(browser, { url: service.url, token: scene.token(of), ...more }, how);
  const leave = async (...visits: Visit[]): Promise<void> => {
    for (const { page, problems } of visits) {
      assert.deepEqual(problems, []);
      await page.context().close();
    }
  };

  it('two people write, read, answer, change and delete; one message renders one row', async () => {
    const [a, b] = [await enter(nora), await enter(tomas)];
    const [ann, bob] = [a.page, b.page];
    await ann.locator('.parley-conversation', { hasText: 'Tomás Barreiro' }).waitFor();
    await ann.locator('.parley-unread').first().waitFor();
    await openFirst(ann);
    await ann.locator('.parley-new').waitFor();
    await ann.locator('.parley-unread').waitFor({ state: 'detached' });
    assert.equal(
      await row(ann, 'The lamp').getByRole('link').getAttribute('href'),
      'https://lumen.shop/parts/m4-kit',
    );
    await openFirst(bob);
    await ann.locator('.parley-thread-head small', { hasText: 'Online' }).waitFor();
    await row(bob, 'The lamp').locator('.parley-receipt[data-state=read]').waitFor();

    await field(ann).pressSequentially('Sorry');
    await bob.locator('.parley-typing', { hasText: 'Nora Lind is typing' }).waitFor();
    await rendered(bob);
    await say(ann, 'Sorry about that, Tomás.');
    await row(bob, 'Sorry about that').waitFor();
    await row(ann, 'Sorry about that').locator('.parley-receipt[data-state=read]').waitFor();
    assert.deepEqual([...new Set(await rendered(bob))], ['Sorry about that, Tomás.']);

    await row(bob, 'Sorry about that').hover();
    await bob.getByRole('button', { name: 'Reply' }).click();
    await say(bob, 'Found it, thank you');
    await row(ann, 'Found it').locator('.parley-quote', { hasText: 'Sorry about that' }).waitFor();

    // By the keyboard alone: the arrow up changes the last message, Escape gives it up.
    await field(ann).press('ArrowUp');
    await field(ann).fill('Sorry about that, dear Tomás.');
    await field(ann).press('Enter');
    await row(bob, 'dear Tomás').locator('.parley-edited').waitFor();
    await shoot(bob, 'desktop-light');
    await row(ann, 'dear Tomás').focus();
    await ann.keyboard.press('Delete');
    await ann.getByRole('toolbar').getByRole('button', { name: 'Delete' }).press('Enter');
    await bob.locator('.parley-message[data-state=deleted]').waitFor();
    await leave(a, b);
  });

  it('older pages come without moving what is read, within a bounded number of rows; one jumps to the end', async () => {
    const a = await enter(nora);
    const { page } = a;
    await openFirst(page);
    await row(page, 'The lamp').waitFor();
    const list = page.locator('.parley-scroll');
    await list.evaluate((box) => void (box.scrollTop = 500));
    await page.locator('.parley-jump').waitFor();
    const top = (text: string) => row(page, text).evaluate((e) => Math.round(e.getBoundingClientRect().top));
    await page.waitForFunction(() => {
      document.querySelector('.parley-scroll')!.scrollTop = 0;
      return document.querySelector('.parley-message[aria-label$=": Line 1"]') !== null;
    });
    await list.evaluate((box) => void (box.scrollTop = 700));
    await list.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    const seen = await list.evaluate((box) => {
      const { top } = box.getBoundingClientRect();
      const one = [...box.querySelectorAll('.parley-message')].find(
        (e) => e.getBoundingClientRect().top > top,
      );
      return one!.querySelector('.parley-bubble')!.textContent;
    });
    const before = await top(seen);
    await tell(tomas, 'Something new below');
    await page.locator('.parley-jump', { hasText: '1 new message' }).waitFor();
    assert.equal(await top(seen), before);
    assert.ok((await page.locator('.parley-message').count()) <= 100);
    await page.locator('.parley-jump').click();
    await row(page, 'Something new below').waitFor();
    await page.locator('.parley-jump').waitFor({ state: 'detached' });
    await leave(a);
  });

  it('offline it shows what waits, and sends it when the network is back', async () => {
    const [a, b] = [await enter(nora), await enter(tomas)];
    await openFirst(a.page);
    await openFirst(b.page);
    await row(a.page, 'The lamp').waitFor();
    await cut(a.page, true);
    await say(a.page, 'Written in a tunnel');
    await a.page.locator('.parley-connection[data-state=lost]', { hasText: 'One message waits' }).waitFor();
    await row(a.page, 'tunnel').locator('.parley-receipt[data-state=waiting]').waitFor();
    assert.equal(await a.page.locator('.parley-presence').count(), 0, 'nobody’s presence is known');
    await shoot(a.page, 'offline');
    await cut(a.page, false);
    await a.page.getByRole('button', { name: 'Try now' }).click();
    await row(b.page, 'Written in a tunnel').waitFor();
    await row(a.page, 'tunnel').locator('.parley-receipt[data-state=read]').waitFor();
    await leave(a, b);
  });

  it('files are chosen, dropped and pasted, shown before they are sent, and arrive', async () => {
    const [a, b] = [await enter(nora), await enter(tomas)];
    await openFirst(a.page);
    await openFirst(b.page);
    await row(a.page, 'The lamp').waitFor();
    const pixel =
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==';
    await a.page.locator('.parley-composer input[type=file]').setInputFiles([
      { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from(pixel, 'base64') },
      { name: 'elbow-joint.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.4 '.repeat(900)) },
    ]);
    for (const type of ['drop', 'paste'])
      await a.page.locator('.parley-composer textarea').evaluate((element, kind) => {
        const data = new DataTransfer();
        data.items.add(new File(['a note'], `${kind}.txt`, { type: 'text/plain' }));
        const init = { bubbles: true, cancelable: true };
        element.dispatchEvent(
          kind === 'drop'
            ? new DragEvent('drop', { ...init, dataTransfer: data })
            : new ClipboardEvent('paste', { ...init, clipboardData: data }),
        );
      }, type);
    await a.page.locator('.parley-chip').nth(3).waitFor();
    await a.page.getByRole('button', { name: 'Remove paste.txt' }).click();
    await shoot(a.page, 'chips');
    await say(a.page, 'Three files');
    const got = row(b.page, 'Three files');
    await got.getByRole('button', { name: 'Download elbow-joint.pdf' }).waitFor();
    await got.getByRole('button', { name: 'Download drop.txt' }).waitFor();
    const image = got.locator('img');
    await image.waitFor();
    assert.equal(
      await image.evaluate(async (img: HTMLImageElement) => (await img.decode(), img.naturalWidth)),
      1,
    );
    assert.equal(await a.page.locator('.parley-chip').count(), 0);
    await leave(a, b);
  });

  it('an input method’s Enter sends nothing; emoji come from the picker', async () => {
    const a = await enter(nora);
    await openFirst(a.page);
    await row(a.page, 'The lamp').waitFor();
    await field(a.page).fill('日本');
    await field(a.page).evaluate((element) => {
      const enter = { key: 'Enter', bubbles: true, cancelable: true };
      element.dispatchEvent(new KeyboardEvent('keydown', { ...enter, isComposing: true }));
      element.dispatchEvent(new KeyboardEvent('keydown', { ...enter, keyCode: 229 }));
    });
    await a.page.getByRole('button', { name: 'Emoji' }).click();
    await a.page.getByRole('dialog', { name: 'Emoji' }).getByRole('button').first().press('ArrowRight');
    await a.page.keyboard.press('Enter');
    assert.equal(await field(a.page).inputValue(), '日本😃');
    await field(a.page).fill('');
    await leave(a);
  });

  it('light and dark, from left and from right, wide and narrow: axe finds nothing, nothing sticks out', async () => {
    for (const [theme, dir] of [
      ['light', 'ltr'],
      ['dark', 'rtl'],
    ] as const) {
      const a = await enter(tomas, { theme, dir });
      await openFirst(a.page);
      await row(a.page, 'Three files').locator('img').waitFor();
      await row(a.page, 'Three files').hover();
      assert.deepEqual(await accessibilityProblems(a.page), [], theme);
      await shoot(a.page, `desktop-${theme}-${dir}`);
      await a.page.setViewportSize({ width: 390, height: 844 });
      await a.page.locator('.parley-list').waitFor({ state: 'hidden' });
      const fits = () => a.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
      assert.ok(await fits(), `${theme}: the thread fits`);
      await shoot(a.page, `phone-thread-${theme}`);
      assert.deepEqual(await accessibilityProblems(a.page), [], `${theme}, phone`);
      await a.page.getByRole('button', { name: 'Back to the list' }).click();
      await a.page.locator('.parley-list').waitFor();
      assert.ok(await fits(), `${theme}: the list fits`);
      await shoot(a.page, `phone-list-${theme}`);
      await leave(a);
    }
  });

  it('React 18 takes over what a server rendered, without a difference, and works', async () => {
    const options = { url: service.url, token: scene.token(nora) };
    const { render, version } = await serverModule(18);
    assert.match(version, /^18\./);
    const html = render(options);
    assert.match(html, /parley-chat/);
    const a = await visit(browser, options, { react: 18, html });
    await openFirst(a.page);
    await say(a.page, 'From React 18');
    await row(a.page, 'From React 18')
      .locator('.parley-receipt[data-state=sent], [data-state=delivered]')
      .waitFor();
    await leave(a);
  });
});
