import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseOptions, UsageError } from '../src/options.ts';
import { insertBlock, plotsOf, renderResults } from '../src/report/page.ts';
import { renderSummary } from '../src/report/summary.ts';
import { barPlot } from '../src/report/svg.ts';
import { table } from '../src/report/tables.ts';
import { judgeTargets, storeShares } from '../src/report/targets.ts';
import { merged, Results } from '../src/results.ts';
import type { ResultsFile } from '../src/results.ts';

function measured(): ResultsFile {
  const results = new Results();
  const add = (workload: string, server: string, metric: string, unit: string, ...values: number[]) =>
    values.forEach((value) => results.add(workload, server, metric, unit, value));
  add('max', 'parley', 'acknowledged', '/s', 10_000, 11_000, 9_000);
  add('max', 'socketio-group', 'acknowledged', '/s', 5_000, 5_000, 5_000);
  add('max', 'ws', 'acknowledged', '/s', 20_000, 20_000, 20_000);
  for (const workload of ['max', 'send']) {
    add(workload, 'parley', 'CPU per delivery', 'µs', 9, 10, 11);
    add(workload, 'ws', 'CPU per delivery', 'µs', 10, 10, 10);
  }
  add('light', 'parley', 'ack p50', 'ms', 1, 1.2, 0.9);
  add('idle', 'parley', '2000 sockets', 'KB', 20);
  add('idle', 'parley', '10000 sockets', 'KB', 11);
  add('history', 'parley', '10,000 messages, head: CPU per page', 'µs', 100);
  add('history', 'parley', '10,000,000 messages, head: CPU per page', 'µs', 200);
  add('storm', 'parley', 'failed', '', 0);
  add('store', 'postgres', '100 rows a commit', '/s', 40_000);
  results.note('first');
  results.note('first');
  const labels = { parley: 'Parley', ws: 'bare `ws`', 'socketio-group': 'Socket.IO | group' };
  return {
    at: '2026-01-02T03:04:05Z',
    machine: [['Memory', '4 GB']],
    labels,
    rows: results.rows,
    notes: results.notes,
  };
}

test('targets are judged by the ratio of each round', () => {
  const judged = judgeTargets(measured().rows);
  const find = (part: string) => judged.find((j) => j.what.includes(part))!;
  assert.deepEqual(
    { met: find('to Socket.IO').met, measured: find('to Socket.IO').measured },
    { met: true, measured: '2 (1.8–2.2) ×' },
  );
  const ws = find('the same, to the bare');
  assert.equal(ws.met, false);
  assert.ok(Math.abs(ws.short - 0.667) < 0.001);
  assert.equal(find('CPU per delivery at the maximum').met, true);
  assert.equal(find('ejabberd').met, null);
  assert.equal(find('p50 at 200').met, true);
  assert.equal(find('RSS per idle').met, true, 'the largest crowd counts');
  assert.equal(find('history page at the head').met, false);
  assert.equal(find('history page deep').met, null);
  assert.equal(find('storm, all at once: failed').met, true);
});

test('the page says for each target whether it is met, or by how much not', () => {
  const page = renderResults(measured(), 'performance');
  assert.match(page, /\| at least 1\.8 × \| 2 \(1\.8–2\.2\) × \| yes \|/);
  assert.match(page, /\| no, by 66\.7 % \|/);
  assert.match(page, /Socket\.IO \\\| group/);
  assert.match(page, /!\[.*\]\(performance\/maximum\.svg\)/);
  assert.equal(page.match(/- first/g)!.length, 1);
  assert.match(storeShares(measured().rows)[0]!, /25 % of the rows/);
});

test('the terminal gets the comparison without what was not measured', () => {
  const text = renderSummary(measured());
  assert.match(text, /Maximum/);
  assert.doesNotMatch(text, /not measured/);
});

test('results replace those of the last run and nothing else', () => {
  const first = insertBlock('# Title\n\nText.\n', 'results', 'one');
  const second = insertBlock(`${first}\nAfter.\n`, 'results', 'two');
  assert.match(second, /^# Title\n\nText\.\n/);
  assert.match(second, /two/);
  assert.doesNotMatch(second, /one/);
  assert.match(second, /After\.\n$/);
});

test('plots are well-formed and as long as their values', () => {
  const svg = barPlot('A & B <c>', ' µs', [
    { label: 'own', own: true, median: 50, low: 40, high: 60 },
    { label: 'peer', own: false, median: 100, low: 100, high: 100 },
    { label: 'unknown', own: false, median: NaN, low: NaN, high: NaN },
  ]);
  assert.match(svg, /A &amp; B &lt;c&gt;/);
  const widths = [...svg.matchAll(/<rect x="\d+" y="\d+" width="([\d.]+)"/g)].map((m) => Number(m[1]));
  assert.equal(widths.length, 2);
  assert.ok(Math.abs(widths[1]! / widths[0]! - 2) < 0.01);
  assert.doesNotMatch(svg, /NaN|unknown/);
  assert.deepEqual(
    plotsOf(measured()).map((p) => p.name),
    ['maximum', 'send-cpu', 'history'],
  );
});

test('a table keeps its columns whatever a cell holds', () => {
  assert.equal(table(['a', 'b'], [['1|2', 'x\ny']]), '| a | b |\n| --- | --- |\n| 1\\|2 | x y |');
});

test('options: defaults, quick, and what is refused', () => {
  const full = parseOptions([]);
  assert.equal(full.rounds, 3);
  assert.equal(full.out, 'docs/performance.md');
  assert.ok(full.workloads.includes('growth') && full.servers.includes('prosody'));
  const quick = parseOptions(['--quick']);
  assert.equal(quick.out, null);
  assert.ok(!quick.workloads.includes('growth') && quick.deadlineMs < 10 * 60_000);
  assert.deepEqual(parseOptions(['send', '--servers', 'ws,parley', '--seconds', '2']).servers, [
    'ws',
    'parley',
  ]);
  assert.throws(() => parseOptions(['nothing']), UsageError);
  assert.throws(() => parseOptions(['--servers', 'mqtt']), UsageError);
  assert.throws(() => parseOptions(['--rounds', '0']), UsageError);
});

test('a run of some workloads replaces what they measured before, and leaves the others', () => {
  const file = (rows: [string, number][], notes: string[]): ResultsFile => ({
    at: '',
    machine: [],
    labels: { parley: 'Parley' },
    rows: rows.map(([workload, value]) => ({
      workload,
      server: 'parley',
      metric: 'm',
      unit: '',
      values: [value],
    })),
    notes,
  });
  const both = merged(
    file(
      [
        ['send', 1],
        ['idle', 2],
      ],
      ['send, parley: 3 errors', 'idle failed: x'],
    ),
    file([['idle', 4]], ['idle, ws: slow']),
  );
  assert.deepEqual(
    both.rows.map((r) => [r.workload, r.values]),
    [
      ['send', [1]],
      ['idle', [4]],
    ],
  );
  assert.deepEqual(both.notes, ['send, parley: 3 errors', 'idle, ws: slow']);
});
