import assert from 'node:assert/strict';
import axe from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { owner } from '../../server/test/support/service.ts';

/** The dashboard in a real Chromium. Every page is watched: what it asks of other places, errors, and what the policy refused. */

export { owner };

export interface Watched {
  page: Page;
  context: BrowserContext;
  /** What should not have happened. */
  problems: string[];
}

/** @param url the only place that the page may speak to. */
export async function openPage(browser: Browser, url: string): Promise<Watched> {
  const context = await browser.newContext({
    viewport: desktop,
    reducedMotion: 'reduce',
    timezoneId: 'Europe/Berlin',
  });
  context.setDefaultTimeout(60_000);
  const problems: string[] = [];
  await context.exposeFunction('policyRefused', (what: string) => problems.push(`policy: ${what}`));
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      const report = (globalThis as unknown as { policyRefused: (what: string) => void }).policyRefused;
      report(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  const page = await context.newPage();
  page.on('request', (request) => {
    const asked = request.url();
    if (!asked.startsWith(`${url}/`) && !asked.startsWith('data:')) problems.push(`asked for ${asked}`);
  });
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on('console', (message) => {
    // Refusals of the service are part of the tests; the browser notes each.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      problems.push(`console: ${message.text()}`);
  });
  return { page, context, problems };
}

export async function signIn(
  page: Page,
  url: string,
  who: { email: string; password: string } = owner,
): Promise<void> {
  await page.goto(`${url}/dashboard`);
  await page.getByLabel('E-mail').fill(who.email);
  await page.getByLabel(/^Password/).fill(who.password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('navigation', { name: 'Areas' }).waitFor({ state: 'attached' });
}

export const desktop = { width: 1280, height: 800 };
export const phone = { width: 375, height: 740 };

/** What axe calls serious or critical, WCAG 2.2 AA and its own good practice. */
export async function accessibilityProblems(page: Page, rules: string[] | null = null): Promise<string[]> {
  const loaded = await page.evaluate(() => 'axe' in globalThis);
  // Through the debugger: the page's own policy lets no script in.
  if (!loaded) await page.evaluate(axe.source);
  const violations = await page.evaluate(async (only) => {
    const { axe: loaded } = globalThis as unknown as { axe: typeof axe };
    const runOnly = only === null ? {} : { runOnly: { type: 'rule' as const, values: only } };
    return (await loaded.run({ resultTypes: ['violations'], ...runOnly })).violations;
  }, rules);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.map((node) => `${id}: ${node.html.slice(0, 200)} ${node.failureSummary}`),
    );
}

/** Nothing is wider than the screen. */
export async function assertFits(page: Page, what: string): Promise<void> {
  const fits = (): boolean => document.scrollingElement!.scrollWidth <= document.documentElement.clientWidth;
  // The frame follows a change of the width a moment later.
  await page.waitForFunction(fits, undefined, { timeout: 20_000 }).catch(async () => {
    const wide = await page.evaluate(() => document.scrollingElement!.scrollWidth);
    assert.fail(`${what} is ${wide} px wide`);
  });
}

/** Nothing on the page is on its way any more. */
export const loaded = (page: Page) =>
  page.waitForFunction(
    () => ![...document.querySelectorAll('[role=status]')].some((e) => e.textContent.startsWith('Loading')),
  );
