import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { startService } from '../../server/test/support/service.ts';
import { use } from '../../server/test/support/use.ts';
import { openPage, signIn, useBrowser } from './browser.ts';

/** From an empty directory to the first message, with nothing but what is printed and shown. */
describe('the first run', () => {
  // Nothing is given, so that the service makes up its own.
  const service = use(
    () =>
      startService({
        env: {
          CHAT_BOOTSTRAP_ENVIRONMENTS: '[{"id":"env_first","kind":"development"}]',
          CHAT_BOOTSTRAP_EMAIL: '',
          CHAT_BOOTSTRAP_PASSWORD: '',
        },
      }),
    (started) => started.dispose(),
  );
  const browser = useBrowser();

  it('prints where the dashboard is and who may sign in; the page leads to the first message', async () => {
    const printed = (name: string): string =>
      new RegExp(`^  ${name} +(\\S+)$`, 'm').exec(service.output())![1]!;
    assert.equal(printed('dashboard'), `${service.url}/dashboard`);
    const { page, problems } = await openPage(browser, service.url);
    await signIn(page, service.url, { email: printed('owner'), password: printed('password') });
    await page.getByText('Waiting for your first message').waitFor();

    await page.getByRole('button', { name: 'Create one' }).click();
    await page.getByText('This is shown once').waitFor();
    const code = await page.getByLabel('With curl').innerText();
    assert.match(code, /sk_live_\w+/);
    await promisify(execFile)('bash', ['-c', code], { env: { PATH: process.env['PATH'] ?? '' } });

    await page.getByRole('link', { name: 'See the conversation' }).click();
    await page.getByText('Hello, Bob!').waitFor();
    assert.deepEqual(problems, []);
  });
});
