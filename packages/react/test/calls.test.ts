import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { accessibilityProblems, visit } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';

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

  it('one joins from the head of the thread; what cannot be had says so', async () => {
    const { page, problems } = await visit(
      browser,
      { url: 'http://kit.test', token: '', head: true },
      { entry: 'calls.tsx' },
    );
    await page.getByRole('alertdialog').waitFor();
    const join = page.locator('.parley-thread-head .parley-join');
    await page.evaluate(`kit.goesOn(['ines', 'sami'])`);
    assert.equal(await join.count(), 0, 'it rings here, and has its own buttons');
    // Whoever let it ring out may still come.
    await page.evaluate(`kit.change({ state: 'ended', endedHere: 'missed' })`);
    await page.locator('.parley-incoming[data-gone]', { hasText: 'Missed call' }).waitFor();
    await join.getByText('Join, 2 are in').waitFor();
    await page.evaluate(`kit.goesOn(['ines', 'sami', 'priya'])`);
    await join.getByText('Join, 3 are in').waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await shoot(page, 'call-join');
    await page.evaluate(`kit.refuse('media_device_not_found')`);
    await join.click();
    await page.getByRole('alert').getByText('Microphone: not found').waitFor();
    await page.evaluate(`kit.refuse(null)`);
    await join.click();
    await page.locator('.parley-call').waitFor();
    await join.waitFor({ state: 'detached' });
    await page.evaluate(`kit.change({ state: 'ended' }), kit.goesOn([])`);
    await page.locator('.parley-call').waitFor({ state: 'detached' });
    await join.waitFor({ state: 'detached' });
    const did = await page.evaluate(() => (globalThis as unknown as { kit: { did: string[] } }).kit.did);
    assert.deepEqual(did, ['join call_1', 'join call_1']);
    assert.deepEqual(problems, []);
    await page.context().close();
  });

  it('who declines here is not told that another device did', async () => {
    const { page } = await visit(browser, { url: 'http://kit.test', token: '' }, { entry: 'calls.tsx' });
    await page.getByRole('alertdialog').getByRole('button', { name: 'Decline' }).click();
    await page.getByRole('alertdialog').waitFor({ state: 'detached' });
    assert.equal(await page.locator('.parley-incoming').count(), 0);
    assert.equal(await page.locator('.parley-announcer').innerText(), '');
    await page.context().close();
  });

  it('the card stands where the page wants, with its buttons; the stage has a small window, its controls at any side, and says what is weak', async () => {
    const { page, problems } = await visit(
      browser,
      { url: 'http://kit.test', token: '' },
      { entry: 'calls.tsx' },
    );
    const card = page.getByRole('alertdialog');
    await card.waitFor();
    await page.evaluate(`kit.tune({ incoming: { placement: 'top-end', buttons: kit.parts.buttons } })`);
    await card.and(page.locator('[data-placement=top-end]')).waitFor();
    const box = (await card.boundingBox())!;
    assert.ok(box.y <= 40 && box.x + box.width > 1_200, JSON.stringify(box));
    assert.deepEqual(await card.getByRole('button').allInnerTexts(), ['Decline', 'Answer', 'Later']);
    await card.getByRole('button', { name: 'Later' }).click();
    await card.getByRole('button', { name: 'Answer' }).click();

    const stage = page.locator('.parley-call');
    await stage.waitFor();
    const place = async (of: string) => (await page.locator(of).boundingBox())!;
    for (const side of ['top', 'start', 'end', 'bottom'] as const) {
      await page.evaluate(`kit.tune({ controlsAt: '${side}', slots: kit.parts })`);
      await stage.and(page.locator(`[data-controls=${side}]`)).waitFor();
      const [tiles, controls] = [await place('.parley-tiles'), await place('.parley-call-controls')];
      const fits = {
        top: controls.y + controls.height <= tiles.y + 1,
        bottom: tiles.y + tiles.height <= controls.y + 1,
        start: controls.x + controls.width <= tiles.x + 1,
        end: tiles.x + tiles.width <= controls.x + 1,
      };
      assert.ok(fits[side], `${side}: ${JSON.stringify([tiles, controls])}`);
    }
    const bar = page.getByRole('toolbar', { name: 'Call controls' });
    const names = await bar
      .getByRole('button')
      .evaluateAll((all) => all.map((one) => one.ariaLabel ?? one.textContent));
    assert.deepEqual(names, ['Leave the call', 'Raise a hand', 'Microphone', 'Choose: Microphone, Speaker']);
    const self = page.locator('.parley-tile[data-self]');
    await self.and(page.locator('[data-block=start][data-inline=end]')).waitFor();
    assert.equal((await self.boundingBox())!.width, 120);
    await page.evaluate(`kit.tune({})`);

    await page.evaluate(`kit.change({ network: { level: 2, reason: null } })`);
    await page.locator('.parley-tile[data-network=weak][aria-label$="Weak network"]').waitFor();
    await page.evaluate(
      `kit.change({ participants: [kit.person('ines'), kit.person('sami'), kit.person('nora')] })`,
    );
    await page.locator('.parley-tile[aria-label^=Sami]').hover();
    await page.getByRole('button', { name: 'Pin Sami Koskinen' }).click();
    await page.locator('.parley-tile[data-pinned][aria-label$=", pinned"]').waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);

    await page.getByRole('button', { name: 'Make the call small' }).click();
    await stage.and(page.locator('[data-small]')).waitFor();
    const window = (await stage.boundingBox())!;
    assert.deepEqual([window.width, window.x + window.width, window.y + window.height], [320, 1_264, 784]);
    assert.equal(await page.locator('.parley-tile:visible').count(), 1);
    assert.deepEqual(await accessibilityProblems(page), []);
    await shoot(page, 'call-small');
    await page.getByRole('button', { name: 'Make the call large' }).click();
    await stage.and(page.locator('[data-small]')).waitFor({ state: 'detached' });

    // The browser asks for the camera, and the button waits.
    await page.evaluate(`kit.holdCamera()`);
    const camera = page.getByRole('button', { name: 'Camera', exact: true });
    await camera.click();
    await camera.and(page.locator('[aria-busy=true]')).waitFor();
    await page.evaluate(`kit.answerCamera()`);
    await camera.and(page.locator('[aria-busy=true]')).waitFor({ state: 'detached' });
    assert.deepEqual(problems, []);
    await page.context().close();
  });
});
