import type { ResultsFile, Row } from '../results.ts';
import { valuesOf } from '../results.ts';
import { format, formatSpread, ratios, spread } from '../stats.ts';
import type { Judged } from './targets.ts';

/** Results as Markdown tables. */

const escape = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

export function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map(escape).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

const unique = (values: string[]): string[] => [...new Set(values)];
const titled = (row: Row): string => (row.unit === '' ? row.metric : `${row.metric}, ${row.unit}`);

/** Servers down, metrics across; median and range over the rounds. */
export function workloadTable(file: ResultsFile, workload: string, main: string | null): string {
  const rows = file.rows.filter((r) => r.workload === workload);
  const metrics = unique(rows.map((r) => r.metric));
  const servers = unique(rows.map((r) => r.server));
  const peers = main !== null && servers.length > 1;
  const head = [
    'Server',
    ...metrics.map((m) => titled(rows.find((r) => r.metric === m)!)),
    ...(peers ? [`Parley’s ${main} to this one’s`] : []),
  ];
  const own = peers ? valuesOf(rows, workload, 'parley', main) : [];
  const body = servers.map((server) => [
    file.labels[server] ?? server,
    ...metrics.map((metric) => formatSpread(spread(valuesOf(rows, workload, server, metric)))),
    ...(peers
      ? [server === 'parley' ? '1' : `${formatSpread(ratios(own, valuesOf(rows, workload, server, main)))} ×`]
      : []),
  ]);
  return table(head, body);
}

/** For workloads of one server: metrics down. */
export function metricTable(file: ResultsFile, workload: string): string {
  const rows = file.rows.filter((r) => r.workload === workload);
  return table(
    ['Measured', 'Value'],
    rows.map((r) => [titled(r), formatSpread(spread(r.values))]),
  );
}

export const targetTable = (judged: readonly Judged[]): string =>
  table(
    ['What', 'Target', 'Measured', 'Met'],
    judged.map((j) => [
      j.what,
      j.target,
      j.measured,
      j.met === null
        ? '–'
        : j.met
          ? 'yes'
          : Number.isFinite(j.short)
            ? `no, by ${format(j.short * 100)} %`
            : 'no',
    ]),
  );
