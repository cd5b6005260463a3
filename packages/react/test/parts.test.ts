import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { use } from '../../server/test/support/use.ts';
import { accessibilityProblems, visit } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';

/** Parts of the kit in Chromium, with a service in the page. */
describe('the parts of the kit', () => {
  const browser = useBrowser();
  const open = async (options: object): Promise<Page> => {
    const { page } = await visit(
      browser,
      { url: 'http://kit.test', token: '', ...options },
      { entry: 'story.tsx' },
    );
    await page.locator('.parley-conversation', { hasText: 'Tomás' }).click();
    await page.locator('.parley-message').first().waitFor();
    return page;
  };
  // One page for most of it: to load one takes longer than to use it.
  const page = use(
    () => open({ wire: 'shown' }),
    (one) => one.context().close(),
  );
  const focused = () => page.evaluate(() => document.activeElement?.textContent);

  it('rows have receipts and two people of a group; slots of the provider stand around the usual parts', async () => {
    const row = (of: Page, name: string) => of.locator('.parley-conversation', { hasText: name });
    await row(page, 'Jonas Aalto').locator('.parley-receipt[data-state=read] i[data-on]').nth(2).waitFor();
    await row(page, 'Tomás').locator('.parley-receipt[data-state=delivered]').waitFor();
    assert.equal(await row(page, 'Mei Okafor').locator('.parley-receipt').count(), 0, 'not hers');
    const pair = row(page, 'Packing table').locator('.parley-avatar-pair > .parley-avatar');
    for (const initials of ['IR', 'SK']) await pair.filter({ hasText: initials }).waitFor();
    assert.equal(await page.locator('[data-mine]').count(), 0);

    const other = await open({ slots: true });
    await other.locator('.parley-message[data-mine]').first().waitFor();
    await row(other, 'Jonas Aalto').locator('.parley-avatar[data-mine]').waitFor();
    await row(other, 'Jonas Aalto').locator('.parley-receipt[data-variant=checks] svg').waitFor();
    // The word is there for those who hear it.
    await other
      .locator('.parley-meta .parley-receipt[data-variant=checks]', { hasText: 'Delivered' })
      .waitFor();
    assert.equal(await other.locator('.parley-typing').count(), 0, 'null leaves a part out');

    // In a group a receipt counts, also with check marks.
    await row(other, 'Packing table').click();
    await other.locator('.parley-thread-head', { hasText: '3 members' }).waitFor();
    for (const text of ['On my way', 'With tape']) {
      await other.locator('.parley-composer textarea').fill(text);
      await other.locator('.parley-composer textarea').press('Enter');
    }
    await other.locator('.parley-message', { hasText: 'With tape' }).waitFor();
    const receipt = other.locator('.parley-meta .parley-receipt');
    await other.locator('.parley-meta .parley-receipt[data-state=sent]').waitFor();
    assert.equal(await receipt.count(), 1, 'below the last of those that stand together');
    for (const [i, userId] of ['ines', 'sami'].entries()) {
      await other.evaluate(`story.read('conv_packing', '${userId}', 3)`);
      await receipt.filter({ hasText: `Read by ${i + 1}` }).waitFor();
    }
    await row(other, 'Packing table').locator('.parley-receipt[data-state=read]').waitFor();
    // Where only moderators write, the composer says so.
    await other.evaluate(`story.setRules('conv_packing', { posting: 'moderators' })`);
    await other.locator('.parley-composer', { hasText: 'Only moderators can write here.' }).waitFor();
    await other.context().close();
  });

  it('slots of one thread stand for the author, the bubble, the meta and the actions of its messages; receipts below each own one', async () => {
    const other = await open({ parts: true });
    const row = (text: string) => other.locator('.parley-message', { hasText: text });
    await row('IT SAYS BRASS.').locator('.parley-bubble[data-mine]').waitFor();
    assert.equal(await other.locator('.parley-author').count(), 0, 'null leaves a part out');
    assert.ok((await page.locator('.parley-author').count()) > 0);
    for (const text of ['One', 'Two']) {
      await other.locator('.parley-composer textarea').fill(text);
      await other.locator('.parley-composer textarea').press('Enter');
    }
    for (const [text, seq] of [
      ['ONE', '6'],
      ['TWO', '7'],
    ] as const) {
      await row(text).locator('.parley-meta .parley-receipt[data-state=sent]').waitFor();
      await row(text).locator('.parley-meta > [data-mine]', { hasText: seq }).waitFor();
    }
    // The usual toolbar asks and is answered by the keys, also inside of somebody else's.
    await row('TWO').focus();
    await other.keyboard.press('Delete');
    const bar = row('TWO').locator('.parley-actions[data-mine]');
    await bar.getByText('Delete for everyone?').waitFor();
    const has = (label: string) =>
      other.waitForFunction((l) => document.activeElement?.getAttribute('aria-label') === l, label);
    await has('Delete');
    await other.keyboard.press('ArrowRight');
    await has('Keep');
    await other.keyboard.press('Enter');
    await bar.getByText('Delete for everyone?').waitFor({ state: 'detached' });
    assert.deepEqual(await accessibilityProblems(other), []);
    await other.context().close();
  });

  it('emoji: arrows go in two directions, letters search, what was picked comes first next time', async () => {
    const picker = page.getByRole('dialog', { name: 'Emoji' });
    const field = page.locator('.parley-composer textarea');
    const show = () => page.getByRole('button', { name: 'Emoji' }).click();
    await show();
    await picker.getByRole('grid').waitFor();
    const rows = await picker
      .getByRole('row')
      .evaluateAll((all) => all.map((row) => [...row.querySelectorAll('button')].map((b) => b.textContent)));
    const last = rows.findIndex((row) => row.length < 8);
    await page.waitForFunction((first) => document.activeElement?.textContent === first, rows[0]![0]!);
    for (const key of ['ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowDown'])
      await page.keyboard.press(key);
    assert.equal(await focused(), rows[1]![4]);
    // The last row of the group is short, and the column is found again after it.
    for (let i = 1; i < last; i++) await page.keyboard.press('ArrowDown');
    assert.equal(await focused(), rows[last]!.at(-1));
    await page.keyboard.press('ArrowDown');
    assert.equal(await focused(), rows[last + 1]![4]);
    await page.keyboard.press('End');
    assert.equal(await focused(), rows[last + 1]!.at(-1));
    await page.keyboard.press('ArrowRight');
    assert.equal(await focused(), rows[last + 2]![0]);

    await page.keyboard.type('rock la');
    const search = picker.getByRole('searchbox');
    assert.equal(await search.inputValue(), 'rock la');
    await picker.getByRole('gridcell').nth(1).waitFor({ state: 'detached' });
    assert.deepEqual(await picker.getByRole('gridcell').allInnerTexts(), ['🚀']);
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.keyboard.press('Enter');
    await picker.waitFor({ state: 'detached' });
    assert.equal(await field.inputValue(), '🚀');
    await show();
    const recent = picker.locator('[role=rowgroup][aria-label=Recent]');
    await recent.waitFor();
    assert.deepEqual(await recent.getByRole('gridcell').allInnerTexts(), ['🚀']);
    await search.fill('nothing like it');
    await picker.getByText('Nothing found').waitFor();
    await page.keyboard.press('Escape');
    await picker.waitFor({ state: 'detached' });
  });

  it('emoji: a tone of skin is chosen by the arrows, shows on hands and people, and is remembered', async () => {
    const picker = page.getByRole('dialog', { name: 'Emoji' });
    const field = page.locator('.parley-composer textarea');
    const show = () => page.getByRole('button', { name: 'Emoji' }).click();
    const tone = (name: string) => picker.getByRole('radio', { name, exact: true });
    await field.fill('');
    await show();
    await tone('Yellow').and(page.locator('[aria-checked=true]')).waitFor();
    // One tab stop after that of the grid.
    await picker.getByRole('gridcell').first().getByRole('button').focus();
    await page.keyboard.press('Tab');
    for (const key of ['ArrowRight', 'ArrowDown', 'ArrowDown', 'ArrowLeft']) await page.keyboard.press(key);
    assert.equal(await focused(), '✋🏼');
    assert.equal(await tone('Medium light').getAttribute('aria-checked'), 'true');
    assert.equal(await picker.locator('[role=radio][aria-checked=true]').count(), 1);
    assert.deepEqual(await accessibilityProblems(page), []);
    // Letters search from here, too. A heart has no skin, and a victory sign loses what made it coloured.
    await page.keyboard.type('peace');
    const cells = picker.getByRole('gridcell');
    await cells.nth(1).waitFor({ state: 'detached' });
    assert.deepEqual(await cells.allInnerTexts(), ['✌🏼']);
    await picker.getByRole('searchbox').fill('heart');
    await picker.getByText('❤️').waitFor();
    assert.ok((await cells.allInnerTexts()).every((emoji) => !emoji.includes('🏼')));
    await picker.getByRole('searchbox').fill('👍🏿');
    await cells.filter({ hasText: '👍🏼' }).getByRole('button').click();
    await picker.waitFor({ state: 'detached' });
    assert.equal(await field.inputValue(), '👍🏼');
    await field.fill('');
    await show();
    await tone('Medium light').and(page.locator('[aria-checked=true]')).waitFor();
    const recent = picker.locator('[role=rowgroup][aria-label=Recent]').getByRole('gridcell');
    assert.equal((await recent.allInnerTexts())[0], '👍🏼');
    await tone('Yellow').click();
    await page.keyboard.press('Escape');
    await picker.waitFor({ state: 'detached' });
  });

  it('report: a message of somebody else is reported by the keyboard; while the service is away the dialog stays', async () => {
    const other = await open({ features: ['reports'] });
    const message = other.locator('.parley-message:not([data-own])').first();
    await message.focus();
    await message.getByRole('button', { name: 'Report' }).waitFor();
    assert.equal(await other.locator('.parley-message[data-own] [aria-label=Report]').count(), 0);
    await message.getByRole('button', { name: 'Report' }).press('Enter');
    const dialog = other.getByRole('dialog', { name: 'Report this to the team' });
    await dialog.waitFor();
    const send = dialog.getByRole('button', { name: 'Report' });
    assert.ok(await send.isDisabled(), 'a reason is needed');
    await dialog.getByLabel('Spam').focus();
    await other.keyboard.press('ArrowDown');
    assert.ok(await dialog.getByLabel('Insults or harassment').isChecked());
    assert.deepEqual(await accessibilityProblems(other), []);
    await dialog.getByLabel('Details (optional)').fill('He shouts.');
    await other.evaluate('story.offline = true');
    await send.click();
    await dialog.getByRole('alert').waitFor();
    await other.evaluate('story.offline = false');
    await send.click();
    await dialog.waitFor({ state: 'detached' });
    const [reported] = (await other.evaluate('story.reports')) as Record<string, string>[];
    assert.match(reported!['messageId']!, /^msg_/);
    assert.partialDeepStrictEqual(reported, { reason: 'abuse', note: 'He shouts.' });
    await message.focus();
    await message.getByRole('button', { name: 'Report' }).press('Enter');
    await dialog.waitFor();
    await other.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await other.context().close();
  });

  it('the wire: frames without their words, chosen by arrows, opened by Enter, copied by C, filtered and paused', async () => {
    const panel = page.getByRole('region', { name: 'Wire' });
    await page.locator('.parley-composer textarea').fill('Between us');
    await page.locator('.parley-composer textarea').press('Enter');
    const sent = panel.locator('.parley-frame', { hasText: 'message.send' });
    await sent.getByText('10 characters').waitFor();
    await panel.locator('.parley-trail > li[data-on]', { hasText: 'committed' }).waitFor();
    await sent.locator('button').focus();
    await page.keyboard.press('Enter');
    assert.match(await sent.locator('pre').innerText(), /"text": "…"/);
    assert.doesNotMatch(await panel.innerText(), /Between us/);
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowDown');
    assert.match((await focused())!, /message\.send/);
    await page.evaluate(() => {
      // This page has an address that browsers give no clipboard.
      const copied: string[] = [];
      Object.assign(globalThis, { copied });
      const clipboard = { writeText: async (text: string) => void copied.push(text) };
      Object.defineProperty(navigator, 'clipboard', { value: clipboard });
    });
    await page.keyboard.press('c');
    const copied = await page.evaluate(() => (globalThis as unknown as { copied: string[] }).copied);
    assert.equal(JSON.parse(copied[0]!).d.text, '…');

    await panel.getByRole('button', { name: 'Filter' }).click();
    await panel.getByRole('searchbox').fill('MESSAGE.S');
    await panel.getByText(/^1 of \d+ frames$/).waitFor();
    await panel.getByRole('searchbox').fill('');
    await panel.getByRole('button', { name: 'Pause' }).click();
    const count = await panel.locator('.parley-frame').count();
    await page.evaluate(`story.typing('conv_tomas', 'tomas', 'start')`);
    await page.locator('.parley-typing', { hasText: 'Tomás' }).waitFor();
    assert.equal(await panel.locator('.parley-frame').count(), count);
    await panel.getByRole('button', { name: 'Clear' }).click();
    await panel.getByText('No frames yet').waitFor();
  });

  it('the day at the top covers no words, and nothing moves for whoever wants no motion', async () => {
    await page.setViewportSize({ width: 700, height: 600 });
    const list = page.locator('.parley-scroll');
    await list.evaluate((box) => {
      const { top } = box.querySelectorAll('.parley-bubble')[1]!.getBoundingClientRect();
      box.scrollTop += top - box.getBoundingClientRect().top - 10;
    });
    const covered = await list.evaluate((box) => {
      const day = box.querySelector('.parley-day')!;
      const band = day.getBoundingClientRect();
      const bubbles = [...box.querySelectorAll('.parley-bubble')].map((one) => one.getBoundingClientRect());
      return {
        stuck: Math.round(band.top - box.getBoundingClientRect().top),
        under: bubbles.filter(({ top, bottom }) => top < band.bottom && bottom > band.top).length,
        beside: bubbles.filter(
          ({ top, bottom, left, right }) =>
            top < band.bottom && bottom > band.top && (left < band.left || right > band.right),
        ).length,
        opaque: getComputedStyle(day).backgroundColor,
      };
    });
    assert.deepEqual(covered, { stuck: 0, under: 1, beside: 0, opaque: 'rgb(255, 255, 255)' });
    // Whoever goes up by the keys sees the whole message.
    await page.locator('.parley-message').last().focus();
    for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowUp');
    const gap = await list.evaluate((box) => {
      const row = document.activeElement!.getBoundingClientRect();
      return row.top - box.querySelector('.parley-day')!.getBoundingClientRect().bottom;
    });
    assert.ok(gap >= 0, `the row is ${gap} px below the day`);

    await page.evaluate(`story.typing('conv_tomas', 'tomas', 'start')`);
    await page.locator('.parley-dots').waitFor();
    const running = await page.evaluate(() => {
      document.querySelector<HTMLElement>('.parley-bubble')!.style.opacity = '0.5';
      document.querySelector<HTMLElement>('.parley-send')!.style.backgroundColor = 'red';
      getComputedStyle(document.querySelector('.parley-bubble')!).opacity; // Styles are settled: what moves has begun.
      return document.getAnimations().map((one) => (one.effect as KeyframeEffect).target?.className);
    });
    assert.deepEqual(running, []);
  });
});
