import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { launchChromium } from '../../server/test/support/chromium.ts';

/** The SDK in a real page, from a plain `<script type="module">`; two pages of a context are two tabs. */
const { outputFiles } = await build({
  stdin: {
    contents: `export * from './index.ts'; export * from './outbox/indexed-db.ts';`,
    resolveDir: fileURLToPath(new URL('../src', import.meta.url)),
    loader: 'ts',
  },
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  write: false,
});
const html = `<!doctype html><script type="module">
  import * as parley from '/parley.js';
  window.parley = parley;
  window.log = [];
</script>`;
const web = createServer((request, response) => {
  const script = request.url === '/parley.js';
  response.setHeader('content-type', script ? 'text/javascript' : 'text/html');
  response.end(script ? outputFiles[0]!.text : html);
});
let browser: Browser;
let url: string;

before(async () => {
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(web.address() as AddressInfo).port}/`;
  browser = await launchChromium();
});
after(async () => {
  await browser.close();
  web.close();
});

async function tab(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForFunction('window.parley');
  return page;
}

test('the module loads in a page, and a client can be made', async () => {
  const page = await tab(await browser.newContext());
  const state = await page.evaluate(`
    window.parley.createClient({ url: location.origin, token: () => 'x' }).state`);
  assert.equal(state, 'idle');
});

test('indexedDbStorage: tabs share records; keys are found by prefix', async () => {
  const context = await browser.newContext();
  const [one, two] = [await tab(context), await tab(context)];
  await one.evaluate(`(async () => {
    const storage = parley.indexedDbStorage();
    await storage.set('u/c1/a', { n: 1 });
    await storage.set('u/c1/b', { n: 2 });
    await storage.set('u/c10/a', { n: 3 });
    await storage.set('u/c1/a', { n: 4 });
    await storage.delete('u/c1/b');
  })()`);
  assert.deepEqual(await two.evaluate(`parley.indexedDbStorage().list('u/c1/')`), [{ n: 4 }]);
  assert.deepEqual(await two.evaluate(`parley.indexedDbStorage().list('u/')`), [{ n: 4 }, { n: 3 }]);
});

for (const kind of ['Web Locks', 'a lease'] as const)
  test(`indexedDbStorage: one tab at a time holds a lock, by ${kind}`, async () => {
    const context = await browser.newContext();
    const tabs = [await tab(context), await tab(context)];
    if (kind === 'a lease')
      for (const page of tabs)
        await page.evaluate(`Object.defineProperty(navigator, 'locks', { value: undefined })`);
    // Each turn adds one in two steps: without a lock, turns of two tabs would overwrite each other.
    const turns = `(async () => {
      const storage = parley.indexedDbStorage();
      for (let i = 0; i < 5; i++)
        await storage.lock('count', async () => {
          const [n = 0] = await storage.list('n');
          await new Promise((resolve) => setTimeout(resolve, 5));
          await storage.set('n', n + 1);
        });
    })()`;
    await Promise.all(tabs.map((page) => page.evaluate(turns)));
    assert.deepEqual(await tabs[0]!.evaluate(`parley.indexedDbStorage().list('n')`), [10]);
  });

test('indexedDbStorage: a tab that dies frees its lock', async () => {
  const context = await browser.newContext();
  const [one, two] = [await tab(context), await tab(context)];
  await one.evaluate(`new Promise((resolve) =>
    void parley.indexedDbStorage().lock('x', () => (resolve(), new Promise(() => {}))))`);
  await one.close();
  assert.equal(
    await two.evaluate(`parley.indexedDbStorage().lock('x', async () => {}).then(() => 'free')`),
    'free',
  );
});
