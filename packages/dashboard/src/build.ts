import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'esbuild';
import { bundle } from '@parley/pages/bundle';
import type { Bundled } from '@parley/pages/bundle';
import { addressOf } from '../browser/api/address.ts';
import { first } from '../browser/first.ts';

const browser = new URL('../browser/', import.meta.url);

/** Lets every page import the frame, which says why. */
const oneFrame = {
  name: 'one-frame',
  setup: ({ onLoad }) =>
    onLoad(
      { filter: /[/]browser[/](pages[/][^/]+|ui[/]palette|api[/]reauth-dialog)[.]tsx$/ },
      async ({ path }) => ({
        loader: 'tsx',
        contents: `import '../frame.ts';\n${await readFile(path, 'utf8')}`,
      }),
    ),
} satisfies Plugin;

/** The web app from its sources, and what each page asks for at first: its address, to which the environment is added. */
export async function bundleDashboard(): Promise<Bundled> {
  const made = await bundle([fileURLToPath(new URL('main.tsx', browser))], {
    plugins: [oneFrame],
    // Chromium then compiles everything while it loads, beside the main thread: most of it is used at once.
    banner: { js: '//# allFunctionsCalledOnLoad' },
  });
  const addresses = Object.entries(first).map(([area, calls]) => [
    area,
    calls.map(([name, input]) => addressOf(name, input, '').slice(0, -'env='.length)),
  ]);
  made.files.set('first.json', Buffer.from(JSON.stringify(Object.fromEntries(addresses))));
  return made;
}

export const build = async (): Promise<Bundled['files']> => (await bundleDashboard()).files;
