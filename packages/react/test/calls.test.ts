import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { accessibilityProblems, useBrowser, visit } from './browser.ts';

/** The parts of calls in Chromium. The client's own tests make real calls; here the call is a stand-in. */
const shots = process.env['SHOTS'];
const shoot = async (page: Page, name: string): Promise<void> => {
  if (shots === undefined) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`) });
};

describe('calls of the kit', () => {
  const browser = useBrowser();

  it('ring, are answered by the keyboard, show a pair, a grid and a screen, and end', async () => {
    const { page, problems } = await visit(
      browser,
      { url: 'http://kit.test', token: '' },
      { entry: 'calls.tsx' },
    );
    const card = page.getByRole('alertdialog', { name: 'Ines Rocha calls' });
    await card.waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await shoot(page, 'call-incoming');
    await page.keyboard.press('Escape');
    await page.locator('.parley-incoming[data-small]').waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.parley-call[data-layout=pair]').waitFor();
    await card.waitFor({ state: 'detached' });

    const microphone = page.getByRole('button', { name: 'Microphone', exact: true });
    await microphone.click();
    await page.locator('.parley-tile[data-self][aria-label="You, muted, camera off"]').waitFor();
    const self = page.locator('.parley-tile[data-self]');
    await self.focus();
    await page.keyboard.press('ArrowUp');
    await self.and(page.locator('[data-block=start][data-inline=end]')).waitFor();
    await page.keyboard.down(' ');
    await page.locator('.parley-tile[data-self][aria-label="You, camera off"]').waitFor();
    await page.keyboard.up(' ');
    await page.locator('.parley-tile[data-self][aria-label="You, muted, camera off"]').waitFor();
    await self.hover();
    await page.getByRole('button', { name: 'Hide yourself' }).click();
    await self.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Show yourself' }).click();
    await self.waitFor();
    await microphone.focus();
    await page.keyboard.press('m');
    await page.locator('.parley-tile[data-self][aria-label="You, camera off"]').waitFor();
    await page.getByRole('button', { name: 'Choose: Microphone, Speaker' }).click();
    await page.getByRole('radio', { name: 'Headset' }).check();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });

    await page.evaluate(`(() => {
      const { change, person, track } = kit;
      const seen = (id, color, more) => person(id, { videoTrack: track(color), videoMuted: false, ...more });
      change({ participants: [seen('ines', '#2a5a49', { speaking: true }), seen('sami', '#5b4032'), person('priya', { audioMuted: true }), seen('nora', '#3c3d2c')] });
    })()`);
    await page.locator('.parley-call[data-layout=grid] .parley-tile').nth(3).waitFor();
    await page.locator('.parley-tile[data-speaking][aria-label="Ines Rocha, speaking"]').waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await shoot(page, 'call-grid');

    await page.evaluate(`kit.change({ participants: [
      kit.person('ines', { screenTrack: kit.track('#dfe6dd') }), kit.person('sami'), kit.person('nora'),
    ] })`);
    const screen = page.locator('.parley-tile[data-kind=screen]');
    await screen.locator('video').waitFor();
    const areas = await page.evaluate(() =>
      ['[data-kind=screen]', '[data-kind=video]'].map((kind) => {
        const { width, height } = document.querySelector(`.parley-tile${kind}`)!.getBoundingClientRect();
        return width * height;
      }),
    );
    assert.ok(areas[0]! > 4 * areas[1]!, `the screen is large: ${areas.join(', ')}`);
    await shoot(page, 'call-screen');
    await page.setViewportSize({ width: 390, height: 844 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await shoot(page, 'call-screen-phone');
    await page.getByRole('button', { name: 'Leave the call' }).click();
    await page.locator('.parley-call').waitFor({ state: 'detached' });
    const did = await page.evaluate(() => (globalThis as unknown as { kit: { did: string[] } }).kit.did);
    const talked = ['mute', 'unmute', 'mute', 'unmute'];
    assert.deepEqual(did, ['accept {}', ...talked, 'setMicrophone "m2"', 'leave']);
    assert.deepEqual(problems, []);
    await page.context().close();
  });
});
