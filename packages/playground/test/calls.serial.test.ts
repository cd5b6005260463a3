import assert from 'node:assert/strict';
import { it } from 'node:test';
import { chromium } from 'playwright-core';
import type { Page } from 'playwright-core';
import { startMediaService } from '../../server/test/calls/media-service.ts';
import { use } from '../../server/test/support/use.ts';

/** The playground's calls in a real Chromium: ringing, talking, hanging up, and what was missed. */

const service = use(
  () => startMediaService({}, 1),
  (s) => s.dispose(),
);
const browser = use(
  () =>
    chromium.launch({
      executablePath: '/usr/bin/chromium',
      args: [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--use-fake-ui-for-media-stream',
        '--use-fake-device-for-media-stream=fps=5',
        '--auto-select-tab-capture-source-by-title=Parley',
      ],
    }),
  (b) => b.close(),
);

async function visit(name: string, script = ''): Promise<Page> {
  const page = await (await browser.newContext({ bypassCSP: true })).newPage();
  await page.addInitScript(script);
  page.setDefaultTimeout(60_000);
  await page.goto(service.url);
  await page.fill('#name', name);
  await page.click('#sign-in button');
  await page.waitForSelector('.state[data-state=connected]');
  return page;
}

it('a call rings, is answered, shows both people, and is in the thread afterwards; so is a missed one', async () => {
  const bob = await visit('bob');
  const ada = await visit('ada');
  await ada.fill('#new-conversation input', 'bob');
  await ada.press('#new-conversation input', 'Enter');
  await ada.waitForSelector('#talk:not([hidden])');
  await ada.click('#start-call >> text=Video');
  await bob.waitForSelector('#call[data-state=incoming]');
  assert.equal(await bob.innerText('#call-state'), 'ada calls you');
  await bob.click('#call-accept');
  for (const page of [ada, bob]) {
    await page.waitForSelector('#call[data-state=connected]');
    await page.waitForFunction('document.querySelectorAll("#call .tile video").length === 2');
    await page.waitForFunction(
      '[...document.querySelectorAll("#call .tile video")].every((v) => v.videoWidth > 0)',
    );
  }
  await ada.click('#call-mute');
  await bob.waitForSelector('#call .tile .name:has-text("ada 🔇")');
  await ada.click('#call-layout');
  await ada.waitForSelector('#call.speaker .tile.large');
  await ada.click('#call-layout');
  await ada.waitForSelector('#call:not(.speaker)');
  const bars = await ada.locator('#call-network').evaluate((e) => [e.dataset['level'], e.textContent]);
  assert.match(bars[0]!, /^[1-5]$/);
  assert.equal(bars[1]!.length, Number(bars[0]));

  await ada.click('#call-camera');
  await bob.waitForSelector('#call .tile.dark .name:has-text("ada")');
  const devices = ada.locator('#call-devices option');
  await devices
    .filter({ hasText: /^camera: / })
    .first()
    .waitFor({ state: 'attached' });
  const microphone = await devices
    .filter({ hasText: /^mic: / })
    .last()
    .getAttribute('value');
  await ada.selectOption('#call-devices', microphone);
  await ada.click('#call-camera');
  await bob.waitForSelector('#call .tile:not(.dark) .name:has-text("ada")');
  await ada.click('#call-screen');
  await bob.waitForSelector('#call .tile .name:has-text("ada (screen)")');
  await ada.click('#call-screen');
  await bob.waitForSelector('#call .tile .name:has-text("ada (screen)")', { state: 'detached' });
  assert.equal(await ada.innerText('#call-problem'), '');
  await bob.click('#call-leave');
  await ada.waitForSelector('.past-call:has-text("Video call by ada")');

  await ada.click('#start-call >> text=Call');
  await bob.waitForSelector('#call[data-state=incoming]');
  await ada.waitForSelector('#call[data-state=connected]');
  await ada.click('#call-leave');
  await bob.waitForSelector('#call', { state: 'hidden' });
  await bob.click('#conversations li >> nth=0');
  await bob.waitForSelector('.past-call:has-text("Missed call from ada")');

  // Bob declines before Ada's page has joined its own call.
  let declined = (): void => undefined;
  const answer = new Promise<void>((resolve) => (declined = resolve));
  await ada.route('**/v1/calls/*/join*', async (route) => {
    await answer;
    await route.continue();
  });
  await ada.click('#start-call >> text=Call');
  await bob.waitForSelector('#call[data-state=incoming]');
  await bob.click('#call-decline');
  await bob.waitForSelector('#call', { state: 'hidden' });
  declined();
  await ada.waitForSelector('#call-problem:has-text("Declined.")');
});

it('a video that the browser cannot decode is not taken for a camera that is off', async () => {
  // As in a browser that does not know VP8.
  const eve = await visit(
    'eve',
    `const send = WebSocket.prototype.send;
     WebSocket.prototype.send = function (text) {
       const frame = JSON.parse(text);
       const known = frame.d?.rtpCapabilities;
       if (known) known.codecs = known.codecs.filter((c) => c.kind === 'audio');
       send.call(this, JSON.stringify(frame));
     };`,
  );
  const dan = await visit('dan');
  await dan.fill('#new-conversation input', 'eve');
  await dan.press('#new-conversation input', 'Enter');
  await dan.waitForSelector('#talk:not([hidden])');
  await dan.click('#start-call >> text=Video');
  await eve.waitForSelector('#call[data-state=incoming]');
  await eve.click('#call-accept');
  const note = ({ name }: { name: string }) =>
    eve.locator('#call .tile', { hasText: name }).getByText('This browser cannot show this video.');
  await note({ name: 'dan' }).waitFor();
  assert.equal(await note({ name: 'eve' }).isVisible(), false, 'the own picture is there');
  await dan.click('#call-camera');
  await note({ name: 'dan' }).waitFor({ state: 'hidden' });
  await dan.click('#call-leave');
});

it('the connection test says which ways work, and what to do about the others', async () => {
  const page = await (await browser.newContext({ bypassCSP: true })).newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(`${service.url}/connection-test`);
  await page.waitForSelector('#route-udp[data-state=works]');
  await page.waitForSelector('#route-tcp[data-state=works]');
  await page.waitForSelector('#route-turn[data-state=not_configured]:has-text("CHAT_TURN_URLS")');
  assert.equal(await page.innerText('#verdict'), 'Calls work well from here.');
  assert.match(await page.innerText('#route-udp p'), /^works: pictures were back after \d+ ms/);
  // As behind a firewall: packets go nowhere.
  await page.evaluate(`
    const real = RTCPeerConnection.prototype.setRemoteDescription;
    RTCPeerConnection.prototype.setRemoteDescription = function ({ type, sdp }) {
      return real.call(this, { type, sdp: sdp.replaceAll(/127.0.0.1 [0-9]+ typ host/g, '127.0.0.1 9 typ host') });
    };
  `);
  await page.click('#again');
  await page.waitForSelector(
    '#route-udp[data-state=no_connection]:has-text("Open UDP from CHAT_MEDIA_PORT")',
  );
  await page.waitForSelector('#route-tcp[data-state=no_connection]:has-text("Open TCP")');
  await page.waitForSelector('#verdict:has-text("Calls do not work from here.")');
});
