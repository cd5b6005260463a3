import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { fakeDevices, launchChromium } from '../../../server/test/support/chromium.ts';
import { environments } from '../../../server/test/support/service.ts';
import type { Actor, Scene } from '../../../server/test/support/scene.ts';
import type { CallPage } from './page.ts';

/** Real Chromium with a fake camera and microphone, and the SDK in its pages. */

export interface Browsers {
  newTab(): Promise<Tab>;
  url: string;
  close(): Promise<void>;
}

export async function startBrowsers(): Promise<Browsers> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('./page.ts', import.meta.url))],
    bundle: true,
    format: 'iife',
    target: 'es2022',
    platform: 'browser',
    write: false,
  });
  const script = outputFiles[0]!.text.replaceAll('</script', '<\\/script');
  const web = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(`<!doctype html><title>Calls</title><body><script>${script}</script>`);
  });
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
  const folder = await mkdtemp(join(tmpdir(), 'parley-calls-'));
  await writeFile(join(folder, 'voice.wav'), voice());
  const browser = await launchChromium([
    ...fakeDevices,
    '--auto-select-tab-capture-source-by-title=Calls',
    `--use-file-for-fake-audio-capture=${join(folder, 'voice.wav')}`,
  ]);
  const newTab = async (): Promise<Tab> => {
    const context = await browser.newContext();
    const page = await context.newPage();
    page.on('pageerror', (error) => console.log(`page error: ${error.message}`));
    return {
      evaluate: (run, given) => page.evaluate(run as (given: unknown) => unknown, given) as Promise<any>,
      goto: (to) => page.goto(to),
      reload: () => page.reload(),
      close: () => context.close(),
    };
  };
  return {
    newTab,
    url: `http://127.0.0.1:${(web.address() as AddressInfo).port}/`,
    close: async () => {
      await browser.close();
      web.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Somebody who speaks: tones that change, with gaps. The browser's own beeps are too short to be taken for speech. */
function voice(): Buffer {
  const rate = 48_000;
  const samples = Buffer.alloc(rate * 4 * 2);
  for (let i = 0; i < rate * 4; i++) {
    const word = Math.floor(i / (rate * 0.15));
    const on = word % 4 !== 3;
    const tone = 250 + ((word * 137) % 700);
    samples.writeInt16LE(on ? Math.round(9_000 * Math.sin((2 * Math.PI * tone * i) / rate)) : 0, i * 2);
  }
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + samples.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36);
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

/** A page of a browser, whichever it is. */
export interface Tab {
  evaluate<G>(run: (given: G) => unknown, given: G): Promise<any>;
  goto(url: string): Promise<unknown>;
  reload(): Promise<unknown>;
  close(): Promise<unknown>;
}

type Ask = {
  [K in keyof CallPage]: (...args: Parameters<CallPage[K]>) => Promise<Awaited<ReturnType<CallPage[K]>>>;
};

/** A person in front of a page. */
export interface Person extends Ask {
  actor: Actor;
  tab: Tab;
  /** Asks until it holds. */
  until(what: string, holds: () => Promise<boolean>): Promise<void>;
  /** Pictures and sound arrive: both have grown since this was asked. */
  growing(pictures?: boolean): Promise<void>;
}

const patienceMs = 60_000;

export async function person(
  { newTab, url }: Pick<Browsers, 'newTab' | 'url'>,
  service: { url: string },
  scene: Scene,
  actor?: Actor,
): Promise<Person> {
  const who = actor ?? (await scene.actor());
  const tab = await newTab();
  const signIn = async (): Promise<void> => {
    const given = { url: service.url, env: environments.dev.id, token: scene.token(who) };
    await tab.evaluate(
      (options) => (globalThis as unknown as { page: CallPage }).page.signIn(options),
      given,
    );
  };
  await tab.goto(url);
  await signIn();
  const asks = new Proxy({} as Ask, {
    get:
      (_target, name: string) =>
      (...args: unknown[]) =>
        tab.evaluate(
          ([method, given]) =>
            (globalThis as unknown as { page: Record<string, (...a: unknown[]) => unknown> }).page[
              method as string
            ]!(...(given as unknown[])),
          [name, args] as const,
        ),
  });
  const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
    const deadline = Date.now() + patienceMs;
    while (!(await holds())) {
      if (Date.now() > deadline)
        throw new Error(
          `${what} did not happen; shown: ${JSON.stringify(await asks.shown())}, received ${JSON.stringify(await asks.received())}, errors ${JSON.stringify(await asks.errors())}, codecs ${JSON.stringify(await asks.codecs())}`,
        );
      await delay(100);
    }
  };
  return new Proxy(
    {
      actor: who,
      tab,
      until,
      signInAgain: signIn,
      // calls_unavailable (docs/reference/errors.md): a media node that is busy for a moment takes calls again soon.
      start: async (...given: Parameters<Ask['start']>) => {
        for (const deadline = Date.now() + patienceMs; ; await delay(500))
          try {
            return await asks.start(...given);
          } catch (error) {
            if (!/calls_unavailable/.test(String(error)) || Date.now() > deadline) throw error;
          }
      },
      growing: async (pictures = true) => {
        const before = await asks.received();
        await until('media', async () => {
          const now = await asks.received();
          return now.energy > before.energy && (!pictures || now.frames > before.frames + 2);
        });
      },
    } as unknown as Person,
    {
      get: (own, name: string) =>
        name in own ? own[name as keyof Person] : name === 'then' ? undefined : asks[name as keyof Ask],
    },
  );
}

/** The page is loaded anew, as by its user. */
export async function reload(one: Person): Promise<void> {
  await one.tab.reload();
  await (one as unknown as { signInAgain(): Promise<void> }).signInAgain();
}
