import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

const update = process.env['UPDATE_PICTURES'] !== undefined;
/** A point differs if one of its colours does by more than this, of 255. */
const tolerance = 24;
/** So large a part of the points may differ. */
const mayDiffer = 0.005;

/**
 * Screens beside pictures that were kept in a folder: they look as they did. The font comes with the page; how its edges are
 * drawn may differ from machine to machine, therefore a few points may.
 * UPDATE_PICTURES=1 keeps new ones. Look at them before you commit them.
 */
export function keptPictures(folderUrl: URL): (page: Page, name: string) => Promise<void> {
  const folder = fileURLToPath(folderUrl);
  return async (page, name) => {
    await page.evaluate(() => document.fonts.ready);
    await page.mouse.move(0, 0);
    const path = `${folder}${name}.png`;
    const now = await page.screenshot({ animations: 'disabled', caret: 'hide' });
    if (update) {
      mkdirSync(folder, { recursive: true });
      writeFileSync(path, now);
      return;
    }
    assert.ok(existsSync(path), `${name}: no picture is kept`);
    const differ = await page.evaluate(
      async ([pictures, limit]) => {
        const [a, b] = await Promise.all(
          pictures.map(async (base64) => {
            const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
            const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
            const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
            const brush = canvas.getContext('2d')!;
            brush.drawImage(bitmap, 0, 0);
            return brush.getImageData(0, 0, bitmap.width, bitmap.height);
          }),
        );
        if (a!.width !== b!.width || a!.height !== b!.height) return 1;
        let count = 0;
        for (let i = 0; i < a!.data.length; i += 4)
          if ([0, 1, 2].some((part) => Math.abs(a!.data[i + part]! - b!.data[i + part]!) > limit)) count++;
        return count / (a!.data.length / 4);
      },
      [[readFileSync(path).toString('base64'), now.toString('base64')], tolerance] as const,
    );
    if (differ > mayDiffer) writeFileSync(`${folder}${name}.now.png`, now);
    assert.ok(differ <= mayDiffer, `${name}: ${(differ * 100).toFixed(2)} % of the points differ`);
  };
}
