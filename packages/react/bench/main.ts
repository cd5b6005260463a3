// npm run bench:kit: a thread of 10,000 messages in Chromium, beside stream-chat-react with a mocked client.
// --quick: one run of each; --only kit or peer.
import { existsSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';
import type { Browser } from 'playwright-core';
import { bundle, fromHere, gzipped, open, startBrowser, weight } from './browser.ts';
import type { Built, Opened } from './browser.ts';
import { firstPaint, memory, rendersPerMessage, scrollUp, tasks, typing } from './measures.ts';
import type { Subject } from './measures.ts';

const quick = process.argv.includes('--quick');
const only = process.argv[process.argv.indexOf('--only') + 1];
const runs = quick ? 1 : 3;
const seconds = quick ? 3 : 10;
/** An hour of one message a second is 3,600 messages. */
const marks = quick ? [1, 300] : [1, 600, 1_200, 1_800, 2_400, 3_000, 3_600];

const kit: Subject & { entry: string } = {
  name: '@parley/react',
  entry: fromHere('long-thread.tsx'),
  row: '.parley-message',
  scroller: '.parley-scroll',
  field: '.parley-composer textarea',
};
const peerFolder = fromHere('../../../bench/kit-peer/');
const peer: Subject & { entry: string } = {
  name: 'stream-chat-react',
  entry: `${peerFolder}page.jsx`,
  row: '.str-chat__message, .str-chat__message-simple',
  scroller: '.str-chat__message-list, [data-virtuoso-scroller]',
  field: '.str-chat textarea, .str-chat [contenteditable]',
};

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const median = (of: readonly number[]): number => [...of].sort((a, b) => a - b)[Math.floor(of.length / 2)]!;
const spread = (of: readonly number[]): string =>
  `${Math.round(median(of))} (${Math.round(Math.min(...of))}–${Math.round(Math.max(...of))})`;

async function times<T>(browser: Browser, built: Built, work: (opened: Opened) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let run = 0; run < runs; run++) {
    const opened = await open(browser, built);
    try {
      results.push(await work(opened));
    } finally {
      await opened.close();
    }
  }
  return results;
}

async function measure(browser: Browser, subject: Subject & { entry: string }): Promise<void> {
  const built = await bundle(subject.entry);
  print(`\n${subject.name}: page ${gzipped(built.js)} bytes of JavaScript gzipped, React included`);
  const ready = async (opened: Opened): Promise<Opened> => {
    await firstPaint(opened, subject);
    return opened;
  };
  const painted = await times(browser, built, (opened) => tasks(opened, () => firstPaint(opened, subject)));
  print(
    `first paint, ms: ${spread(painted.map(({ result }) => result))}; processor ms: ${spread(painted.map(({ cpuMs }) => cpuMs))}`,
  );
  const scrolled = await times(browser, built, async (opened) =>
    ready(opened).then(() => tasks(opened, () => scrollUp(opened, subject, quick ? 120 : 600, 400))),
  );
  for (const one of scrolled) print(`scroll: ${JSON.stringify(one)}`);
  const rendered = await times(browser, built, async (opened) => rendersPerMessage(await ready(opened), 20));
  print(`rows rendered for an incoming message: ${rendered.join(', ')}`);
  const typed = await times(browser, built, async (opened) => {
    await ready(opened);
    return tasks(opened, () => typing(opened, subject, seconds));
  });
  for (const one of typed) print(`typing: ${JSON.stringify(one)}`);
  const opened = await ready(await open(browser, built));
  for (const one of await memory(opened, marks)) print(`memory: ${JSON.stringify(one)}`);
  await opened.close();
}

print(
  `${new Date().toISOString()}, ${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, load ${loadavg()[0]!.toFixed(2)}`,
);
print(`@parley/react without React: ${await weight(fromHere('size-kit.ts'))} bytes gzipped, client included`);
const browser = await startBrowser();
print(`Chromium ${browser.version()}`);
try {
  if (only !== 'peer') await measure(browser, kit);
  if (only !== 'kit' && existsSync(`${peerFolder}node_modules`)) {
    const size = await weight(`${peerFolder}size.js`, { absWorkingDir: peerFolder });
    print(`\nstream-chat-react without React: ${size} bytes gzipped, its client included`);
    await measure(browser, peer);
  }
} finally {
  await browser.close();
}
print(`load at the end ${loadavg()[0]!.toFixed(2)}`);
