import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { createApi } from '../../server/test/support/api.ts';
import { startService } from '../../server/test/support/service.ts';
import { use } from '../../server/test/support/use.ts';
import { openPage, signIn } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';

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

    await page.getByRole('button', { name: 'Create a key and fill it in' }).click();
    await page.getByText('This is shown once').waitFor();
    const codeOf = async (name: string) => {
      await page.getByRole('tab', { name, exact: true }).click();
      return page.getByLabel(`With ${name}`, { exact: true }).innerText();
    };
    const run = (program: string, args: string[], env: Record<string, string>) =>
      promisify(execFile)(program, args, {
        cwd: fileURLToPath(new URL('../../..', import.meta.url)),
        env: { PATH: process.env['PATH'] ?? '', ...env },
      });
    const code = await codeOf('curl');
    const [secretKey] = /sk_live_\w+/.exec(code)!;
    const [node, inBrowser, react] = [await codeOf('Node'), await codeOf('Browser'), await codeOf('React')];
    await run('bash', ['-c', code], {});

    await page.getByRole('link', { name: 'See the conversation' }).click();
    await page.getByText('Hello, Bob!').waitFor();

    const asModule = (text: string) =>
      run(process.execPath, ['--input-type=module', '-e', text], { PARLEY_SECRET_KEY: secretKey });
    await asModule(node);
    const { body } = await createApi(service.url, secretKey)('POST', '/v1/tokens', { userId: 'alice' });
    const sent = `await new Promise((sent) => client.on('sent', sent)); process.exit();`;
    await asModule(
      `globalThis.fetch = new Proxy(fetch, { apply: (call, of, [to, ...rest]) =>
        to === '/chat-token' ? Promise.resolve(new Response('${body.token}')) : Reflect.apply(call, of, [to, ...rest]) });
      ${inBrowser}\n${sent}`,
    );
    await page.reload();
    await page.getByText('Hello, Bob!').nth(2).waitFor();

    // The component, with the client of the browser's example, in a page of the customer.
    const { outputFiles } = await build({
      bundle: true,
      write: false,
      format: 'esm',
      jsx: 'automatic',
      logLevel: 'error',
      define: { 'process.env.NODE_ENV': '"production"' },
      stdin: {
        contents: `import { createRoot } from 'react-dom/client';\n${react}\n${inBrowser}
          createRoot(document.body).render(<Chat client={client} conversationId={chat.id} />);`,
        loader: 'jsx',
        resolveDir: import.meta.dirname,
      },
    });
    const customer = await (await browser.newContext({ bypassCSP: true })).newPage();
    customer.on('pageerror', (error) => problems.push(`customer: ${error.message}`));
    await customer.route('**/chat-token', (route) => route.fulfill({ body: body.token }));
    await customer.goto(`${service.url}/healthz`);
    await customer.addScriptTag({ type: 'module', content: outputFiles![0]!.text });
    await customer.getByText('Hello, Bob!').nth(3).waitFor();
    await customer.getByRole('button', { name: 'Say hello' }).click();
    await customer.getByText('Hello, Bob!').nth(4).waitFor();
    assert.deepEqual(problems, []);
  });
});
