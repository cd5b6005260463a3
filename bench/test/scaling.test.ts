import assert from 'node:assert/strict';
import { test } from 'node:test';
import { machine, needs, renderScaling, unitCosts, usual } from '../src/report/scaling-model.ts';
import type { UnitCosts } from '../src/report/scaling-model.ts';
import type { ResultsFile, Row } from '../src/results.ts';

const costs: UnitCosts = {
  message: 50e-6,
  database: 40e-6,
  delivery: 2e-6,
  relay: 60e-6,
  login: 800e-6,
  socketBytes: 16_384,
  storedBytes: 300,
  rows: 60_000,
};

test('ten thousand users fit on one machine, without Redis', () => {
  const small = needs(10_000, costs);
  assert.deepEqual(
    { gateways: small.gateways, databases: small.databases, redis: small.redis },
    { gateways: 1, databases: 1, redis: 0 },
  );
});

test('what is dearest decides, and names itself', () => {
  const users = 100_000_000;
  const sockets = users * usual.peakOnlineShare;
  const memory = Math.ceil((sockets * (1e6 + machine.kernelBytes)) / (machine.memoryBytes * machine.fill));
  assert.deepEqual(pick(needs(users, { ...costs, socketBytes: 1e6 })), { gateways: memory, limit: 'memory' });
  assert.equal(needs(users, costs).limit, 'sockets');
  assert.equal(needs(users, { ...costs, delivery: 1 }).limit, 'processor');
  assert.equal(needs(users, { ...costs, login: 1 }).limit, 'reconnecting');
  assert.equal(needs(users, { ...costs, storedBytes: 1e6 }).databaseLimit, 'storage');
  assert.equal(needs(users, { ...costs, rows: 10, storedBytes: 1 }).databaseLimit, 'commits');
  function pick({ gateways, limit }: ReturnType<typeof needs>) {
    return { gateways, limit };
  }
});

test('where members are on several processes, their messages go through Redis, and that costs', () => {
  const users = 100_000_000;
  const free = needs(users, { ...costs, relay: 0 });
  const dear = needs(users, costs);
  assert.equal(free.redis, dear.redis);
  assert.ok(dear.redis > 0);
  const ways = dear.messages * (usual.spreadOver - 1);
  assert.ok(Math.abs((dear.cores - free.cores) / (ways * costs.relay) - 1) < 1e-9);
  assert.equal(needs(10_000, { ...costs, relay: 1 }).cores, needs(10_000, { ...costs, relay: 0 }).cores);
});

test('ten times the users need ten times of everything that is counted in parts', () => {
  const here = { ...costs, relay: 0 };
  const one = needs(1_000_000, here);
  const ten = needs(10_000_000, here);
  for (const key of ['sockets', 'messages', 'deliveries', 'cores', 'storedBytes'] as const)
    assert.ok(Math.abs(ten[key] / one[key] - 10) < 1e-9, key);
});

const row = (workload: string, metric: string, value: number, server = 'parley'): Row => ({
  workload,
  server,
  metric,
  unit: '',
  values: [value],
});
const file: ResultsFile = {
  at: '2026-01-01T00:00:00Z',
  machine: [],
  labels: {},
  notes: [],
  rows: [
    row('bigrooms', 'CPU per delivery', 2),
    row('send', 'CPU per message', 110),
    row('send', 'database CPU per message', 40),
    row('nodes: one process', 'CPU per message', 100),
    row('nodes: two nodes', 'CPU per message', 160),
    row('storm', 'logins, 100 at a time', 2_500),
    row('idle', '2000 sockets, each in a group of 10', 99),
    row('idle', '10000 sockets, each in a group of 10', 16),
    row('history', 'stored per message', 300),
    row('store', '100 rows a commit', 60_000, 'postgres'),
  ],
};

test('unit costs come out of a run’s results', () => {
  const found = unitCosts(file);
  for (const key of Object.keys(costs) as (keyof UnitCosts)[])
    assert.ok(Math.abs(found[key] / costs[key] - 1) < 1e-9, `${key}: ${found[key]}`);
  assert.match(renderScaling(file), /\| Monthly users \| 10,000 \| 1,000,000 \| 100,000,000 \|/);
});

test('without a measurement there is no table', () => {
  const rows = file.rows.filter((r) => r.workload !== 'storm');
  assert.throws(() => unitCosts({ ...file, rows }), /logins/);
});
