import { readFile, writeFile } from 'node:fs/promises';
import { insertBlock } from './report/page.ts';
import { renderScaling } from './report/scaling-model.ts';
import type { ResultsFile } from './results.ts';

/** node bench/src/scaling.ts [docs/scaling.md]: machine counts from bench/results.json, printed or put into the page. */

const results = new URL('../results.json', import.meta.url);
const path = process.argv[2];
const file = JSON.parse(await readFile(results, 'utf8')) as ResultsFile;
const text = renderScaling(file);
if (path === undefined) process.stdout.write(`${text}\n`);
else await writeFile(path, insertBlock(await readFile(path, 'utf8'), 'scaling', text));
