import { gzipSync } from 'node:zlib';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { BuildOptions } from 'esbuild';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { launchChromium, wholeBrowser } from '../../server/test/support/chromium.ts';

/** Production builds of pages, in Chromium. */

export interface Built {
  js: string;
  css: string;
}
export async function bundle(entry: string, options: BuildOptions = {}): Promise<Built> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    outdir: 'out',
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
    loader: { '.woff2': 'empty', '.woff': 'empty', '.svg': 'empty', '.png': 'empty' },
    external: ['node:*', 'mediasoup-client'],
    write: false,
    logLevel: 'error',
    ...options,
  });
  const text = (kind: string): string => outputFiles!.find(({ path }) => path.endsWith(kind))?.text ?? '';
  return { js: text('.js'), css: text('.css') };
}

export const gzipped = (text: string): number => gzipSync(text, { level: 9 }).length;

/** What an entry weighs without React. */
export async function weight(entry: string, more: BuildOptions = {}): Promise<number> {
  const external = ['react', 'react-dom', 'react/jsx-runtime', 'react-dom/*', 'node:*', 'mediasoup-client'];
  return gzipped((await bundle(entry, { external, ...more })).js);
}

export const startBrowser = (): Promise<Browser> =>
  launchChromium(['--enable-precise-memory-info', '--js-flags=--expose-gc'], wholeBrowser);

export interface Opened {
  page: Page;
  cdp: CDPSession;
  close(): Promise<void>;
}
export async function open(browser: Browser, { js, css }: Built): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB' });
  context.setDefaultTimeout(120_000);
  await context.route('http://bench.test/**', (route) => {
    const { pathname } = new URL(route.request().url());
    if (pathname === '/main.js') return route.fulfill({ contentType: 'text/javascript', body: js });
    if (pathname === '/main.css') return route.fulfill({ contentType: 'text/css', body: css });
    if (pathname !== '/') return route.fulfill({ status: 404, body: '' });
    return route.fulfill({
      contentType: 'text/html; charset=utf-8',
      body: `<!doctype html><html lang="en"><title>Bench</title><link rel="stylesheet" href="/main.css"><link rel="icon" href="data:,">
        <style>html, body, #root { height: 100%; margin: 0; font-family: system-ui, sans-serif }</style>
        <div id="root"></div><script>window.options = {}</script><script type="module" src="/main.js"></script></html>`,
    });
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => process.stderr.write(`page: ${error.message}\n`));
  const cdp = await context.newCDPSession(page);
  await cdp.send('Performance.enable');
  await page.goto('http://bench.test/');
  return { page, cdp, close: () => context.close() };
}

export const fromHere = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
