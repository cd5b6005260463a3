import { firstScript } from '../first-script.ts';
import { html, Html } from './html.ts';
import type { Group } from './navigation.ts';
import type { Page } from './page.ts';

/** The frame around every page. Everything is readable without the script; it adds search, tabs, copying and trying. */

export interface Assets {
  script: string;
  styles: string[];
  fonts: string[];
  /** Where the index of the search is. */
  index: string;
}

const wordmark = new Html(
  '<svg class="wordmark" viewBox="3 -7 128 39" role="img" aria-label="Parley"><path class="m1" fill-rule="evenodd" d="M17 2a10.5 10.5 0 0 1 0 21H5V14A12 12 0 0 1 17 2Zm0 6.2a4.3 4.3 0 1 0 0 8.6 4.3 4.3 0 0 0 0-8.6Z"/><path class="m2" d="M5 25.2h8.9a5.8 5.8 0 0 1-5.8 5.8h-3.1Z"/><path class="m3" d="M31.5 12.5a10.5 10.5 0 1 1 21 0a10.5 10.5 0 1 1 -21 0ZM37.1 12.5a4.9 4.9 0 1 0 9.8 0a4.9 4.9 0 1 0 -9.8 0ZM46.9 2h5.6v21h-5.6ZM56.7 2h5.6v21h-5.6ZM60.3 13.7C60.3 5.4 65.3 1.7 70.7 2.1v5.5C65.5 7.2 62.3 10 62.3 13.7ZM73.3 -6h5.6v29h-5.6ZM93.2 2a10.5 10.5 0 0 1 10.5 10.5c0 .8-.06 1.5-.16 2.1H87.8a5.1 5.1 0 0 0 9.2 2.2l4.3 3.2A10.5 10.5 0 1 1 93.2 2ZM93.2 6.9a5.1 5.1 0 0 0 -5 3.7h10a5.1 5.1 0 0 0 -5-3.7ZM106.1 2h6.1l5 13.2 4.9-13.2h5.9L118.7 26.6C117.4 29.9 115.3 31 112.3 31H109.1v-4.9h2.4c1.5 0 2.3-.4 2.9-1.9l.4-1.1Z"/></svg>',
);
/** The mark, redrawn on 16 units. */
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><style>.s{fill:#0F6B4F}.h{fill:#E8752F}@media (prefers-color-scheme:dark){.s{fill:#57D0A3}.h{fill:#F5A268}}</style><path class="s" fill-rule="evenodd" d="M8.5 0a5.5 5.5 0 0 1 0 11H2V6.5A6.5 6.5 0 0 1 8.5 0Zm0 3.25a2.25 2.25 0 1 0 0 4.5 2.25 2.25 0 0 0 0-4.5Z"/><path class="h" d="M2 12h5a4 4 0 0 1-4 4H2Z"/></svg>`;

/** Its hash is in the policy: not a space more. */
const inlineScript = new Html(`<script>${firstScript}</script>`);

export const hrefOf = (path: string): string => (path === '' ? '/docs' : `/docs/${path}`);

function menuList(groups: Group[], page: Page): Html {
  const item = ({ path, title }: { path: string; title: string }): Html => {
    const isHere = path === page.path;
    const parts =
      isHere && page.kind === 'reference' && page.parts.length > 0
        ? html`<ul class="parts">
            ${page.parts.map(({ id, label }) => html`<li><a href="#${id}">${label}</a></li>`)}
          </ul>`
        : '';
    return html`<li>
      <a href="${hrefOf(path)}" ${isHere && html`aria-current="page"`}>${title}</a>${parts}
    </li>`;
  };
  return html`${groups.map(
    ({ title, entries }) =>
      html`<section>
        <h2>${title}</h2>
        <ul>
          ${entries.map(item)}
        </ul>
      </section>`,
  )}`;
}

/** The pages before and after a guide. */
function neighbours(groups: Group[], page: Page): Html {
  const all = groups.flatMap(({ entries }) => entries);
  const at = all.findIndex(({ path }) => path === page.path);
  const [before, after] = [all[at - 1], all[at + 1]];
  return html`<nav class="neighbours" aria-label="Before and after">
    ${before && html`<a rel="prev" href="${hrefOf(before.path)}"><small>Before</small>${before.title}</a>`}
    ${after && html`<a rel="next" href="${hrefOf(after.path)}"><small>Next</small>${after.title}</a>`}
  </nav>`;
}

const groupOf = (groups: Group[], page: Page): string =>
  groups.find(({ entries }) => entries.some(({ path }) => path === page.path))?.title ?? '';

function main(groups: Group[], page: Page): Html {
  if (page.kind === 'reference') return html`<main id="page" class="reference">${page.body}</main>`;
  return html`<main id="page" class="guide">
    <article>
      <p class="kicker">${groupOf(groups, page)}</p>
      <h1>${page.title}</h1>
      ${page.body} ${page.path !== 'not-found' && neighbours(groups, page)}
    </article>
    ${
      page.parts.length > 1 &&
      html`<nav class="contents" aria-label="On this page">
        <h2>On this page</h2>
        <ul>
          ${page.parts.map(({ id, label }) => html`<li><a href="#${id}">${label}</a></li>`)}
        </ul>
      </nav>`
    }
  </main>`;
}

export const pageHtml = (page: Page, groups: Group[], assets: Assets): string =>
  html`<!doctype html>
    <html lang="en" data-theme="light">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${page.path === '' ? 'Parley documentation' : `${page.title} · Parley documentation`}</title>
        <link rel="icon" href="data:image/svg+xml,${encodeURIComponent(icon)}" />
        ${inlineScript}
        ${assets.fonts.map(
          (font) => html`<link rel="preload" as="font" type="font/woff2" href="${font}" crossorigin />`,
        )}
        ${assets.styles.map((style) => html`<link rel="stylesheet" href="${style}" />`)}
        <script type="module" src="${assets.script}"></script>
      </head>
      <body data-index="${assets.index}">
        <a class="skip" href="#page">Skip to the content</a>
        <div class="side">
          <header class="bar">
            <a class="home" href="/docs">${wordmark}<span>docs</span></a>
            <button type="button" class="quiet theme" aria-label="Dark colours" aria-pressed="false">
              ◐
            </button>
            <button type="button" class="quiet menu" aria-expanded="false" aria-controls="menu">Menu</button>
            <button type="button" class="find" aria-haspopup="dialog">Search <kbd>/</kbd></button>
          </header>
          <nav id="menu" class="menu-list" aria-label="Pages">${menuList(groups, page)}</nav>
        </div>
        ${main(groups, page)}
      </body>
    </html>`.text;
