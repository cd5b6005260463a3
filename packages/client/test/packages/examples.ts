import assert from 'node:assert/strict';
import { cp, mkdir, readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { launchChromium } from '../../../server/test/support/chromium.ts';
import { onPath } from '../../../../scripts/test-cache.ts';
import * as npmStart from '../../../server/test/start/npm-start.ts';
import type { Started } from '../../../server/test/start/npm-start.ts';
import { project, react19, run, shell } from './tarballs.ts';
import type { Tarballs } from './tarballs.ts';

/** Every program of examples/ does what it says, with the packages as they are published. */

interface Options {
  home: string;
  service: { url: string; secretKey: string };
  packages: () => Tarballs;
  /** Asks the service with the secret key. */
  parley: (path: string, body?: unknown) => Promise<any>;
  hosts: string | undefined;
}

const source = join(npmStart.checkout, 'examples');
const limit = { timeout: 5 * 60_000 };
const mostLines = 100;

function leftOut(what: string, program: string): void {
  console.log(`!!! LEFT OUT: THE EXAMPLE IN ${what.toUpperCase()}: there is no ${program}.`);
}

export function testExamples({ home, service, packages, parley, hosts }: Options): void {
  const folder = join(home, 'examples');
  const running: Started[] = [];

  before(async () => {
    const { client, sdk, react } = packages();
    // What their manifests ask for, installed once for all of them.
    await project(folder, [client, sdk, react, ...react19, 'express@5.3.0', 'fastify@5.12.8']);
    for (const name of [
      'token-server-express',
      'token-server-fastify',
      'bot',
      'webhook-receiver',
      'before-send-hook',
      'vite-app',
    ])
      await cp(join(source, name), join(folder, name), { recursive: true });
  }, limit);
  after(async () => {
    for (const one of running) {
      if (one.process.exitCode === null && one.process.signalCode === null)
        process.kill(-one.process.pid!, 'SIGKILL');
      await one.exited;
    }
  });

  /** Starts an example and waits until it says that it is ready; it gives its address if it has one. */
  async function start(command: string[], cwd: string, env: Record<string, string>, ready: RegExp) {
    const settings = { PARLEY_URL: service.url, PARLEY_SECRET_KEY: service.secretKey };
    const one = npmStart.run(command, { cwd, env: { ...shell, ...settings, ...env } });
    running.push(one);
    let ended: number | string | null | undefined;
    void one.exited.then((code) => (ended = code ?? 'ended'));
    await npmStart.until(() => ended !== undefined || ready.test(one.output()));
    assert.equal(ended, undefined, one.output());
    return { one, url: /http:\/\/127\.0\.0\.1:\d+/.exec(one.output())?.[0] ?? '' };
  }

  /** Signs in, and uses the token that comes. */
  async function givesTokens(url: string): Promise<void> {
    const signIn = (password: string) =>
      fetch(`${url}/sign-in`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ user: 'alice', password }),
      });
    assert.equal((await signIn('x')).status, 401);
    assert.equal((await fetch(`${url}/chat-token`)).status, 401);
    const answer = await signIn('wonderland');
    assert.ok(answer.ok, String(answer.status));
    const cookie = answer.headers.get('set-cookie')!.split(';')[0]!;
    const token = await (await fetch(`${url}/chat-token`, { headers: { cookie } })).text();
    const asAlice = { headers: { authorization: `Bearer ${token}` } };
    assert.equal((await fetch(`${service.url}/v1/conversations`, asAlice)).status, 200);
  }

  /** Forged ones are refused, and a message of the service arrives. */
  async function takesWebhooks(
    path: string,
    begin: (env: Record<string, string>) => Promise<{ one: Started; url: string }>,
  ): Promise<string> {
    const port = String(await npmStart.freePort());
    const address = `http://127.0.0.1:${port}${path}`;
    const { secret } = await parley('/v1/webhooks', { url: address, events: ['message.created'] });
    const { one, url } = await begin({ PORT: port, WEBHOOK_SECRET: secret });
    const forged = await fetch(address, {
      method: 'POST',
      headers: {
        'webhook-id': 'evt_x',
        'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
        'webhook-signature': 'v1,eA==',
      },
      body: '{"type":"message.created"}',
    });
    assert.equal(forged.status, 400);
    const { id } = await parley('/v1/conversations', { type: 'direct', members: ['alice', 'bob'] });
    await parley(`/v1/conversations/${id}/messages`, { senderId: 'alice', text: `for ${port}` });
    await npmStart.until(() => one.output().includes(`message.created alice: for ${port}`));
    return url;
  }

  it('no example is longer than a hundred lines', async () => {
    const small = (await readdir(source, { withFileTypes: true }))
      .filter((entry) => entry.isDirectory() && !/^(call-client|history-receiver)$/.test(entry.name))
      .map((entry) => entry.name);
    assert.deepEqual(small.sort(), [
      'before-send-hook',
      'bot',
      'go-server',
      'python-server',
      'token-server-express',
      'token-server-fastify',
      'vite-app',
      'webhook-receiver',
    ]);
    for (const name of small)
      for (const file of await readdir(join(source, name)))
        if (/\.(mjs|js|jsx|py|go|html)$/.test(file)) {
          const lines = (await readFile(join(source, name, file), 'utf8')).trimEnd().split('\n').length;
          assert.ok(lines <= mostLines, `${name}/${file} has ${lines} lines`);
        }
  });

  for (const name of ['token-server-express', 'token-server-fastify'])
    it(`${name}: signs in, and gives tokens that work`, limit, async () => {
      const { url } = await start(['node', 'server.mjs'], join(folder, name), { PORT: '0' }, /listening on/);
      await givesTokens(url);
    });

  it('bot: answers what is asked, also what was asked while it was away', limit, async () => {
    const cwd = join(folder, 'bot');
    const answersTo = async (text: string, meanwhile: () => Promise<void>) => {
      await parley(`/v1/conversations/${conversation.id}/messages`, { senderId: 'alice', text });
      await meanwhile();
      await npmStart.until(async () => {
        const { data } = await parley(`/v1/conversations/${conversation.id}/messages`);
        return data.some(
          (m: any) => m.senderId === 'helper-bot' && /know|rolled/.exec(m.text)?.[0] === expected[text],
        );
      });
    };
    const expected: Record<string, string> = { '/help': 'know', '/roll': 'rolled' };
    const begin = () => start(['node', 'bot.mjs'], cwd, {}, /is connected/);
    const first = await begin();
    const conversation = await parley('/v1/conversations', {
      type: 'direct',
      members: ['alice', 'helper-bot'],
    });
    await answersTo('/help', async () => undefined);
    first.one.process.kill('SIGTERM');
    await first.one.exited;
    await answersTo('/roll', async () => void (await begin()));
  });

  it('webhook-receiver: refuses what is forged, and takes what is signed', limit, async () => {
    const cwd = join(folder, 'webhook-receiver');
    await takesWebhooks('/', (env) => start(['node', 'receiver.mjs'], cwd, env, /listening on/));
  });

  it('before-send-hook: rejects, rewrites and allows', limit, async () => {
    const port = String(await npmStart.freePort());
    const authorization = `Bearer ${service.secretKey}`;
    const headers = { authorization, 'content-type': 'application/json' };
    const set = await fetch(`${service.url}/v1/hooks/before-send`, {
      method: 'PUT',
      headers,
      body: JSON.stringify({ url: `http://127.0.0.1:${port}`, servers: true, timeoutMs: 3_000 }),
    });
    const { secret } = (await set.json()) as { secret: string };
    const cwd = join(folder, 'before-send-hook');
    await start(['node', 'hook.mjs'], cwd, { PORT: port, HOOK_SECRET: secret }, /listening on/);
    const { id } = await parley('/v1/conversations', { type: 'direct', members: ['alice', 'bob'] });
    const say = async (text: string) => {
      const body = JSON.stringify({ senderId: 'alice', text });
      const answer = await fetch(`${service.url}/v1/conversations/${id}/messages`, {
        method: 'POST',
        headers,
        body,
      });
      const said = (await answer.json()) as { text?: string; error?: { message: string } };
      return said.error?.message ?? said.text;
    };
    assert.equal(await say('Visit our casino'), 'Advertising is not welcome here.');
    assert.equal(await say('Call 030 1234567'), 'Call (number hidden)');
    assert.equal(await say('Hello'), 'Hello');
    await fetch(`${service.url}/v1/hooks/before-send`, { method: 'DELETE', headers: { authorization } });
  });

  if (!onPath('python3')) leftOut('Python', 'python3');
  else
    it('python-server: tokens and webhooks', limit, async () => {
      const command = ['python3', 'server.py'];
      const begin = (env: Record<string, string>) =>
        start(command, join(source, 'python-server'), env, /listening/);
      await givesTokens(await takesWebhooks('/webhooks', begin));
    });

  if (!onPath('go')) leftOut('Go', 'go');
  else
    it('go-server: tokens and webhooks', limit, async () => {
      const program = join(home, 'go-server');
      // The standard library is all that it needs, so nothing is fetched.
      const local = { GOPROXY: 'off', GOTOOLCHAIN: 'local', GOTELEMETRY: 'off' };
      await run('go', ['build', '-o', program, '.'], join(source, 'go-server'), local);
      const begin = (env: Record<string, string>) => start([program], home, env, /listening/);
      await givesTokens(await takesWebhooks('/webhooks', begin));
    });

  it('vite-app: somebody signs in and sends a message', { ...limit, skip: hosts === undefined }, async () => {
    const cwd = join(folder, 'token-server-express');
    const tokens = await start(['node', 'server.mjs'], cwd, { PORT: '0' }, /listening on/);
    const app = join(folder, 'vite-app');
    const vite = join(hosts!, 'node_modules/vite/bin/vite.js');
    const env = { VITE_PARLEY_URL: service.url, TOKEN_SERVER: tokens.url, NO_COLOR: '1' };
    await run(process.execPath, [vite, 'build', '--logLevel', 'error'], app, env);
    await mkdir(join(app, 'dist'), { recursive: true });
    const port = String(await npmStart.freePort());
    const preview = ['node', vite, 'preview', '--host', '127.0.0.1', '--port', port, '--strictPort'];
    const page = await start(preview, app, env, /http:\/\/127\.0\.0\.1/);
    const browser = await launchChromium();
    try {
      const tab = await browser.newPage();
      tab.setDefaultTimeout(2 * 60_000);
      await tab.goto(page.url);
      await tab.fill('[name=user]', 'alice');
      await tab.fill('[name=password]', 'wonderland');
      await tab.click('text=Sign in');
      const composer = tab.locator('.parley-chat textarea');
      await composer.fill('Hello from a page');
      await composer.press('Enter');
      await tab.getByRole('log').getByText('Hello from a page').waitFor();
      await npmStart.until(async () => {
        const { data } = await parley('/v1/conversations?userId=alice');
        return data.some((one: any) => one.lastMessage?.text === 'Hello from a page');
      });
    } finally {
      await browser.close();
    }
  });
}
