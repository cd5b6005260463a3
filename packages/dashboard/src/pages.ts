import { randomBytes } from 'node:crypto';
import { answerWith, createLoader } from '@parley/pages';
import type { Answer, Files } from '@parley/pages';

/** Serves the web app under /dashboard: one page for every address of the app, and its hashed assets. */

const path = '/dashboard';
const assetPath = `${path}/assets/`;

const load = createLoader({
  name: 'dashboard',
  builder: new URL('./build.ts', import.meta.url),
  sources: ['packages/dashboard/{src,browser}/**/*.{ts,tsx,css}', 'packages/react/src/tokens.css'],
  prebuilt: new URL('../prebuilt.bin', import.meta.url),
});

/** Builds the bundle, or reads it from the cache. Earlier requests wait for it; a failed build is tried again. */
export async function prepareDashboard(): Promise<void> {
  await load();
}

export const dashboardApp = {
  path,
  /** @param asked the path of the address, at or below `path`. */
  answer: async (asked: string, acceptEncoding: string, query: string): Promise<Answer> => {
    const files = await load();
    if (!asked.startsWith(assetPath)) return page(files, asked, query === '' ? firstOf(files, asked) : []);
    const name = asked.slice(assetPath.length);
    return answerWith(name, files.get(name), acceptEncoding);
  },
};

/** The mark, redrawn on 16 units. */
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><style>.s{fill:#0F6B4F}.h{fill:#E8752F}@media (prefers-color-scheme:dark){.s{fill:#57D0A3}.h{fill:#F5A268}}</style><path class="s" fill-rule="evenodd" d="M8.5 0a5.5 5.5 0 0 1 0 11H2V6.5A6.5 6.5 0 0 1 8.5 0Zm0 3.25a2.25 2.25 0 1 0 0 4.5 2.25 2.25 0 0 0 0-4.5Z"/><path class="h" d="M2 12h5a4 4 0 0 1-4 4H2Z"/></svg>`;

/** What a script imports first, by its name. A name has the hash of its content, so this never changes. */
const known = new Map<string, string[]>();
function importsOf(files: Files, name: string): string[] {
  let imports = known.get(name);
  if (!imports) {
    const text = files.get(name)!.bodies.identity.toString();
    const named = [...text.matchAll(/(?:from|import)"\.\/([^"]+)"/g)].map(([, imported]) => imported!);
    // A text in the script may look like an import.
    imports = named.filter((imported) => files.has(imported));
    known.set(name, imports);
  }
  return imports;
}

/**
 * The scripts that a page needs at once, so that the browser asks for all of them together: the entry, the file of pages/ that the
 * address names, and what these import.
 */
function scriptsOf(files: Files, entry: string, asked: string): Set<string> {
  const pageOf = (name: string | undefined): string | undefined =>
    [...files.keys()].find((file) => file.endsWith('.js') && file.slice(0, file.lastIndexOf('-')) === name);
  // After the environment's id; account and the like stand in its place.
  const [first, second] = asked.slice(path.length + 1).split('/');
  const scripts = new Set([entry, pageOf(second) ?? pageOf(first) ?? pageOf('overview')!]);
  // A set is walked to its end, also through what was added on the way.
  for (const script of scripts) for (const imported of importsOf(files, script)) scripts.add(imported);
  return scripts;
}

/** What the page at an address asks for at first, as far as the bundle says so. */
function firstOf(files: Files, asked: string): string[] {
  const [env, ...rest] = asked.slice(path.length + 1).split('/');
  const first = JSON.parse(files.get('first.json')!.bodies.identity.toString()) as Record<string, string[]>;
  const calls = first[rest.map((part) => `/${part}`).join('')] ?? [];
  return /^\w+$/.test(env!) ? calls.map((address) => `${address}env=${env}`) : [];
}

function page(files: Files, asked: string, first: string[]): Answer {
  const nonce = randomBytes(16).toString('base64');
  const names = [...files.keys()];
  const named = (pattern: RegExp): string[] => names.filter((name) => pattern.test(name));
  const [script] = named(/^main-.*\.js$/);
  const scripts = [...scriptsOf(files, script!, asked)]
    .map((name) => `<link rel="modulepreload" href="${assetPath}${name}" nonce="${nonce}">`)
    .join('');
  // The font that every page shows.
  const fonts = named(/^geist-latin-wght-normal-.*\.woff2$/)
    .map((name) => `<link rel="preload" as="font" type="font/woff2" href="${assetPath}${name}" crossorigin>`)
    .join('');
  const styles = named(/^main-.*\.css$/)
    .map((name) => `<link rel="stylesheet" href="${assetPath}${name}">`)
    .join('');
  const calls = ['/v1/session', ...first]
    .map(
      (address) => `<link rel="preload" as="fetch" href="${address.replaceAll('&', '&amp;')}" crossorigin>`,
    )
    .join('');
  return {
    status: 200,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': policy(nonce),
      'x-frame-options': 'DENY',
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'permissions-policy': 'camera=(), geolocation=(), microphone=()',
    },
    body: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="csp-nonce" content="${nonce}">
<meta name="color-scheme" content="light dark">
<title>Parley</title>
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(icon)}">
${styles}${scripts}${fonts}
${calls}
<script type="module" src="${assetPath}${script}" nonce="${nonce}"></script>
</head>
<body>
<div id="app"></div>
<noscript>The dashboard needs JavaScript. All that it does can be done with <code>npm run parley</code> and the API, too.</noscript>
</body>
</html>
`,
  };
}

/**
 * Allows scripts by nonce and what they load, and our own styles and styles by nonce; nothing from other origins, no
 * forms, no frames.
 */
const policy = (nonce: string): string =>
  [
    "default-src 'none'",
    `script-src 'nonce-${nonce}' 'strict-dynamic'`,
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
