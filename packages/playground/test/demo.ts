import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

/** The demo as people use it. */

export interface Visit {
  page: Page;
  /** What should not have happened: errors, and requests to other places. */
  problems: string[];
}

const timeoutMs = 120_000;

export async function open(
  browser: Browser,
  url: string,
  { path = '/', ...options }: BrowserContextOptions & { path?: string } = {},
): Promise<Visit> {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    reducedMotion: 'reduce',
    ...options,
  });
  context.setDefaultTimeout(timeoutMs);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => {
    if (!/^(blob|data):/.test(request.url()) && !request.url().startsWith(url))
      problems.push(`asked for ${request.url()}`);
  });
  await page.goto(`${url}${path}`);
  return { page, problems };
}

/** Signs in under a name of one's own. A wide screen then opens the newest conversation: one that comes earlier would be read. */
export async function signIn(
  browser: Browser,
  url: string,
  name: string,
  options?: BrowserContextOptions,
): Promise<Visit> {
  const visit = await open(browser, url, options);
  await visit.page.getByLabel('Or somebody else').fill(name);
  await visit.page.getByRole('button', { name: 'Start' }).click();
  await visit.page.locator('.parley-list').waitFor();
  if (visit.page.viewportSize()!.width >= 768)
    await visit.page.locator('.parley-conversation[aria-current=true]').waitFor();
  return visit;
}

/** Makes a chat with these people, none of whom needs to have come. */
export async function newChat(page: Page, people: readonly string[]): Promise<void> {
  await page.getByRole('button', { name: 'New chat' }).click();
  const sheet = page.getByRole('dialog', { name: 'New chat' });
  for (const name of people) {
    await sheet.getByRole('searchbox').fill(name);
    await sheet.getByRole('button', { name: `Add ${name}` }).click();
    await sheet.getByRole('checkbox', { name }).waitFor();
  }
  await sheet.getByRole('button', { name: /^(Start the chat|Make a group)/ }).click();
  await sheet.waitFor({ state: 'detached' });
}

export const row = (page: Page, text: string) =>
  page.locator(`.parley-message[aria-label*="${text}"]`).last();
export const field = (page: Page) => page.locator('.parley-composer textarea');

export async function say(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await field(page).press('Enter');
  await row(page, text).waitFor();
}

export const conversation = (page: Page, name: string) =>
  page.locator('.parley-conversation', { hasText: name }).first();
