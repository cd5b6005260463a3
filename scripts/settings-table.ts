// The table of settings in docs/operations/settings.md, made from config.ts: npm run generate writes it, npm run check checks it
// (--check).
import { readFileSync, writeFileSync } from 'node:fs';
import { settings } from '../packages/server/src/config.ts';

const begin = '<!-- settings: written by npm run generate -->';
const end = '<!-- end of settings -->';

/** Links are written as from the root. */
const cell = (text: string): string =>
  text.replaceAll('|', '\\|').replaceAll('](docs/operations/', '](').replaceAll('](docs/', '](../');
const rows = settings.map(({ name, fallback, text }) => {
  const shown = fallback ? ` \`${cell(fallback)}\`` : '';
  return `| \`${name}\` |${shown} | ${cell(text)} |`;
});
const table = ['| Setting | Default | What it does |', '|---|---|---|', ...rows].join('\n');

const name = 'docs/operations/settings.md';
const file = new URL(`../${name}`, import.meta.url);
const page = readFileSync(file, 'utf8');
const [start, stop] = [page.indexOf(begin), page.indexOf(end)];
if (start < 0 || stop < start) throw new Error(`${name} has no place for the settings: ${begin} … ${end}`);
const wanted = `${page.slice(0, start)}${begin}\n\n${table}\n\n${page.slice(stop)}`;

if (wanted !== page) {
  if (process.argv.includes('--check')) {
    console.error(`stale: the settings in ${name} (run npm run generate)`);
    process.exitCode = 1;
  } else {
    writeFileSync(file, wanted);
    console.log(`wrote the settings in ${name}`);
  }
}
