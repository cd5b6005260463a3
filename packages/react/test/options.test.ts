import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { use } from '../../server/test/support/use.ts';
import { accessibilityProblems, visit } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';

/** What an application may choose of the kit's lists, messages and composer, in Chromium with a service in the page. */
describe('options of the kit', () => {
  const browser = useBrowser();
  const open = async (options: object): Promise<Page> =>
    (await visit(browser, { url: 'http://kit.test', token: '', ...options }, { entry: 'story.tsx' })).page;
  const page = use(
    async () => {
      const one = await open({ laid: true, features: ['mentions'] });
      await one.locator('.parley-conversation', { hasText: 'Tomás' }).click();
      await one.locator('.parley-message').first().waitFor();
      return one;
    },
    (one: Page) => one.context().close(),
  );
  /** Mends what is wrong and presses the button at once: a moment later the client might have tried by itself, and the button be gone. */
  const tryNow = (where: Page | Locator, mend: string) =>
    where.getByRole('button', { name: 'Try now' }).evaluate((button, change) => {
      (0, eval)(change);
      (button as HTMLButtonElement).click();
    }, mend);
  const field = () => page.locator('.parley-composer textarea');
  const focusedName = (of: Page) =>
    of.evaluate(() => document.activeElement?.querySelector('b')?.textContent);

  it('sections: conversations stand below their titles, those of none last; the keys go through all of them', async () => {
    const rows = await page
      .locator('.parley-list > ul')
      .evaluate((list) => [...list.querySelectorAll('h3, b')].map((one) => one.textContent));
    assert.deepEqual(rows, [
      'People',
      'Tomás Barreiro',
      'Mei Okafor',
      'Jonas Aalto',
      'Rosa Vidal',
      'Teams',
      'Packing table',
      'Support team',
    ]);
    await page.locator('.parley-conversation').first().focus();
    for (const key of ['End', 'ArrowUp', 'ArrowUp']) await page.keyboard.press(key);
    assert.equal(await focusedName(page), 'Rosa Vidal');
    await page.keyboard.press('s');
    assert.equal(await focusedName(page), 'Support team');
    assert.deepEqual(await accessibilityProblems(page), []);
  });

  it('rows: all messages stand on one side without bubbles, each group with its name and picture', async () => {
    const rows = page.locator('.parley-message[data-variant=rows]');
    assert.equal(await rows.count(), await page.locator('.parley-message').count());
    const lefts = await rows.evaluateAll((all) =>
      all.map((row) => row.querySelector('.parley-content')!.getBoundingClientRect().left),
    );
    assert.equal(new Set(lefts).size, 1);
    const own = rows.and(page.locator('[data-own]')).first();
    assert.equal(await own.locator('.parley-author > bdi').innerText(), 'You');
    assert.equal(await own.locator('.parley-avatar').count(), 1);
    const colour = (of: string) =>
      own.locator(of).evaluate((element) => getComputedStyle(element).backgroundColor);
    assert.equal(await colour('.parley-bubble'), 'rgba(0, 0, 0, 0)');
  });

  it('triggers: a command at the beginning, orders that are looked for, and mentions beside them', async () => {
    await field().fill('');
    await field().pressSequentially('/a');
    const list = page.getByRole('listbox', { name: 'Commands' });
    await list.getByRole('option').nth(1).waitFor();
    assert.deepEqual(await list.getByRole('option').allInnerTexts(), ['/away', '/archive']);
    assert.equal(
      await field().getAttribute('aria-activedescendant'),
      await list.locator('[aria-selected=true]').getAttribute('id'),
    );
    await page.keyboard.press('ArrowDown');
    await list.locator('[aria-selected=true]', { hasText: '/archive' }).waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.keyboard.press('Enter');
    await list.waitFor({ state: 'detached' });
    assert.equal(await field().inputValue(), '/archive ');
    assert.equal(await field().getAttribute('aria-activedescendant'), null);

    const said = page.locator('.parley-suggestions[role=status]');
    await field().pressSequentially('the order #41');
    await said.getByText('Loading…').waitFor();
    await page.evaluate('answer()');
    await page.getByRole('listbox', { name: 'Orders' }).waitFor();
    await page.keyboard.press('Tab');
    assert.equal(await field().inputValue(), '/archive the order #4100 ');
    await field().pressSequentially('#9');
    await said.getByText('Loading…').waitFor();
    await page.evaluate('answer()');
    await said.getByText('Nothing found').waitFor();
    await page.keyboard.press('Escape');
    await said.waitFor({ state: 'detached' });
    // A slash further on is no command; what was closed stays closed while one goes on with the word.
    await field().pressSequentially('0 /a @T');
    const people = page.getByRole('listbox', { name: 'People to mention' });
    await people.getByRole('option', { name: 'Tomás Barreiro' }).waitFor();
    await page.keyboard.press('Escape');
    await people.waitFor({ state: 'detached' });
    await page.keyboard.type('o');
    assert.equal(await people.count(), 0);
    await field().fill('');
    await field().pressSequentially('@t');
    await people.getByRole('option', { name: 'Tomás Barreiro' }).waitFor();
    await page.keyboard.press('Enter');
    assert.equal(await field().inputValue(), '@Tomás Barreiro ');
    await field().fill('');
  });

  it('renderState: the banner shows a lost connection in the way of the page', async () => {
    await page.evaluate('story.cut(true)');
    await page.locator('.parley-connection > [data-mine]', { hasText: 'Reconnecting…' }).waitFor();
    await tryNow(page, 'story.cut(false)');
    await page.locator('.parley-connection[data-state=back]', { hasText: /^$/ }).waitFor();
  });

  it('messages#own-send: what a server writes for the reader reads nothing, and the line counts what came before it', async () => {
    const other = await open({ more: 0 });
    await other.locator('.parley-conversation', { hasText: 'Mei' }).waitFor();
    await other.evaluate(() => {
      interface Told {
        arrive(id: string): void;
        stories: Map<string, { unread?: number; lastRead?: number; line(seq: number): { senderId: string } }>;
      }
      const { story } = globalThis as unknown as { story: Told };
      const one = story.stories.get('conv_mei')!;
      const line = one.line.bind(one);
      one.line = (seq) => ({ ...line(seq), senderId: seq === 2 ? 'nora' : 'mei' });
      Object.assign(one, { unread: 2, lastRead: 0 });
      for (let i = 0; i < 2; i++) story.arrive('conv_mei');
    });
    await other.locator('.parley-conversation', { hasText: 'Mei' }).click();
    await other.locator('.parley-message').nth(2).waitFor();
    await other.locator('.parley-new').waitFor();
    assert.equal(await other.locator('.parley-new').innerText(), '2 new messages');
    await other.context().close();
  });

  it('first pages that are refused say so, and come when one asks again', async () => {
    const other = await open({ failingFirst: 'history_unavailable' });
    const list = other.getByRole('navigation');
    await list.getByRole('alert').getByText('This could not be loaded.').waitFor();
    assert.equal(await list.getByText('No conversations yet').count(), 0);
    assert.deepEqual(await accessibilityProblems(other), []);
    await tryNow(list, 'story.failingFirst = null');
    await list.getByRole('alert').waitFor({ state: 'detached' });

    await other.evaluate(`story.failingFirst = 'history_unavailable'`);
    await list.locator('.parley-conversation', { hasText: 'Tomás' }).click();
    const problem = other.locator('.parley-scroll > [role=alert]');
    await problem.getByText('This could not be loaded.').waitFor();
    assert.equal(await other.locator('.parley-scroll > .parley-skeleton').count(), 0);
    await tryNow(problem, 'story.failingFirst = null');
    await other.locator('.parley-message').first().waitFor();
    await problem.waitFor({ state: 'detached' });
    await other.context().close();
  });

  it('of 1,500 conversations those near to what is seen are in the page; Home, End and letters reach all', async () => {
    const other = await open({ more: 1_500, laid: true });
    const rows = other.locator('.parley-conversation');
    await other.locator('[aria-setsize="1506"]').first().waitFor();
    assert.ok((await rows.count()) < 60, `${await rows.count()} rows`);
    const list = other.locator('.parley-list');
    const height = await list.evaluate((box) => box.scrollHeight);
    await rows.first().focus();
    await other.keyboard.press('End');
    await other.waitForFunction(() => document.activeElement?.textContent?.includes('Support team'));
    await other.keyboard.press('ArrowUp');
    assert.equal(await focusedName(other), 'K1500');
    assert.ok((await rows.count()) < 60, `${await rows.count()} rows`);
    // What is empty room is as high as the rows that stand there.
    const after = await list.evaluate((box) => box.scrollHeight);
    assert.ok(Math.abs(after - height) < 4, `${height} became ${after}`);
    await other.keyboard.type('k0700');
    await other.waitForFunction(() => document.activeElement?.textContent?.includes('K0700'));
    const seen = await other.evaluate(() => {
      const { top, bottom } = document.activeElement!.getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight;
    });
    assert.ok(seen);
    await other.keyboard.press('Home');
    await other.waitForFunction(() => document.activeElement?.textContent?.includes('Tomás'));
    assert.deepEqual(await accessibilityProblems(other), []);
    await other.context().close();
  });
});
