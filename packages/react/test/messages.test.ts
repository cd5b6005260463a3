import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { use } from '../../server/test/support/use.ts';
import { accessibilityProblems, visit } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';

interface Editor {
  edit(conversationId: string, seq: number, change: object): void;
}

/** What the lists of the kit say and do, in Chromium with a service in the page. */
describe('messages and conversations of the kit', () => {
  const browser = useBrowser();
  const open = async (options: object, entry = 'story.tsx'): Promise<Page> =>
    (await visit(browser, { url: 'http://kit.test', token: '', ...options }, { entry })).page;
  const enter = async (page: Page, name = 'Tomás Barreiro'): Promise<Page> => {
    await page.locator('.parley-conversation', { hasText: name }).click();
    await page.locator('.parley-message').first().waitFor();
    return page;
  };
  const page = use(
    async () => enter(await open({ features: ['reactions'], tuned: true })),
    (one: Page) => one.context().close(),
  );
  const row = (text: string, of = page) => of.locator('.parley-message', { hasText: text });
  const close = (one: Page): Promise<void> => one.context().close();

  it('the name of a message says whom it answers; what was changed says so', async () => {
    const answer = row('Is this the right one?');
    assert.match((await answer.getAttribute('aria-label'))!, /m4-kit, in reply to You$/);
    assert.doesNotMatch((await row('It says brass.').getAttribute('aria-label'))!, /in reply/);
    assert.equal(await row('It says brass.').getAttribute('data-edited'), null);
    const version = { version: 2, editedAt: '2026-11-18T09:48:00.000Z' };
    await page.evaluate((more) => {
      const { story } = globalThis as unknown as { story: Editor };
      story.edit('conv_tomas', 4, { text: 'It says steel.', ...more });
    }, version);
    await row('It says steel.').and(page.locator('[data-edited=true]')).waitFor();
  });

  it('a message that is still on its way after a second says so', async () => {
    await page.evaluate('story.silent = true');
    await page.locator('.parley-composer textarea').fill('Slow');
    await page.locator('.parley-composer textarea').press('Enter');
    const bubble = row('Slow').and(page.locator('[data-state=pending]')).locator('.parley-bubble');
    await bubble.waitFor();
    const outlined = (ms: number) =>
      bubble.evaluate((element, at) => {
        const [animation] = element.getAnimations();
        animation!.pause();
        animation!.currentTime = at;
        return getComputedStyle(element).outlineStyle;
      }, ms);
    assert.equal(await outlined(999), 'none');
    assert.equal(await outlined(1_000), 'dashed');
  });

  it('days and what nobody wrote stand as the page wants; the keys go through both', async () => {
    assert.equal(await page.locator('.parley-day [data-mine="2026-11-18"]').innerText(), 'TODAY');
    await page.evaluate(() => {
      interface Told {
        arrive(id: string): void;
        stories: Map<string, { length: number; line(seq: number): object }>;
      }
      const { story } = globalThis as unknown as { story: Told };
      const one = story.stories.get('conv_packing')!;
      const texts = [{}, { text: 'Ines joined', metadata: { kind: 'joined' } }, { text: 'We moved' }];
      const before = one.line.bind(one);
      one.line = (seq) =>
        seq === 1
          ? before(seq)
          : { senderId: null, createdAt: '2026-11-18T09:47:00.000Z', ...texts[seq - 1] };
      for (let i = 1; i < texts.length; i++) story.arrive('conv_packing');
    });
    await page.locator('.parley-conversation', { hasText: 'Packing table' }).click();
    const system = page.locator('.parley-system', { hasText: '→ Ines joined' });
    await system.waitFor();
    await row('We moved').waitFor();
    await row('We moved').focus();
    await page.keyboard.press('ArrowUp');
    assert.ok(await system.evaluate((element) => element === document.activeElement));
    assert.deepEqual(await accessibilityProblems(page), []);
  });

  it('reactions: offered as the page wants, few at first, with names; + opens all emoji', async () => {
    await page.locator('.parley-conversation', { hasText: 'Jonas Aalto' }).click();
    const message = row('Refund is on its way');
    for (const [userId, emoji] of [
      ['jonas', '👍'],
      ['nora', '👍'],
      ['mei', '🎉'],
      ['mei', '🐝'],
      ['ada', '🐢'],
    ])
      await page.evaluate(`story.react('msg_conv_jonas_1', '${userId}', '${emoji}')`);
    const bar = message.locator('.parley-reactions');
    await bar.getByRole('button', { name: '+2' }).waitFor();
    assert.equal(await bar.locator('[aria-pressed]').count(), 2);
    assert.equal(await bar.getByRole('button', { name: '👍, 2' }).getAttribute('title'), null);
    await message.hover();
    await bar.locator('[title="Jonas Aalto, You"]').waitFor();
    await bar.getByRole('button', { name: 'React with 🦆' }).waitFor();
    assert.equal(await bar.getByRole('button', { name: /^React with/ }).count(), 1);
    await bar.getByRole('button', { name: '+2' }).click();
    await bar.getByRole('button', { name: '🐢, 1' }).waitFor();
    assert.equal(await bar.getByRole('button', { name: /^\+/ }).count(), 0);

    await page.locator('.parley-composer textarea').focus();
    await message.focus();
    await page.keyboard.press('+');
    const picker = page.getByRole('dialog', { name: 'Emoji' });
    await picker.getByRole('grid').waitFor();
    await page.waitForFunction(() => document.activeElement?.textContent === '😀');
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.keyboard.type('rocket');
    await picker.getByRole('gridcell').nth(1).waitFor({ state: 'detached' });
    await page.keyboard.press('Enter');
    await picker.waitFor({ state: 'detached' });
    assert.ok(await message.evaluate((element) => element === document.activeElement), 'the focus is back');
    await bar.getByRole('button', { name: '🚀, 1' }).and(page.locator('[aria-pressed=true]')).waitFor();
    await page.keyboard.press('+');
    await picker.waitFor();
    await page.keyboard.press('Escape');
    await picker.waitFor({ state: 'detached' });
  });

  it('the composer grows to its rows and takes the files that it names; two who type are several', async () => {
    const field = page.locator('.parley-composer textarea');
    const height = () => field.evaluate((element) => element.clientHeight);
    const lines = (n: number) => field.fill(Array.from({ length: n }, (_, i) => `Line ${i}`).join('\n'));
    await lines(3);
    const three = await height();
    await lines(2);
    assert.ok((await height()) < three);
    await lines(8);
    assert.equal(await height(), three);
    await field.fill('');

    assert.equal(
      await page.locator('.parley-composer input[type=file]').getAttribute('accept'),
      'image/*, .PDF',
    );
    await field.evaluate((element) => {
      const data = new DataTransfer();
      for (const [name, type] of [
        ['a.png', 'image/png'],
        ['b.pdf', ''],
        ['c.txt', 'text/plain'],
      ] as const)
        data.items.add(new File(['x'], name, { type }));
      element.dispatchEvent(new ClipboardEvent('paste', { bubbles: true, clipboardData: data }));
    });
    await page.locator('.parley-announcer', { hasText: 'Files of this kind cannot be sent here.' }).waitFor();
    assert.deepEqual(await page.locator('.parley-chip > bdi').allInnerTexts(), ['a.png', 'b.pdf']);

    await page.locator('.parley-conversation', { hasText: 'Packing table' }).click();
    const typing = page.locator('.parley-typing');
    await page.evaluate(`story.typing('conv_packing', 'ines', 'start')`);
    await typing.getByText('Ines Rocha is typing').waitFor();
    await page.evaluate(`story.typing('conv_packing', 'sami', 'start')`);
    await typing.getByText('Several people are typing').waitFor();
  });

  it('PageUp and PageDown go ten messages; what is unavailable says so, and comes when one asks again', async () => {
    const long = await enter(await open({ length: 120 }, 'long-thread.tsx'), 'Packing table');
    const at = () =>
      long.evaluate(() => Number(/, [\d:]+: (\d+):/.exec(document.activeElement!.ariaLabel!)![1]));
    await long.evaluate(`page.server.failing = 'history_unavailable'`);
    const last = long.locator('.parley-message').last();
    await last.and(long.locator('[aria-label*=": 120:"]')).waitFor();
    await last.focus();
    const places: number[] = [];
    for (const key of ['PageUp', 'PageUp', 'PageDown', 'ArrowUp']) {
      await long.keyboard.press(key);
      places.push(await at());
    }
    assert.deepEqual(places, [110, 100, 110, 109]);

    await long.locator('.parley-scroll').evaluate((box) => void (box.scrollTop = 0));
    const problem = long.locator('.parley-scroll > [role=alert]');
    await problem.getByText('Older messages are not available right now.').waitFor();
    assert.equal(await long.locator('[aria-label*=": 70:"]').count(), 0);
    await long.evaluate('page.server.failing = null');
    await problem.getByRole('button', { name: 'Try now' }).click();
    await long.locator('.parley-message[aria-label*=": 70:"]').waitFor();
    await problem.waitFor({ state: 'detached' });
    await close(long);
  });

  it('the list says that the service refused, and that more could not be loaded; both can be tried again', async () => {
    const other = await open({ refused: 4003 });
    const list = other.getByRole('navigation');
    await list.getByRole('alert').getByText('The service refused this session').waitFor();
    assert.equal(await list.getByText('No conversations yet').count(), 0);
    assert.deepEqual(await accessibilityProblems(other), []);
    await other.evaluate(`Object.assign(story, { refused: null, cursor: 'more', failing: 'forbidden' })`);
    await list.getByRole('button', { name: 'Try now' }).click();
    await list.getByRole('button', { name: 'Show more' }).click();
    await list.getByRole('alert').getByText('More could not be loaded.').waitFor();
    await other.evaluate('story.failing = null');
    await list.getByRole('button', { name: 'Try now' }).click();
    await list.getByRole('alert').waitFor({ state: 'detached' });
    // The problem goes with the press, and the button once the rest is there.
    await list.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' });
    await close(other);
  });
});
