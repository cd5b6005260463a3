import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { startMediaService } from '../../server/test/calls/media-service.ts';
import type { Actor } from '../../server/test/support/scene.ts';
import { setUp, useService } from '../../server/test/support/use.ts';
import { visit } from './browser.ts';
import { fakeDevices, useBrowser, wholeBrowser } from '../../server/test/support/chromium.ts';
import type { Kit } from './page/app.tsx';

/**
 * Two people, the real service and a real call: written without a network, sent, read, called. `npm run film` keeps a
 * picture of each step in docs/images.
 */
const film = process.env['FILM'];

describe('the kit from a tunnel to a call', () => {
  const { service, scene, server } = useService({
    start: (env) => startMediaService(env, 1),
  });
  const browser = useBrowser(fakeDevices, wholeBrowser);
  let nora: Actor;
  let tomas: Actor;
  setUp(async () => {
    [nora, tomas] = [await scene.actor('nora'), await scene.actor('tomas')];
    await server('PUT', `/v1/users/${nora.id}`, { name: 'Nora Lind' });
    await server('PUT', `/v1/users/${tomas.id}`, { name: 'Tomás Barreiro' });
    const { id } = await scene.direct(nora, tomas);
    await scene.send(tomas, id, { text: 'The lamp is here, but the arm wobbles. Is a screw missing?' });
    await scene.send(nora, id, { text: 'Sorry about that, Tomás. It is the M4 at the elbow.' });
    await scene.send(tomas, id, { text: 'Found it. Thank you!' });
  });

  it('a message waits, goes out and is read; a call rings, is answered, and pictures arrive', async () => {
    const enter = async (of: Actor): Promise<[Page, string[]]> => {
      const { page, problems } = await visit(
        browser,
        { url: service.url, token: scene.token(of) },
        { entry: 'film.tsx', media: true },
      );
      await page.setViewportSize({ width: 840, height: 480 });
      await page.locator('.parley-conversation').waitFor();
      return [page, problems];
    };
    const [[a, problems], [b, others]] = [await enter(nora), await enter(tomas)];
    let shots = 0;
    const shoot = async (page: Page, name: string): Promise<void> => {
      if (film === undefined) return;
      mkdirSync(film, { recursive: true });
      await page.mouse.move(0, 0);
      await page.screenshot({ path: join(film, `kit-${++shots}-${name}.png`), caret: 'hide' });
    };
    const row = (page: Page) => page.locator('.parley-message', { hasText: 'Written in a tunnel' });
    const receipt = (state: string) => row(a).locator(`.parley-receipt[data-state=${state}]`);

    await a.locator('.parley-conversation').click();
    await a.locator('.parley-message').nth(2).waitFor();
    await a.evaluate(() => (globalThis as unknown as { kit: Kit }).kit.cut(true));
    await a.locator('.parley-composer textarea').fill('Written in a tunnel: it goes out by itself.');
    await a.keyboard.press('Enter');
    await receipt('waiting').waitFor();
    await a.locator('.parley-connection[data-state=lost]', { hasText: 'One message waits' }).waitFor();
    await shoot(a, 'offline');

    await a.evaluate(() => (globalThis as unknown as { kit: Kit }).kit.cut(false));
    await a.getByRole('button', { name: 'Try now' }).click();
    await a.locator('.parley-connection[data-state=back]').waitFor();
    await receipt('delivered').waitFor();
    await shoot(a, 'reconnected');

    await b.locator('.parley-conversation').click();
    await row(b).waitFor();
    await receipt('read').waitFor();
    await shoot(a, 'read');

    await a.getByRole('button', { name: 'Video call' }).click();
    const card = b.getByRole('alertdialog', { name: 'Nora Lind calls' });
    await card.waitFor();
    await shoot(b, 'ringing');
    await card.getByRole('button', { name: 'Answer' }).click();
    for (const page of [a, b]) {
      await page.locator('.parley-call[data-state=connected][data-layout=pair]').waitFor();
      // The other's pictures arrive and are drawn.
      await page.waitForFunction(() => {
        const video = document.querySelector<HTMLVideoElement>('.parley-tile:not([data-self]) video');
        return video !== null && video.getVideoPlaybackQuality().totalVideoFrames > 10;
      });
    }
    await shoot(a, 'call');

    // Muted here is seen there; whoever leaves is gone there, and the call with two is over.
    await a.getByRole('button', { name: 'Microphone', exact: true }).click();
    await b.locator('.parley-tile[aria-label^="Nora Lind"][aria-label*="muted"]').waitFor();
    await a.getByRole('button', { name: 'Leave the call' }).click();
    for (const page of [a, b]) await page.locator('.parley-call').waitFor({ state: 'detached' });
    assert.deepEqual([...problems, ...others], []);
    for (const page of [a, b]) await page.context().close();
  });
});
