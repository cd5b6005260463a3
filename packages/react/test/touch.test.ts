import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { use } from '../../server/test/support/use.ts';
import { accessibilityProblems, visit } from './browser.ts';
import { useBrowser, wholeBrowser } from '../../server/test/support/chromium.ts';

/** A phone: what fingers reach, in Chromium with a service in the page. */
describe('the kit on a touch screen', () => {
  const browser = useBrowser([], wholeBrowser);
  const page = use(
    async () => {
      const { page: phone } = await visit(
        browser,
        { url: 'http://kit.test', token: '', features: ['reactions', 'reports'] },
        { entry: 'story.tsx', touch: true },
      );
      await phone.locator('.parley-conversation', { hasText: 'Tomás' }).tap();
      await phone.locator('.parley-message').first().waitFor();
      // The browser does what a page may not: it gives a copy without TLS.
      await phone.evaluate(() => {
        const clipboard = {
          writeText: async (text: string) => void Object.assign(globalThis, { copied: text }),
        };
        Object.defineProperty(navigator, 'clipboard', { value: clipboard });
      });
      return phone;
    },
    (one: Page) => one.context().close(),
  );
  const row = (text: string) => page.locator('.parley-message', { hasText: text });
  const sheet = () => page.locator('dialog.parley-sheet');
  const finger = use(
    () => page.context().newCDPSession(page.context().pages()[0]!),
    () => undefined,
  );
  const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', ...touchPoints: { x: number; y: number }[]) =>
    finger.send('Input.dispatchTouchEvent', { type, touchPoints });
  const placeOf = async (of: Locator) => {
    const { x, y, width, height } = (await of.locator('.parley-bubble').boundingBox())!;
    return { x: x + width / 2, y: y + height / 2 };
  };
  const hold = async (of: Locator): Promise<void> => {
    await of.scrollIntoViewIfNeeded();
    await touch('touchStart', await placeOf(of));
    await sheet().waitFor();
    await touch('touchEnd');
  };
  const gone = () => sheet().waitFor({ state: 'detached' });

  it('a long press opens what one can do with the message as a sheet; a reply begins there', async () => {
    await hold(row('It says brass.'));
    assert.deepEqual(await sheet().locator('> div > button').allInnerTexts(), [
      'Reply',
      'Copy the text',
      'Report',
    ]);
    const box = (await sheet().boundingBox())!;
    assert.deepEqual([box.x, Math.round(box.y + box.height)], [0, 700], 'at the lower edge');
    for (const button of await sheet().getByRole('button').all())
      assert.ok((await button.boundingBox())!.height >= 44, 'as high as a finger');
    assert.deepEqual(await accessibilityProblems(page), []);
    await sheet().getByRole('button', { name: 'Copy the text' }).tap();
    await gone();
    assert.equal(await page.evaluate('copied'), 'It says brass.');
    await hold(row('It says brass.'));
    await sheet().getByRole('button', { name: 'Reply' }).tap();
    await gone();
    await page.locator('.parley-context', { hasText: 'Reply to Tomás Barreiro' }).waitFor();
    await page.locator('.parley-context').getByRole('button', { name: 'Cancel' }).tap();
  });

  it('to scroll is no long press, and neither is a tap; what was held is not pressed', async () => {
    const link = row('Is this the right one?').getByRole('link');
    await page.evaluate(() => {
      const seen: string[] = [];
      Object.assign(globalThis, { seen });
      for (const type of ['pointercancel', 'pointerup', 'click'])
        addEventListener(type, () => seen.push(type), { capture: true });
    });
    const seen = (what: string) =>
      page.waitForFunction((w) => (globalThis as unknown as { seen: string[] }).seen.includes(w), what);
    const from = await placeOf(row('It says brass.'));
    await touch('touchStart', from);
    for (const far of [20, 60, 120]) await touch('touchMove', { x: from.x, y: from.y - far });
    await seen('pointercancel');
    await touch('touchEnd');
    await row('It says brass.').locator('.parley-bubble').tap();
    await seen('pointerup');
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    // Had one of them counted, its sheet would be the first.
    await hold(row('That’s the one.'));
    await sheet().getByRole('button', { name: 'Edit' }).waitFor();
    assert.equal(await sheet().count(), 1);
    // Beside the sheet it closes.
    await page.touchscreen.tap(195, 40);
    await gone();

    const box = (await link.boundingBox())!;
    await touch('touchStart', { x: box.x + box.width / 2, y: box.y + box.height / 2 });
    await sheet().waitFor();
    // Some browsers take every touch for a click.
    const followed = await link.evaluate((one) =>
      one.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true })),
    );
    assert.equal(followed, false);
    await touch('touchEnd');
    assert.equal(await sheet().count(), 1);
    await page.touchscreen.tap(195, 40);
    await gone();
  });

  it('one reacts from the sheet, with what is offered or any emoji', async () => {
    const message = row('It says brass.');
    await hold(message);
    await sheet().getByRole('button', { name: 'React with 🎉' }).tap();
    await gone();
    const mine = message.getByRole('button', { name: '🎉, 1' });
    await mine.and(page.locator('[aria-pressed=true]')).waitFor();
    await hold(message);
    await sheet().getByRole('button', { name: 'Add a reaction' }).tap();
    await sheet().getByRole('searchbox').fill('rocket');
    await sheet().getByRole('gridcell').nth(1).waitFor({ state: 'detached' });
    assert.deepEqual(await accessibilityProblems(page), []);
    await sheet().getByRole('button', { name: '🚀' }).tap();
    await gone();
    await message.getByRole('button', { name: '🚀, 1' }).waitFor();
    assert.equal(await message.getAttribute('data-reacted'), 'true');
    assert.equal(await row('That’s the one.').getAttribute('data-reacted'), null);
  });

  it('the sheet names who reacted, also those whom the message does not name', async () => {
    const message = row('Found it.');
    for (const who of ['tomas', 'nora', 'ada', 'mei', 'sami'])
      await page.evaluate(`story.react('msg_conv_tomas_3', '${who}', '👍')`);
    await page.evaluate(`story.react('msg_conv_tomas_3', 'rosa', '❤️')`);
    await message.getByRole('button', { name: '❤️, 1' }).waitFor();
    await hold(message);
    const names = sheet().getByRole('list', { name: 'Reactions' }).getByRole('listitem');
    await names.filter({ hasText: 'Tomás Barreiro' }).waitFor();
    const said = await names.allInnerTexts();
    assert.equal(said.length, 2);
    for (const one of ['You', 'Ada Nwosu', 'Mei Okafor', 'Sami Koskinen', 'Tomás Barreiro'])
      assert.ok(said[0]!.includes(one), `${one} in ${said[0]}`);
    assert.match(said[1]!, /❤️ Rosa Vidal/);
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.touchscreen.tap(195, 40);
    await gone();
  });

  it('the sheet asks before it deletes; a tap shows the buttons beside the message, too', async () => {
    const message = row('That’s the one.');
    await hold(message);
    await sheet().getByRole('button', { name: 'Delete' }).tap();
    await sheet().getByText('Delete for everyone?').waitFor();
    assert.deepEqual(await sheet().getByRole('button').allInnerTexts(), ['Delete', 'Keep']);
    await sheet().getByRole('button', { name: 'Keep' }).tap();
    await gone();

    await message.locator('.parley-bubble').tap();
    await message.getByRole('toolbar').getByRole('button', { name: 'Edit' }).tap();
    await page.locator('.parley-context', { hasText: 'Edit message' }).waitFor();
    await page.locator('.parley-context').getByRole('button', { name: 'Cancel' }).tap();
  });
});
