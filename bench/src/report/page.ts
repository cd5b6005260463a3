import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ResultsFile } from '../results.ts';
import { spread } from '../stats.ts';
import { ownSections, sections } from './summary.ts';
import { barPlot } from './svg.ts';
import type { Bar } from './svg.ts';
import { metricTable, table, targetTable, workloadTable } from './tables.ts';
import { judgeTargets, storeShares } from './targets.ts';

/**
 * Puts a run's results into docs/performance.md, between its two marks; what people wrote around them stays. Plots go into a
 * folder beside it.
 */

interface Plot {
  file: string;
  title: string;
  unit: string;
  workload: string;
  /** One server's metrics, or one metric's servers. */
  metric: RegExp;
  by: 'server' | 'metric';
}

const plots: Plot[] = [
  {
    file: 'maximum',
    title: 'Acknowledged messages per second, at the maximum',
    unit: '/s',
    workload: 'max',
    metric: /^acknowledged$/,
    by: 'server',
  },
  {
    file: 'send-cpu',
    title: 'CPU per delivery, send workload, server and database',
    unit: ' µs',
    workload: 'send',
    metric: /^CPU per delivery$/,
    by: 'server',
  },
  {
    file: 'big-rooms',
    title: 'CPU per delivery, big rooms',
    unit: ' µs',
    workload: 'bigrooms',
    metric: /^CPU per delivery$/,
    by: 'server',
  },
  {
    file: 'light-p99',
    title: 'Send to acknowledgement, p99 at 200 messages/s',
    unit: ' ms',
    workload: 'light',
    metric: /^ack p99$/,
    by: 'server',
  },
  {
    file: 'idle',
    title: 'Memory per idle socket, each in a group of 10',
    unit: ' KB',
    workload: 'idle',
    metric: /0000 sockets, each/,
    by: 'server',
  },
  {
    file: 'logins',
    title: 'Logins per second',
    unit: '/s',
    workload: 'storm',
    metric: /^logins/,
    by: 'server',
  },
  {
    file: 'history',
    title: 'CPU per history page, by length of the conversation',
    unit: ' µs',
    workload: 'history',
    metric: /CPU per page$/,
    by: 'metric',
  },
  {
    file: 'list',
    title: 'CPU per page of the conversation list, by its length',
    unit: ' µs',
    workload: 'list',
    metric: /CPU per page$/,
    by: 'metric',
  },
];

export function plotsOf(file: ResultsFile): { name: string; title: string; svg: string }[] {
  return plots.flatMap(({ file: name, title, unit, workload, metric, by }) => {
    const rows = file.rows.filter((r) => r.workload === workload && metric.test(r.metric));
    const bars: Bar[] = rows.map((r) => ({
      ...spread(r.values),
      label: by === 'server' ? (file.labels[r.server] ?? r.server) : r.metric.replace(/: CPU per page$/, ''),
      own: r.server === 'parley',
    }));
    return bars.length === 0 ? [] : [{ name, title, svg: barPlot(title, unit, bars) }];
  });
}

export function renderResults(file: ResultsFile, folder: string): string {
  const has = (workload: string) => file.rows.some((r) => r.workload === workload);
  const images = plotsOf(file).map(({ name, title }) => `![${title}](${folder}/${name}.svg)`);
  const parts = [
    `Measured on ${file.at.slice(0, 10)}. Every cell is the median over the rounds, with the range.`,
    table(['Machine', ''], file.machine),
    '### Targets',
    targetTable(judgeTargets(file.rows)),
    ...storeShares(file.rows).map((line) => `${line}.`),
    ...(images.length === 0 ? [] : ['### Plots', images.join('\n\n')]),
    ...sections
      .filter((s) => has(s.workload))
      .flatMap((s) => [`### ${s.title}`, workloadTable(file, s.workload, s.main)]),
    ...ownSections
      .filter((s) => has(s.workload))
      .flatMap((s) => [`### ${s.title}`, metricTable(file, s.workload)]),
    ...(file.notes.length === 0 ? [] : ['### Notes of this run', file.notes.map((n) => `- ${n}`).join('\n')]),
  ];
  return parts.join('\n\n');
}

/** The page with the part between the name's marks replaced; without marks it is appended. */
export function insertBlock(page: string, name: string, text: string): string {
  const begin = `<!-- ${name}: begin -->`;
  const end = `<!-- ${name}: end -->`;
  const block = `${begin}\n\n${text}\n\n${end}`;
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) return `${page.trimEnd()}\n\n${block}\n`;
  return page.slice(0, from) + block + page.slice(to + end.length);
}

export async function writePage(file: ResultsFile, path: string): Promise<void> {
  const folder = basename(path, '.md');
  await mkdir(join(dirname(path), folder), { recursive: true });
  for (const { name, svg } of plotsOf(file)) await writeFile(join(dirname(path), folder, `${name}.svg`), svg);
  const page = await readFile(path, 'utf8').catch(() => '# Performance\n');
  await writeFile(path, insertBlock(page, 'results', renderResults(file, folder)));
}
