// What pages load before they show anything must stay small, minified and gzipped: the client SDK without calls and without features, which
// load at their first use or are left out by bundlers where nobody uses them, and what the React kit adds to it and to React, without calls, and
// without what loads when it is first shown: chosen files, people to mention, the emoji, the viewer of pictures, the list of pins, what a message offers, polls, the form of a report, films, sounds and voice notes.
// Each feature of the client is small, too.
import { readdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const kB = 1024;
const packages = [
  {
    name: 'packages/client',
    entry: 'src/index.ts',
    limit: 16 * kB,
    external: ['node:*', './features/*', '../features/*'],
  },
  {
    name: 'packages/react',
    entry: 'src/index.ts',
    limit: 25 * kB,
    external: [
      'react',
      'react-dom',
      'react/jsx-runtime',
      '@parley/client',
      './chips.tsx',
      './emoji.tsx',
      './long-list.tsx',
      './message-actions.tsx',
      './message-tools.tsx',
      './viewer.tsx',
      './pins.tsx',
      './player.tsx',
      './poll-card.tsx',
      './poll-form.tsx',
      './report-dialog.tsx',
      './suggestions.tsx',
      './voice.tsx',
    ],
  },
  ...readdirSync('packages/client/src/features').map((file) => ({
    name: 'packages/client',
    entry: `src/features/${file}`,
    limit: 4 * kB,
    external: ['./*', '../*'],
  })),
];

for (const { name, entry, limit, external } of packages) {
  const { outputFiles } = await build({
    entryPoints: [`${name}/${entry}`],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    jsx: 'automatic',
    external,
    write: false,
    logLevel: 'error',
  });
  const size = outputFiles.reduce((sum, file) => sum + gzipSync(file.contents, { level: 9 }).length, 0);
  console.log(`${name}/${entry}: ${size} of ${limit} bytes, minified and gzipped`);
  if (size > limit) process.exitCode = 1;
}
