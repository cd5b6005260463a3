// npm run pictures -- <folder> [part of a name …]: every page and its states at three widths, light and dark.
// npm run pictures -- --docs: the pictures of README.md and of docs/dashboard.md, in docs/images.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { visit } from '../../react/test/browser.ts';
import { launchChromium, wholeBrowser } from '../../server/test/support/chromium.ts';
import { pretendNode } from '../../server/test/calls/tools.ts';
import { serverApi } from '../../server/test/support/api.ts';
import { startService } from '../../server/test/support/service.ts';
import { openDb } from '../../server/test/support/use.ts';
import { loaded, openPage, signIn } from './browser.ts';
import { font, hero, heroSize } from './hero.ts';
import { pages } from './pages.ts';
import { fillShop } from './scene.ts';
import { tellStory } from './story.ts';

const widths = { wide: 1440, tablet: 768, phone: 390 };
const schemes = ['light', 'dark'] as const;

async function dress(page: Page, width: number, height: number, scheme: 'light' | 'dark'): Promise<void> {
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
  await page.locator(`html[data-mantine-color-scheme=${scheme}]`).waitFor();
}

/** In all widths and colours, as high as the page is. */
async function takeAll(page: Page, folder: string, name: string): Promise<void> {
  for (const [size, width] of Object.entries(widths))
    for (const scheme of schemes) {
      await dress(page, width, 900, scheme);
      const height = await page.evaluate(() => {
        const main = document.querySelector('main');
        return Math.max(innerHeight, (main?.scrollHeight ?? 0) + 64, document.documentElement.scrollHeight);
      });
      await page.setViewportSize({ width, height: Math.min(height, 4_000) });
      await page.screenshot({ path: join(folder, `${name}-${size}-${scheme}.png`) });
    }
}

/** Areas as a new environment shows them. */
const empty = [
  '',
  '/users',
  '/conversations',
  '/live',
  '/logs',
  '/calls',
  '/moderation',
  '/analytics',
  '/webhooks',
  '/audit',
];

async function everything(browser: Browser, folder: string, parts: string[]): Promise<void> {
  const service = await startService();
  const db = await openDb(service);
  const wanted = (name: string) => parts.length === 0 || parts.some((part) => name.includes(part));
  try {
    await pretendNode(db);
    const shop = await fillShop(service.url);
    const { page } = await openPage(browser, service.url);
    if (wanted('sign-in')) {
      await page.goto(`${service.url}/dashboard`);
      await page.getByLabel('E-mail').waitFor();
      await takeAll(page, folder, 'sign-in');
    }
    // On a phone the menu, by which one sees that it worked, is closed.
    await dress(page, widths.wide, 900, 'light');
    await signIn(page, service.url);
    const visitPage = async (path: string, env = 'env_dev') => {
      await page.goto(new URL(`${service.url}/dashboard/${env}${path}`).href);
      await page.locator('main h1, main h3, main [role=alert]').first().waitFor();
      await loaded(page);
    };
    for (const [name, path, shows] of pages.filter(([name]) => wanted(name))) {
      await visitPage(path(shop));
      await page.getByText(shows(shop)).first().waitFor({ state: 'attached' });
      if (name === 'webhook') await page.getByRole('button', { name: 'webhook.test' }).first().click();
      await takeAll(page, folder, name.replaceAll(/\W+/g, '-'));
    }
    for (const path of empty.filter((path) => wanted(`empty ${path}`))) {
      await visitPage(path, 'env_other');
      await takeAll(page, folder, `empty${path.replace('/', '-')}`);
    }
    const states: [name: string, answer: Parameters<Page['route']>[1]][] = [
      ['loading', () => undefined],
      [
        'failed',
        (route) =>
          route.fulfill({
            status: 500,
            json: { error: { code: 'internal', message: 'It broke.', requestId: 'req_broken' } },
          }),
      ],
    ];
    for (const [state, answer] of states.filter(([state]) => wanted(state)))
      for (const [area, asked] of [
        ['users', '**/v1/users?*'],
        ['storage', '**/v1/storage?*'],
        ['overview', '**/v1/overview?*'],
      ] as const) {
        await page.route(asked, answer);
        await page.goto(`${service.url}/dashboard/env_dev${area === 'overview' ? '' : `/${area}`}`);
        const shown =
          state === 'loading' ? page.getByText('Loading').first() : page.getByText('It broke.').first();
        await shown.waitFor();
        await takeAll(page, folder, `${state}-${area}`);
        await page.unrouteAll({ behavior: 'ignoreErrors' });
      }
  } finally {
    await db.close();
    await service.dispose();
  }
}

/** Twelve pictures at most, each of one screen. */
async function forDocs(browser: Browser): Promise<void> {
  const folder = fileURLToPath(new URL('../../../docs/images/', import.meta.url));
  const service = await startService();
  const db = await openDb(service);
  try {
    await pretendNode(db);
    const story = await tellStory(service.url, db);
    const { page } = await openPage(browser, service.url);
    await signIn(page, service.url);
    const picture = async (name: string, path: string, shows: string, width = 1280, height = 800) => {
      await page.goto(`${service.url}/dashboard/env_dev${path}`);
      await page.getByText(shows).first().waitFor({ state: 'attached' });
      await loaded(page);
      for (const scheme of schemes) {
        await dress(page, width, height, scheme);
        await page.screenshot({ path: join(folder, `dashboard-${name}-${scheme}.png`) });
      }
    };
    await picture('overview', '', 'Messages and requests');
    await picture('delivery', `/delivery?messageId=${story.message}&userId=jonas`, 'Timeline');
    await picture('live', '/live', 'Open since');
    await picture('phone', '/conversations', 'Packing table', 390, 740);

    for (const scheme of schemes) {
      const top = await browser.newPage({ viewport: heroSize });
      await top.setContent(hero(scheme));
      await top.evaluate(() => document.fonts.ready);
      await top.screenshot({ path: join(folder, `hero-${scheme}.png`) });
      await top.close();
    }

    const { body } = await serverApi(service.url, 'dev')('POST', '/v1/tokens', { userId: 'nora' });
    for (const scheme of schemes) {
      const { page: chat } = await visit(browser, {
        url: service.url,
        token: body.token as string,
        theme: scheme,
      });
      await chat.setViewportSize({ width: 1000, height: 640 });
      await chat.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
      await chat.locator('.parley-conversation', { hasText: 'Tomás' }).click();
      await chat.locator('.parley-message', { hasText: 'no charge' }).waitFor();
      await chat.addStyleTag({
        content: `@font-face { font-family: Geist; font-weight: 100 900; src: url(data:font/woff2;base64,${font('geist/files/geist-latin-wght-normal.woff2')}) }`,
      });
      await chat.evaluate(() => document.fonts.load('16px Geist'));
      await chat.screenshot({ path: join(folder, `chat-${scheme}.png`) });
      await chat.context().close();
    }
  } finally {
    await db.close();
    await service.dispose();
  }
}

const [folder, ...parts] = process.argv.slice(2);
if (folder === undefined) throw new Error('Say a folder, or --docs.');
const browser = await launchChromium([], wholeBrowser);
try {
  if (folder === '--docs') await forDocs(browser);
  else {
    mkdirSync(folder, { recursive: true });
    await everything(browser, folder, parts);
  }
} finally {
  await browser.close();
}
