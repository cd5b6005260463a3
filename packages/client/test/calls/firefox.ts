import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { Tab } from './browser.ts';

/** Debian's Firefox with a fake camera and microphone, driven over WebDriver BiDi. */

const program = '/usr/bin/firefox-esr';
export const hasFirefox = existsSync(program);

const prefs: Record<string, string | number | boolean> = {
  'media.navigator.streams.fake': true,
  'media.navigator.permission.disabled': true,
  'media.autoplay.default': 0,
  'media.peerconnection.ice.loopback': true,
  'media.peerconnection.ice.obfuscate_host_addresses': false,
  // Nothing leaves the machine: what is not on loopback goes to a proxy that does not exist, and no name is looked up.
  'network.proxy.type': 1,
  'network.proxy.socks': '127.0.0.1',
  'network.proxy.socks_port': 9,
  'network.proxy.socks_remote_dns': true,
  'network.proxy.no_proxies_on': '127.0.0.1',
  'network.dns.disabled': true,
  'network.trr.mode': 5,
  'media.gmp-manager.updateEnabled': false,
  'app.update.enabled': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'toolkit.telemetry.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore',
};

export interface Firefox {
  newTab(): Promise<Tab>;
  close(): Promise<void>;
}

export async function startFirefox(): Promise<Firefox> {
  const profile = await mkdtemp(join(tmpdir(), 'parley-firefox-'));
  const lines = Object.entries(prefs).map(
    ([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});`,
  );
  await writeFile(join(profile, 'user.js'), lines.join('\n'));
  const args = [
    '--headless',
    '--no-remote',
    '--profile',
    profile,
    '--remote-debugging-port=0',
    'about:blank',
  ];
  // Its home is the profile, so that it finds nothing of the user's.
  const env = { PATH: process.env['PATH'], HOME: profile, MOZ_CRASHREPORTER_DISABLE: '1' };
  const child = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  const ended = once(child, 'exit');
  const end = async (): Promise<void> => {
    if (child.exitCode === null && child.pid) process.kill(-child.pid, 'SIGKILL');
    await ended;
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  let said = '';
  const address = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      said = `${said}${line}\n`.slice(-4_000);
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(line);
      if (found) resolve(found[1]!);
    });
    void ended.then(() => reject(new Error(`Firefox ended:\n${said}`)));
  });
  const socket = new WebSocket(`${address}/session`);
  await once(socket, 'open');
  const waiting = new Map<number, (answer: Answer) => void>();
  socket.on('message', (data: Buffer) => {
    const answer = JSON.parse(data.toString()) as Answer;
    waiting.get(answer.id)?.(answer);
    waiting.delete(answer.id);
  });
  let last = 0;
  const send = async (method: string, params: object): Promise<any> => {
    const id = ++last;
    const answer = await new Promise<Answer>((resolve) => {
      waiting.set(id, resolve);
      socket.send(JSON.stringify({ id, method, params }));
    });
    if (answer.type === 'error') throw new Error(`${method}: ${answer.error}: ${answer.message}`);
    return answer.result;
  };
  await send('session.new', { capabilities: {} });
  return {
    newTab: async () => createTab(send),
    close: async () => {
      socket.close();
      await end();
    },
  };
}

interface Answer {
  id: number;
  type: 'success' | 'error';
  result?: unknown;
  error?: string;
  message?: string;
}

async function createTab(send: (method: string, params: object) => Promise<any>): Promise<Tab> {
  const { userContext } = await send('browser.createUserContext', {});
  const { context } = await send('browsingContext.create', { type: 'tab', userContext });
  const evaluate = async (run: string | ((given: never) => unknown), given?: unknown): Promise<any> => {
    const answer = await send('script.callFunction', {
      functionDeclaration: `async (given) => JSON.stringify(await (${String(run)})(JSON.parse(given)))`,
      arguments: [{ type: 'string', value: JSON.stringify(given ?? null) }],
      target: { context },
      awaitPromise: true,
      userActivation: true,
    });
    if (answer.type === 'exception') throw new Error(answer.exceptionDetails.text);
    return answer.result.type === 'string' ? JSON.parse(answer.result.value) : undefined;
  };
  return {
    evaluate,
    goto: (url) => send('browsingContext.navigate', { context, url, wait: 'complete' }),
    reload: () => send('browsingContext.reload', { context, wait: 'complete' }),
    close: () => send('browser.removeUserContext', { userContext }),
  };
}
