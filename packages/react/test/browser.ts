import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import { build } from 'esbuild';
import type { BuildOptions } from 'esbuild';
import type { Browser, Page } from 'playwright-core';

/** The kit in a real Chromium, from pages that are served as if by the service itself. */

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const eighteen = at('../../react-18/node_modules/');

async function bundle(entry: string, react: 18 | 19, options: BuildOptions = {}) {
  const { outputFiles } = await build({
    entryPoints: [at(`page/${entry}`)],
    outdir: 'out',
    bundle: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"development"' },
    external: ['node:*', 'mediasoup-client'],
    loader: { '.woff2': 'dataurl' },
    // Also for what React's own packages import.
    ...(react === 18 ? { alias: { react: `${eighteen}react`, 'react-dom': `${eighteen}react-dom` } } : {}),
    write: false,
    logLevel: 'error',
    ...options,
  });
  const text = (kind: string): string => outputFiles!.find(({ path }) => path.endsWith(kind))?.text ?? '';
  return { js: text('.js'), css: text('.css') };
}

export interface ServerModule {
  version: string;
  render(options: object): string;
}
/** The page as a server renders it. */
export async function serverModule(react: 18 | 19): Promise<ServerModule> {
  const { js } = await bundle('server.tsx', react);
  return (await import(`data:text/javascript;base64,${Buffer.from(js).toString('base64')}`)) as ServerModule;
}

const bundles = new Map<string, ReturnType<typeof bundle>>();

export interface Visit {
  page: Page;
  /** What should not have happened: errors, warnings of React, requests to other places. */
  problems: string[];
}

/** @param html what the server rendered, for the page to take over. @param media the page makes real calls. @param touch a phone: fingers, and no pointer that hovers. */
export async function visit(
  browser: Browser,
  options: { url: string; token: string; [more: string]: unknown },
  { react = 19 as 18 | 19, html = '', entry = 'main.tsx', media = false, touch = false } = {},
): Promise<Visit> {
  const { url } = options;
  const key = `${entry} ${react}`;
  if (!bundles.has(key)) bundles.set(key, bundle(entry, react, media ? { external: ['node:*'] } : {}));
  const { js, css } = await bundles.get(key)!;
  const context = await browser.newContext({
    ...(touch
      ? { viewport: { width: 390, height: 700 }, hasTouch: true, isMobile: true }
      : { viewport: { width: 1280, height: 800 } }),
    reducedMotion: 'reduce',
    timezoneId: 'Europe/Lisbon',
    locale: 'en-GB',
  });
  context.setDefaultTimeout(120_000);
  const given = JSON.stringify(options).replaceAll('<', '\\u003c');
  await context.route(`${url}/kit/*`, (route) => {
    const { pathname } = new URL(route.request().url());
    if (pathname === '/kit/main.js') return route.fulfill({ contentType: 'text/javascript', body: js });
    if (pathname === '/kit/main.css') return route.fulfill({ contentType: 'text/css', body: css });
    return route.fulfill({
      contentType: 'text/html; charset=utf-8',
      body: `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Kit</title>
        <link rel="stylesheet" href="/kit/main.css"><link rel="icon" href="data:,">
        <style>html, body, #root { height: 100%; margin: 0; font-family: 'Geist', system-ui, sans-serif }</style>
        <div id="root">${html}</div><script>window.options = ${given}</script>
        <script type="module" src="/kit/main.js"></script></html>`,
    });
  });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (!['error', 'warning'].includes(message.type())) return;
    // While a test is offline the browser notes each attempt, and each frame to a socket that the test is closing.
    if (
      !/Failed to load resource|ERR_INTERNET_DISCONNECTED|already in CLOSING or CLOSED/.test(message.text())
    )
      problems.push(message.text());
  });
  page.on('request', (request) => {
    if (!/^(blob|data):/.test(request.url()) && !request.url().startsWith(`${url}/`))
      problems.push(`asked for ${request.url()}`);
  });
  await page.goto(`${url}/kit/`);
  return { page, problems };
}

/** What axe finds, of whatever weight. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => {
    const { axe: loaded } = globalThis as unknown as { axe: typeof axe };
    // The test's page has no heading of its own; the kit is a part of somebody's page.
    return (await loaded.run({ rules: { 'page-has-heading-one': { enabled: false } } })).violations;
  });
  return violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.html.slice(0, 160)} ${node.failureSummary}`),
  );
}
