import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { accessibilityProblems } from '../../react/test/browser.ts';
import { fakeDevices, useBrowser } from '../../server/test/support/chromium.ts';
import { startService } from '../../server/test/support/service.ts';
import { use } from '../../server/test/support/use.ts';
import { conversation, field, newChat, open, row, say, signIn } from './demo.ts';
import type { Visit } from './demo.ts';

/** The rest of the demo. SHOTS=folder keeps pictures. */

const shots = process.env['SHOTS'];
const shoot = async (page: Page, name: string): Promise<void> => {
  if (shots === undefined) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`) });
};
const leave = async (...visits: Visit[]): Promise<void> => {
  for (const { page, problems } of visits) {
    assert.deepEqual(problems, []);
    await page.context().close();
  }
};
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==';

describe('the demo', () => {
  const service = use(
    () => startService(),
    (s) => s.dispose(),
  );
  const browser = useBrowser(fakeDevices);
  const be = (name: string, options?: Parameters<typeof signIn>[3]): Promise<Visit> =>
    signIn(browser, service.url, name, options);

  it('whoever comes alone finds conversations, and a bot that reads, types, answers and sends a picture', async () => {
    const a = await be('Ana');
    await conversation(a.page, 'Tomás Barreiro').locator('.parley-unread').waitFor();
    await conversation(a.page, 'Packing table').locator('.parley-unread', { hasText: '2' }).waitFor();
    await row(a.page, 'I am a bot').waitFor();
    await conversation(a.page, 'Pip').locator('.parley-presence').waitFor();
    await say(a.page, 'A picture, if you have one');
    await a.page.locator('.parley-typing', { hasText: 'Pip is typing' }).waitFor();
    await row(a.page, 'A picture, if').locator('.parley-receipt[data-state=read]').waitFor();
    await row(a.page, 'Here is one.').locator('img').waitFor();
    await say(a.page, 'quote me');
    await a.page.locator('.parley-message:not([data-own]) .parley-quote', { hasText: 'quote me' }).waitFor();
    await conversation(a.page, 'Tomás Barreiro').click();
    await row(a.page, 'Good morning!').locator('img').waitFor();
    await row(a.page, 'Found it.').locator('.parley-quote', { hasText: 'Sorry about that' }).waitFor();
    await leave(a);
  });

  it('sdk#outbox: one goes offline, sees what waits, comes back, and the others get it once and in order', async () => {
    const [a, b] = [await be('Dan'), await be('Eve')];
    await newChat(a.page, ['Eve']);
    await say(a.page, 'one');
    await conversation(b.page, 'Dan').click();
    await row(b.page, 'one').waitFor();
    await a.page.getByRole('button', { name: 'Go offline' }).click();
    await say(a.page, 'two, while away');
    await say(a.page, 'three, while away');
    await a.page.locator('.parley-outbox', { hasText: '2 messages wait' }).waitFor();
    await a.page.locator('.parley-connection[data-state=lost]', { hasText: '2 messages wait' }).waitFor();
    await a.page.locator('.parley-frame[data-way=none]').first().waitFor();
    await shoot(a.page, 'offline');
    await say(b.page, 'meanwhile');
    await a.page.getByRole('button', { name: 'Go online' }).click();
    await a.page.locator('.parley-outbox').waitFor({ state: 'detached' });
    await row(b.page, 'three, while away').waitFor();
    await row(a.page, 'meanwhile').waitFor();
    await row(a.page, 'three, while away').locator('.parley-receipt[data-state=read]').waitFor();
    const texts = (page: Page) => page.locator('.parley-bubble').allInnerTexts();
    assert.deepEqual(await texts(a.page), ['one', 'meanwhile', 'two, while away', 'three, while away']);
    assert.deepEqual(await texts(b.page), await texts(a.page));
    await leave(a, b);
  });

  it('a message is pinned, listed and gone to; a voice note is recorded, sent and played', async () => {
    const options = { permissions: ['microphone'] };
    const [a, b] = [await be('Pia', options), await be('Quin')];
    await newChat(a.page, ['Quin']);
    await say(a.page, 'The address is 5 Mill Lane');
    await say(a.page, 'See you there');
    await conversation(b.page, 'Pia').click();
    await row(a.page, 'The address').hover();
    await row(a.page, 'The address').getByRole('button', { name: 'Pin' }).click();
    await row(a.page, 'The address').getByText('Pinned by You').waitFor();
    await row(b.page, 'The address').getByText('Pinned by Pia').waitFor();
    await b.page.getByRole('button', { name: 'Pinned messages' }).click();
    const list = b.page.getByRole('dialog', { name: 'Pinned messages' });
    await list.getByText('The address is 5 Mill Lane').waitFor();
    await shoot(b.page, 'pins');
    assert.deepEqual(await accessibilityProblems(b.page), []);
    await list.getByText('The address is 5 Mill Lane').click();
    await list.waitFor({ state: 'detached' });
    await row(b.page, 'The address').and(b.page.locator('[data-highlight]')).waitFor();
    await b.page.getByRole('button', { name: 'Pinned messages' }).click();
    await list.getByRole('button', { name: 'Unpin' }).click();
    await list.getByText('Nothing is pinned yet.').waitFor();
    await row(a.page, 'The address').getByText('Pinned by You').waitFor({ state: 'detached' });
    await list.getByRole('button', { name: 'Close' }).click();

    await a.page.getByRole('button', { name: 'Record a voice note' }).click();
    await a.page.getByRole('button', { name: 'Send the voice note' }).waitFor();
    await a.page.waitForTimeout(1_500); // So long is the recording.
    await a.page.getByRole('button', { name: 'Send the voice note' }).click();
    const note = b.page.getByRole('group', { name: 'Voice note' });
    await note.getByText(/^0:0\d$/).waitFor();
    await shoot(b.page, 'voice-note');
    assert.deepEqual(await accessibilityProblems(b.page), []);
    await note.getByRole('button', { name: 'Play' }).click();
    // It may have ended before anybody looks.
    await b.page.waitForFunction(
      () => (document.querySelector('.parley-voice audio') as HTMLAudioElement).played.length > 0,
    );
    await note.getByRole('button', { name: 'Play' }).waitFor();
    await leave(a, b);
  });

  it('a group is made with people who never came; members are searched; an error leaves the dialog open', async () => {
    const a = await be('Gus');
    await row(a.page, 'I am a bot').waitFor();
    await newChat(a.page, ['Hal', 'Ivy']);
    await a.page.locator('.parley-thread-head', { hasText: 'Gus, Hal, Ivy' }).waitFor();
    await say(a.page, 'Into the new group');
    await a.page.getByRole('button', { name: 'Members' }).click();
    const sheet = a.page.getByRole('dialog', { name: 'Gus, Hal, Ivy' });
    await sheet.getByRole('listitem').nth(2).waitFor();
    await sheet.getByRole('searchbox', { name: 'Search members' }).fill('iv');
    await sheet.getByText('Gus (you)').waitFor({ state: 'detached' });
    assert.deepEqual(await sheet.getByRole('listitem').count(), 1);
    await sheet.getByRole('button', { name: 'Close' }).click();
    await sheet.waitFor({ state: 'detached' });

    const refused = {
      status: 503,
      contentType: 'application/json',
      body: '{"error":{"code":"forbidden","message":"No."}}',
    };
    await a.page.route('**/v1/conversations', (route) =>
      route.request().method() === 'POST' ? route.fulfill(refused) : route.continue(),
    );
    await a.page.getByRole('button', { name: 'New chat' }).click();
    const dialog = a.page.getByRole('dialog', { name: 'New chat' });
    await dialog.getByRole('checkbox', { name: 'Mei Okafor' }).check();
    await dialog.getByRole('button', { name: 'Start the chat' }).click();
    await dialog.getByText('Not made: No.').waitFor();
    await leave(a);
  });

  it('uploads#ticket: files have previews and arrive; what is deleted may be taken back for a while', async () => {
    const [a, b] = [await be('Jan'), await be('Kim')];
    await newChat(a.page, ['Kim']);
    await a.page.locator('.parley-composer input[type=file]').setInputFiles([
      { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from(pixel, 'base64') },
      { name: 'elbow.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.4 '.repeat(900)) },
    ]);
    await a.page.locator('.parley-chip img').waitFor();
    await say(a.page, 'Two files');
    await conversation(b.page, 'Jan').click();
    await row(b.page, 'Two files').getByRole('button', { name: 'Download elbow.pdf' }).waitFor();
    const image = row(b.page, 'Two files').locator('img');
    assert.equal(
      await image.evaluate(async (img: HTMLImageElement) => (await img.decode(), img.naturalWidth)),
      1,
    );
    const remove = async (): Promise<void> => {
      await row(a.page, 'Two files').focus();
      await a.page.keyboard.press('Delete');
    };
    await remove();
    await a.page.getByRole('button', { name: 'Undo' }).click();
    await row(a.page, 'Two files').waitFor();
    await remove();
    await b.page.locator('.parley-message[data-state=deleted]').waitFor();
    await leave(a, b);
  });

  it('polls#votes: one asks, the others vote with the keyboard, the results are bars, and the author closes', async () => {
    const [a, b] = [await be('Ida'), await be('Kurt')];
    await newChat(a.page, ['Kurt']);
    await a.page.getByRole('button', { name: 'New poll' }).click();
    const form = a.page.getByRole('dialog', { name: 'New poll' });
    await form.getByLabel('Question').fill('When do we load?');
    await form.getByLabel('Option 1').fill('Today');
    await form.getByLabel('Option 2').fill('Tomorrow');
    assert.deepEqual(await accessibilityProblems(a.page), []);
    await shoot(a.page, 'poll-form');
    await form.getByLabel('Option 2').press('Enter');
    await conversation(b.page, 'Ida').click();
    const [asked, seen] = [a, b].map(({ page }) => page.getByRole('group', { name: 'When do we load?' }));
    const today = seen!.getByRole('radio', { name: 'Today' });
    await today.focus();
    await today.press(' ');
    await asked!.getByRole('radio', { name: 'Today, 1 vote' }).waitFor();
    await today.press('ArrowDown');
    await asked!.getByRole('radio', { name: 'Tomorrow, 1 vote' }).click();
    await seen!.getByRole('radio', { name: 'Tomorrow, 2 votes' }).and(b.page.locator(':checked')).waitFor();
    await asked!.getByRole('radio', { name: 'Tomorrow, 2 votes' }).waitFor();
    assert.deepEqual(await accessibilityProblems(a.page), []);
    await shoot(a.page, 'poll');
    await asked!.getByRole('button', { name: 'Close the poll' }).click();
    await seen!.getByText('Closed').waitFor();
    assert.ok(await today.isDisabled());
    await leave(a, b);
  });

  it('mentions#field, reactions#set: a name is completed by the keyboard and has a badge of its own; one reacts and joins in by a click', async () => {
    const [a, b] = [await be('Uma'), await be('Vic')];
    await newChat(a.page, ['Vic', 'Wes']);
    await field(a.page).pressSequentially('The cake is yours, @v');
    const people = a.page.getByRole('listbox', { name: 'People to mention' });
    await people.getByRole('option', { name: 'Vic', selected: true }).waitFor();
    assert.equal(await people.getByRole('option').count(), 1, 'whose name begins so');
    assert.deepEqual(await accessibilityProblems(a.page), []);
    await shoot(a.page, 'mention');
    await field(a.page).press('Enter');
    assert.equal(await field(a.page).inputValue(), 'The cake is yours, @Vic ');
    await people.waitFor({ state: 'detached' });
    await field(a.page).press('Enter');
    await conversation(b.page, 'Uma').locator('.parley-unread', { hasText: 'Mentions you' }).waitFor();
    await conversation(b.page, 'Uma').click();
    const [said, seen] = [row(a.page, 'The cake'), row(b.page, 'The cake')];
    await seen.locator('.parley-mention[data-me]', { hasText: '@Vic' }).waitFor();
    assert.equal(await said.locator('.parley-mention[data-me]').count(), 0);

    await seen.hover();
    await seen.getByRole('button', { name: 'React with 🎉' }).click();
    await said.getByRole('button', { name: '🎉, 1' }).and(a.page.locator('[aria-pressed=false]')).click();
    const both = seen.getByRole('button', { name: '🎉, 2' });
    await both.and(b.page.locator('[aria-pressed=true]')).waitFor();
    assert.deepEqual(await accessibilityProblems(b.page), []);
    await shoot(b.page, 'reactions');
    await both.click();
    await said.getByRole('button', { name: '🎉, 1' }).and(a.page.locator('[aria-pressed=true]')).waitFor();
    await leave(a, b);
  });

  it('two people side by side: each has a network, and the server numbers what both say', async () => {
    const a = await open(browser, service.url);
    await a.page.getByRole('button', { name: /Nora Lind/ }).click();
    await row(a.page, 'I am a bot').waitFor();
    await a.page.getByRole('button', { name: 'Two people' }).click();
    const [nora, tomas] = [a.page.locator('[data-voice=a]'), a.page.locator('[data-voice=b]')];
    const write = async (side: typeof nora, text: string): Promise<void> => {
      await side.locator('textarea').fill(text);
      await side.locator('textarea').press('Enter');
    };
    await tomas.locator('.parley-message', { hasText: 'Good morning!' }).waitFor();
    await nora.getByText('Tomás is online').waitFor();
    await write(tomas, 'Any news of the screw?');
    await nora.locator('.parley-message', { hasText: 'Any news' }).waitFor();
    await nora.locator('textarea').pressSequentially('It is');
    await tomas.locator('.parley-typing', { hasText: 'Nora Lind is typing' }).waitFor();
    await nora.getByRole('button', { name: 'Go offline' }).click();
    await write(nora, 'It is in the post.');
    await nora.locator('.parley-receipt[data-state=waiting]').waitFor();
    await nora.getByRole('button', { name: 'Go online' }).click();
    await tomas.locator('.parley-message', { hasText: 'in the post' }).waitFor();
    await a.page.locator('.parley-sequence g[data-from="0"][data-heard]').first().waitFor();
    await a.page.locator('.parley-sequence g[data-from="1"][data-heard]').first().waitFor();
    for (const theme of ['light', 'dark']) {
      if (theme === 'dark') await a.page.getByRole('button', { name: 'Light or dark' }).click();
      await a.page.evaluate(() =>
        Promise.allSettled(document.getAnimations().map(({ finished }) => finished)),
      );
      await shoot(a.page, `two-people-${theme}`);
      assert.deepEqual(await accessibilityProblems(a.page), [], theme);
    }
    await leave(a);
  });

  it('light and dark, wide and on a phone: axe finds nothing, nothing sticks out, nothing jumps', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const a = await open(browser, service.url, { colorScheme });
      await a.page.evaluate(() => {
        const sums = { shift: 0 };
        Object.assign(globalThis, { sums });
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries() as (PerformanceEntry & {
            value: number;
            hadRecentInput: boolean;
          })[])
            if (!entry.hadRecentInput) sums.shift += entry.value;
        }).observe({ type: 'layout-shift', buffered: true });
      });
      await shoot(a.page, `sign-in-${colorScheme}`);
      assert.deepEqual(await accessibilityProblems(a.page), [], `sign-in, ${colorScheme}`);
      await a.page.getByRole('button', { name: /Mei Okafor/ }).click();
      await row(a.page, 'I am a bot').waitFor();
      await conversation(a.page, 'Tomás').click();
      await row(a.page, 'Good morning!').locator('img').waitFor();
      await shoot(a.page, `one-${colorScheme}`);
      assert.deepEqual(await accessibilityProblems(a.page), [], `one person, ${colorScheme}`);
      await a.page.getByRole('tab', { name: 'Code' }).click();
      await shoot(a.page, `code-${colorScheme}`);
      assert.deepEqual(await accessibilityProblems(a.page), [], `code, ${colorScheme}`);
      const shift = await a.page.evaluate(
        () => (globalThis as unknown as { sums: { shift: number } }).sums.shift,
      );
      assert.ok(shift < 0.1, `layout shift ${shift}`);

      await a.page.setViewportSize({ width: 390, height: 844 });
      const check = async (what: string): Promise<void> => {
        assert.ok(
          await a.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
          `${what} fits`,
        );
        await shoot(a.page, `phone-${what}-${colorScheme}`);
        assert.deepEqual(await accessibilityProblems(a.page), [], `${what}, ${colorScheme}`);
      };
      await field(a.page).waitFor();
      await check('thread');
      await a.page.getByRole('button', { name: 'Back to the list' }).click();
      await a.page.locator('.parley-list').waitFor();
      await check('list');
      for (const tab of ['Wire', 'Code', 'You']) {
        await a.page.locator('.demo-bottom').getByRole('button', { name: tab }).click();
        await check(tab.toLowerCase());
      }
      await leave(a);
    }
  });
});
