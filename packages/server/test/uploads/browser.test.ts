import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Browser, Page } from 'playwright-core';
import { signToken } from '../support/tokens.ts';
import { picture } from './files.ts';
import { launchChromium } from '../support/chromium.ts';
import { setUp, useService } from '../support/use.ts';

/** What the page does; it runs in the browser, with the SDK as `window.parley`. */
declare const window: any;

describe('two browser pages exchange a picture', () => {
  const { service, scene } = useService();
  let browser: Browser;
  let origin: string;
  const closing: (() => unknown)[] = [];

  setUp(async () => {
    const { outputFiles } = await build({
      entryPoints: [fileURLToPath(new URL('../../../client/src/index.ts', import.meta.url))],
      bundle: true,
      format: 'iife',
      globalName: 'parley',
      platform: 'browser',
      external: ['node:*'],
      write: false,
    });
    // The page is of another origin than the service, as an application's is.
    const pages = createServer((req, res) => {
      const script = req.url === '/sdk.js';
      res.setHeader('content-type', script ? 'text/javascript' : 'text/html');
      res.end(script ? outputFiles[0]!.text : '<!doctype html><script src="/sdk.js"></script><body>');
    }).listen(0, '127.0.0.1');
    await once(pages, 'listening');
    closing.push(() => pages.close());
    origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
    browser = await launchChromium();
    closing.push(() => browser.close());
  });
  after(async () => {
    for (const close of closing.reverse()) await close();
  });

  async function join(user: string, conversation: string): Promise<Page> {
    const page = await browser.newPage();
    await page.goto(origin);
    await page.evaluate(
      async ([url, token, id]) => {
        const client = window.parley.createClient({ url, token: () => token });
        await client.connect();
        window.chat = { client, conversation: client.conversations.open(id) };
      },
      [service.url, signToken({ sub: user }), conversation] as const,
    );
    return page;
  }

  test('upload with progress, send through the outbox, receive live, download and show', async () => {
    const [alice, bob] = await Promise.all([scene.actor('alice'), scene.actor('bob')]);
    const { id } = await scene.group(alice, [alice, bob]);
    const [hers, his] = await Promise.all([join(alice.id, id), join(bob.id, id)]);

    const arrived = his.evaluate(
      () =>
        new Promise<any>((resolve) => {
          window.chat.client.on('message', ({ message }: any) => resolve(message));
        }),
    );
    const progress = await hers.evaluate(
      async (bytes) => {
        const seen: number[] = [];
        const file = new File([new Uint8Array(bytes)], 'cat.png', { type: 'image/png' });
        const { conversation } = window.chat;
        const attachment = await conversation.upload(file, { onProgress: (p: number) => seen.push(p) });
        conversation.send({ text: 'look', attachments: [attachment.id] });
        return seen;
      },
      [...picture.body],
    );
    assert.equal(progress.at(-1), 1);
    assert.ok(progress.length > 1, 'XMLHttpRequest told its progress');

    const message = await arrived;
    assert.equal(message.text, 'look');
    const [attachment] = message.attachments;
    assert.deepEqual([attachment.name, attachment.width, attachment.height], ['cat.png', 7, 5]);
    const shown = await his.evaluate(async (attachmentId) => {
      const { url } = await window.chat.client.uploads.attachmentUrl(attachmentId);
      const image = new window.Image();
      image.src = url;
      await image.decode();
      const bytes = await (await fetch(url)).arrayBuffer();
      return { width: image.naturalWidth, height: image.naturalHeight, bytes: [...new Uint8Array(bytes)] };
    }, attachment.id);
    assert.deepEqual(shown, { width: 7, height: 5, bytes: [...picture.body] });
  });

  test('an aborted upload rejects, and nothing is attached', async () => {
    const alice = await scene.actor('alice');
    const { id } = await scene.group(alice, [alice]);
    const page = await join(alice.id, id);
    const code = await page.evaluate(async () => {
      const abort = new AbortController();
      const file = new File([new Uint8Array(8_000_000)], 'big.bin');
      const onProgress = () => abort.abort();
      return window.chat.conversation.upload(file, { signal: abort.signal, onProgress }).then(
        () => 'done',
        (e: { code: string }) => e.code,
      );
    });
    assert.equal(code, 'aborted');
  });
});
