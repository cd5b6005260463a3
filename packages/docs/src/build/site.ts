import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from '@parley/pages/bundle';
import type { Bundled } from '@parley/pages/bundle';
import { readAsyncApi, readOpenApi } from './documents.ts';
import type { OpenApi } from './documents.ts';
import { html } from './html.ts';
import { markdown } from './markdown.ts';
import { guides, limits, menu, resources, sdks } from './navigation.ts';
import type { Group, Guide } from './navigation.ts';
import type { Page } from './page.ts';
import { callsOf } from './reference-call.ts';
import { resourcePage, webhookEventsPage } from './reference.ts';
import { sdkPage } from './sdk.ts';
import { searchIndex } from './search.ts';
import { errorsPage, objectsPage, socketEventsPage, socketPage } from './socket.ts';
import { pageHtml } from './template.ts';

/**
 * Builds the whole site: guides from Markdown, the reference from the generated documents of the protocol, the SDKs
 * from their sources.
 *
 * Why no generator (VitePress, Starlight, Docusaurus): the larger half is made from the table of operations, so one
 * would get pages that we write anyhow, and bring its own theme, client runtime and build. VitePress needs Vue and
 * Vite with a runtime of over 50 kB on each page, Starlight needs Astro with some 300 packages; both take tens of
 * seconds and would have to run before a fresh checkout can show /docs. This takes a second, with three packages that
 * need no others: marked (MIT), highlight.js (BSD-3-Clause) at build time, minisearch (MIT) in the page that searches.
 */

export const root = fileURLToPath(new URL('../../../../', import.meta.url));
const browser = fileURLToPath(new URL('../../browser/', import.meta.url));

/** Files by name: pages as `guides/tokens/index.html`, the rest as `assets/…`. */
export type Site = Map<string, Buffer>;

export interface SiteOptions {
  /** Where it will be: `/docs` in the service, the empty string at the root of a host. */
  base: string;
  /** It is not served by the service itself: "Try it" asks where that is. */
  elsewhere?: true;
}

const hashed = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);

/** What is the same wherever the site will be. */
export interface Prepared {
  assets: Site;
  metafile: Bundled['metafile'];
  pages: Page[];
  groups: Group[];
}

/** @param reword changes the sources, for a package in which commands have other names. */
export async function prepareSite(reword: (text: string) => string = (text) => text): Promise<Prepared> {
  const { files, metafile } = await bundle([join(browser, 'main.ts')]);
  const assets: Site = new Map(
    [...files].map(([name, contents]) => [`assets/${name}`, Buffer.from(contents)]),
  );
  return { assets, metafile, ...(await allPages(reword)) };
}

export function writeSite({ assets, pages, groups }: Prepared, { base, elsewhere }: SiteOptions): Site {
  const site: Site = new Map(assets);
  const named = (pattern: RegExp): string[] =>
    [...assets.keys()].filter((name) => pattern.test(name)).map((name) => `/docs/${name}`);
  const index = rebased(searchIndex(pages), base);
  const indexName = `assets/search-${hashed(index)}.json`;
  site.set(indexName, Buffer.from(index));
  const loaded = {
    script: named(/\/main-\w+\.js$/)[0]!,
    styles: named(/\/main-\w+\.css$/),
    fonts: named(/\/geist-latin-wght-normal-\w+\.woff2$/),
    index: `/docs/${indexName}`,
  };
  for (const page of [...pages, notFound]) {
    const text = rebased(compact(pageHtml(page, groups, loaded)), base);
    const name = page === notFound ? '404.html' : posix.join(page.path, 'index.html');
    site.set(name, Buffer.from(elsewhere ? text.replace('<body', '<body data-elsewhere') : text));
  }
  return site;
}

/** Pages are written for /docs. */
const rebased = (text: string, base: string): string =>
  text.replaceAll(/((?:href=|src=|data-index=|"url":)")\/docs(["/#])/g, (_, before: string, next: string) =>
    base === '' && next !== '/' ? `${before}/${next}` : `${before}${base}${next}`,
  );

/** A third of the text would be the indentation of our templates. What is in `pre` stays as it is. */
const compact = (text: string): string =>
  text
    .split(/(<pre[\s>][\s\S]*?<\/pre>)/)
    .map((part) =>
      part.startsWith('<pre') ? part : part.replaceAll(/\s*\n\s*/g, '\n').replaceAll(/ {2,}/g, ' '),
    )
    .join('');

const notFound: Page = {
  path: 'not-found',
  title: 'Page not found',
  kind: 'guide',
  body: html`<p>The page may have moved. Use the search, or begin at the <a href="/docs">quickstart</a>.</p>`,
  parts: [],
  found: [],
};

async function allPages(reword: (text: string) => string): Promise<{ pages: Page[]; groups: Group[] }> {
  const [api, socket] = [await readOpenApi(), await readAsyncApi()];
  const written = [...guides.flatMap(({ entries }) => entries), ...limits];
  const named = namedOperations(api);
  const objects = new Set(Object.keys({ ...api.components.schemas, ...socket.components.schemas }));
  const pages = [
    ...(await Promise.all(written.map((one) => guidePage(one, { written, named, reword })))),
    ...resources(api).flatMap(({ entries }) => entries.map((one) => resourcePage(api, socket, one))),
    webhookEventsPage(api),
    socketPage(socket),
    socketEventsPage(socket),
    errorsPage(api),
    objectsPage(api, socket),
    ...sdks.map((one) => sdkPage(one, join(root, 'packages', one.folder), objects)),
  ];
  return { pages, groups: menu(api) };
}

/** Where an operation stands that a guide names as `messages.send` or as `POST /v1/users/lookup`. */
function namedOperations(api: OpenApi): Map<string, string> {
  const named = new Map<string, string>();
  const all = resources(api).flatMap(({ entries }) => entries);
  for (const { op, method, path } of callsOf(api)) {
    const page = all.find(({ tags }) => tags.includes(op.tags[0] ?? ''));
    for (const name of [op.operationId, `${method} ${path}`])
      named.set(name, `/docs/${page?.path}#${op.operationId}`);
  }
  return named;
}

interface Surroundings {
  written: Guide[];
  named: Map<string, string>;
  reword: (text: string) => string;
}

async function guidePage(guide: Guide, { written, named, reword }: Surroundings): Promise<Page> {
  const source = reword(await readFile(join(root, guide.file), 'utf8'));
  const { body, headings, sections } = markdown(source, {
    page: (href) => linkTo(href, guide, written),
    operation: (name) => named.get(name) ?? null,
  });
  return {
    ...guide,
    kind: 'guide',
    body,
    parts: headings
      .filter(({ depth }) => depth === 2)
      .map(({ id, title }) => ({ id, label: html`${title}` })),
    found: sections.map((one) => (one.id === '' ? { ...one, title: guide.title } : one)),
  };
}

/** Links between files of the repository that are pages lead to the pages; other files are only named. */
function linkTo(href: string, from: Guide, all: Guide[]): string | null {
  if (/^(#|https?:|mailto:)/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const file = posix.join(posix.dirname(from.file), path);
  const page = all.find((one) => one.file === file);
  if (!page) return null;
  return `${page.path === '' ? '/docs' : `/docs/${page.path}`}${anchor === undefined ? '' : `#${anchor}`}`;
}
