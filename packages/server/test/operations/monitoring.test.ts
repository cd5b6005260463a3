import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { metricNames, repositoryFile, repositoryPath } from './files.ts';

/** docs/operations/monitoring.md. That docs/operations/metrics.md lists what the service shows is a test of core/metrics. */

const documented = metricNames(repositoryFile('docs/operations/metrics.md'));
const rules = repositoryFile('deploy/prometheus/parley.rules.yml');
const dashboard = JSON.parse(repositoryFile('deploy/grafana/parley.json')) as {
  panels: { title: string; type: string; id: number; targets?: { expr: string }[] }[];
};
const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name!);

const promtool = (...args: string[]): void => {
  const checked = spawnSync('promtool', args, { encoding: 'utf8' });
  assert.equal(checked.status, 0, checked.stdout + checked.stderr);
};

describe('alerts', () => {
  it('Prometheus takes the rules, and they fire when they should (promtool check rules, test rules)', () => {
    promtool('check', 'rules', repositoryPath('deploy/prometheus/parley.rules.yml'));
    promtool('test', 'rules', repositoryPath('packages/server/test/operations/alerts.yml'));
  });

  it('use metrics that exist', () => {
    const unknown = [...metricNames(rules)].filter((name) => !documented.has(name));
    assert.deepEqual(unknown, []);
  });

  it('each has a section of the runbook, which it names, and no section is left over', () => {
    const sections = [...repositoryFile('docs/operations/runbook.md').matchAll(/^## (\w+)$/gm)].map(
      ([, name]) => name,
    );
    assert.deepEqual(sections, alerts, 'in the order of the rules');
    const named = [...rules.matchAll(/runbook: docs\/operations\/runbook\.md#(\w+)/g)].map(([, to]) => to);
    assert.deepEqual(
      named,
      alerts.map((name) => name.toLowerCase()),
    );
  });
});

describe('the Grafana dashboard', () => {
  const targets = dashboard.panels.flatMap(({ targets = [] }) => targets);

  it('uses metrics that exist, and every panel has an expression', () => {
    assert.ok(targets.length > 20);
    const unknown = [...metricNames(JSON.stringify(dashboard))].filter((name) => !documented.has(name));
    assert.deepEqual(unknown, []);
    for (const { type, title, targets: own = [] } of dashboard.panels)
      assert.equal(own.length > 0, type !== 'row', title);
    assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
  });

  it('has expressions that Prometheus can read', () => {
    // promtool reads expressions only as rules.
    const written = targets.map(({ expr }, i) => {
      const plain = expr.replaceAll('$__rate_interval', '1m').replaceAll('"$instance"', '".+"');
      return `  - { record: 'panel:${i}', expr: ${JSON.stringify(plain)} }`;
    });
    const folder = mkdtempSync(join(tmpdir(), 'parley-panels-'));
    try {
      const file = join(folder, 'panels.yml');
      writeFileSync(file, `groups:\n- name: panels\n  rules:\n${written.join('\n')}\n`);
      promtool('check', 'rules', file);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
