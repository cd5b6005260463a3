import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Page } from 'playwright-core';
import { accessibilityProblems } from '../../react/test/browser.ts';
import { startMediaService } from '../../server/test/calls/media-service.ts';
import { fakeDevices, useBrowser } from '../../server/test/support/chromium.ts';
import { use } from '../../server/test/support/use.ts';
import { conversation, newChat, open, row, signIn } from './demo.ts';
import type { Visit } from './demo.ts';

/** The demo's calls in a real Chromium: ringing, talking, the screen, hanging up, what was missed; and the connection test. */

const service = use(
  () => startMediaService({}, 1),
  (s) => s.dispose(),
);
const browser = useBrowser([...fakeDevices, '--auto-select-tab-capture-source-by-title=Parley']);
const shots = process.env['SHOTS'];
const shoot = async ({ page }: Visit, name: string): Promise<void> => {
  if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}.png` });
};
const be = (name: string): Promise<Visit> => signIn(browser, service.url, name, { bypassCSP: true });
const tiles = 'document.querySelectorAll(".parley-tile video")';

it('a call rings, is answered, shows both people and a screen large, and is listed afterwards; so is a missed one', async () => {
  const [a, b] = [await be('Ada'), await be('Bob')];
  const [ada, bob] = [a.page, b.page];
  await newChat(ada, ['Bob']);
  await ada.getByRole('button', { name: 'Call with video' }).click();
  const ringing = bob.getByRole('alertdialog', { name: 'Ada calls' });
  await ringing.waitFor();
  await shoot(b, 'call-incoming');
  await ringing.getByRole('button', { name: 'Answer' }).click();
  for (const page of [ada, bob]) {
    await page.locator('.parley-call[data-state=connected]').waitFor();
    await page.waitForFunction(`${tiles}.length === 2`);
    await page.waitForFunction(`[...${tiles}].every((video) => video.videoWidth > 0)`);
  }
  await shoot(a, 'call-pair');
  await ada.getByRole('button', { name: 'Microphone', exact: true }).click();
  await bob.locator('.parley-tile[aria-label^="Ada, muted"]').waitFor();
  await ada.getByRole('button', { name: 'Share the screen' }).click();
  await bob.locator('.parley-screens .parley-tile[aria-label="Screen of Ada"]').waitFor();
  await bob.waitForFunction('document.querySelector(".parley-screens video")?.videoWidth > 0');
  const areas = await bob.evaluate(() =>
    ['.parley-screens .parley-tile', '.parley-people .parley-tile'].map((of) => {
      const { width, height } = document.querySelector(of)!.getBoundingClientRect();
      return width * height;
    }),
  );
  assert.ok(areas[0]! > 4 * areas[1]!, `the screen is large: ${areas.join(' against ')}`);
  await shoot(b, 'call-screen');
  await ada.getByRole('button', { name: 'Share the screen' }).click();
  await bob.locator('.parley-screens').waitFor({ state: 'detached' });
  await bob.getByRole('button', { name: 'Leave the call' }).click();
  await ada.locator('.parley-call').waitFor({ state: 'detached' });

  await ada.getByRole('button', { name: 'Call', exact: true }).click();
  await ringing.waitFor();
  await ada.locator('.parley-call[data-state=connected]').waitFor();
  await ada.getByRole('button', { name: 'Leave the call' }).click();
  await ringing.waitFor({ state: 'detached' });
  await conversation(bob, 'Ada').click();
  await bob.getByRole('button', { name: 'About this chat' }).click();
  const about = bob.getByRole('dialog', { name: 'Ada' });
  await about.getByText(/^Missed call by Ada/).waitFor();
  await about.getByText(/^Video call by Ada/).waitFor();
  for (const { page, problems } of [a, b]) {
    assert.deepEqual(problems, []);
    await page.context().close();
  }
});

it('who declined the call of a group joins it later from the head of the thread', async () => {
  const all = [await be('Fay'), await be('Gil'), await be('Hal')];
  const [fay, gil, hal] = all.map(({ page }) => page) as [Page, Page, Page];
  await newChat(fay, ['Gil', 'Hal']);
  await fay.getByRole('button', { name: 'Call', exact: true }).click();
  await gil.getByRole('alertdialog').getByRole('button', { name: 'Answer' }).click();
  await gil.locator('.parley-call[data-state=connected]').waitFor();
  await hal.getByRole('alertdialog').getByRole('button', { name: 'Decline' }).click();
  await hal.locator('.parley-conversation', { hasText: 'Fay' }).first().click();
  const join = hal.getByRole('button', { name: 'Join, 2 are in' });
  await join.waitFor();
  await shoot(all[2]!, 'call-join');
  await join.click();
  await hal.locator('.parley-call[data-state=connected] .parley-tile').nth(2).waitFor();
  await gil.getByRole('button', { name: 'Leave the call' }).click();
  await gil.locator('.parley-conversation', { hasText: 'Fay' }).first().click();
  await gil.getByRole('button', { name: 'Join, 2 are in' }).waitFor();
  for (const page of [fay, hal]) await page.getByRole('button', { name: 'Leave the call' }).click();
  await gil.locator('.parley-join').waitFor({ state: 'detached' });
  for (const { page, problems } of all) {
    assert.deepEqual(problems, []);
    await page.context().close();
  }
});

it('the bot answers calls, so that one person alone sees one', async () => {
  const { page } = await be('Cleo');
  await row(page, 'I am a bot').waitFor();
  await page.getByRole('button', { name: 'Call with video' }).click();
  await page.locator('.parley-tile[aria-label^="Pip"] video').waitFor();
  await page.waitForFunction(`[...${tiles}].every((video) => video.videoWidth > 0)`);
  await page.getByRole('button', { name: 'Leave the call' }).click();
  await page.locator('.parley-call').waitFor({ state: 'detached' });
  await page.context().close();
});

it('a video that the browser cannot decode is not taken for a camera that is off', async () => {
  // As in a browser that does not know VP8.
  const eve = await open(browser, service.url, { bypassCSP: true });
  await eve.page.addInitScript(
    `const send = WebSocket.prototype.send;
     WebSocket.prototype.send = function (text) {
       const frame = JSON.parse(text);
       const known = frame.d?.rtpCapabilities;
       if (known) known.codecs = known.codecs.filter((c) => c.kind === 'audio');
       send.call(this, JSON.stringify(frame));
     };`,
  );
  await eve.page.reload();
  await eve.page.getByLabel('Or somebody else').fill('Eve');
  await eve.page.getByRole('button', { name: 'Start' }).click();
  await row(eve.page, 'I am a bot').waitFor();
  const dan = await be('Dan');
  await newChat(dan.page, ['Eve']);
  await dan.page.getByRole('button', { name: 'Call with video' }).click();
  await eve.page.getByRole('alertdialog').getByRole('button', { name: 'Answer' }).click();
  const note = eve.page.getByText('This device cannot show this picture');
  await note.waitFor();
  assert.equal(await note.count(), 1, 'the own picture is there');
  await dan.page.getByRole('button', { name: 'Camera', exact: true }).click();
  await note.waitFor({ state: 'detached' });
  await dan.page.getByRole('button', { name: 'Leave the call' }).click();
  await Promise.all([eve, dan].map(({ page }) => page.context().close()));
});

it('the connection test says which ways work, and what to do about the others', async () => {
  const visit = await open(browser, service.url, { bypassCSP: true, path: '/connection-test' });
  const { page, problems } = visit;
  await page.locator('#route-udp[data-state=works]').waitFor();
  await page.locator('#route-tcp[data-state=works]').waitFor();
  await page.locator('#route-turn[data-state=not_configured]', { hasText: 'CHAT_TURN_URLS' }).waitFor();
  await page.getByRole('heading', { name: 'Calls work well from here.' }).waitFor();
  assert.match(await page.innerText('#route-udp .demo-finding'), /^Pictures were back after \d+ ms/);
  await shoot(visit, 'connection-test');
  assert.deepEqual(await accessibilityProblems(page), []);
  // As behind a firewall: packets go nowhere.
  await page.evaluate(`
    const real = RTCPeerConnection.prototype.setRemoteDescription;
    RTCPeerConnection.prototype.setRemoteDescription = function ({ type, sdp }) {
      return real.call(this, { type, sdp: sdp.replaceAll(/127.0.0.1 [0-9]+ typ host/g, '127.0.0.1 9 typ host') });
    };
  `);
  await page.click('#again');
  await page
    .locator('#route-udp[data-state=no_connection]', { hasText: 'Open UDP from CHAT_MEDIA_PORT' })
    .waitFor();
  await page.locator('#route-tcp[data-state=no_connection]', { hasText: 'Open TCP' }).waitFor();
  await page.getByRole('heading', { name: 'Calls do not work from here.' }).waitFor();
  assert.deepEqual(problems, []);
  await page.context().close();
});
