import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parse } from 'csv-parse/sync';
import pg from 'pg';
import type { ApiError } from '@parley/protocol';
import { piecesOf, readRange } from '../../src/features/analytics/range.ts';
import { analytics } from '../../src/features/analytics/operations.ts';
import { startInProcess } from '../cluster/in-process.ts';
import { startParts } from '../cluster/nodes.ts';
import { assertError } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import { environments } from '../support/service.ts';
import { useService } from '../support/use.ts';

const now = Date.UTC(2026, 10, 15, 21, 30);
const read = (input: Parameters<typeof readRange>[0]): [string, string, number] => {
  const range = readRange(input, now);
  const step = range.granularity === 'hour' ? 3_600_000 : 86_400_000;
  return [
    new Date(range.from).toISOString(),
    new Date(range.to).toISOString(),
    (range.to - range.from) / step,
  ];
};

describe('analytics#range: ranges', () => {
  for (const [what, input, expected] of [
    ['the default', {}, ['2026-10-17', '2026-11-16', 30]],
    ['hours by default', { granularity: 'hour' }, ['2026-11-08T22', '2026-11-15T22', 168]],
    ['a leap day', { from: '2024-02-28', to: '2024-03-01' }, ['2024-02-28', '2024-03-01', 2]],
    ['the end of a month', { from: '2026-10-31', to: '2026-11-01' }, ['2026-10-31', '2026-11-01', 1]],
    ['the end of a year', { from: '2025-12-31', to: '2026-01-02' }, ['2025-12-31', '2026-01-02', 2]],
    ['a whole leap year', { from: '2024-01-01', to: '2025-01-01' }, ['2024-01-01', '2025-01-01', 366]],
    [
      'exactly 7 days of hours',
      { from: '2026-11-01', to: '2026-11-08', granularity: 'hour' },
      ['2026-11-01', '2026-11-08', 168],
    ],
    [
      'a time zone',
      { from: '2026-11-01T00:30:00+02:00', to: '2026-11-01T03:00:00-01:00', granularity: 'hour' },
      ['2026-10-31T22', '2026-11-01T04', 6],
    ],
    [
      'an unescaped plus',
      { from: '2026-11-01T01:00:00 01:00', to: '2026-11-02', granularity: 'hour' },
      ['2026-11-01', '2026-11-02', 24],
    ],
    [
      'timestamps inside of days',
      { from: '2026-11-01T23:59:59.999Z', to: '2026-11-03T00:00:00.001Z' },
      ['2026-11-01', '2026-11-04', 3],
    ],
    [
      '`to` is exclusive',
      { from: '2026-11-01', to: '2026-11-02T00:00:00Z' },
      ['2026-11-01', '2026-11-02', 1],
    ],
    [
      'without an offset it is UTC',
      { from: '2026-11-01T10:00', to: '2026-11-01T11:00', granularity: 'hour' },
      ['2026-11-01T10', '2026-11-01T11', 1],
    ],
  ] as const)
    test(what, () => {
      const [from, to, steps] = expected;
      const full = (text: string): string => new Date(text.length > 10 ? `${text}:00Z` : text).toISOString();
      assert.deepEqual(read(input), [full(from), full(to), steps]);
    });

  for (const [what, input, param] of [
    ['reversed', { from: '2026-11-02', to: '2026-11-01' }, 'from'],
    ['empty', { from: '2026-11-01', to: '2026-11-01' }, 'from'],
    ['after `to`, by default', { from: '2027-01-01' }, 'from'],
    ['367 days', { from: '2024-01-01', to: '2025-01-02' }, 'from'],
    ['7 days and an hour', { from: '2026-11-01', to: '2026-11-08T01:00:00Z', granularity: 'hour' }, 'from'],
    ['no such day', { from: '2026-02-29' }, 'from'],
    ['no such month', { to: '2026-13-01' }, 'to'],
    ['no date', { from: 'yesterday' }, 'from'],
    ['a number', { from: '1762905600' }, 'from'],
    ['25 o’clock', { from: '2026-11-01T25:00:00Z' }, 'from'],
    ['the year 0', { from: '0000-01-01' }, 'from'],
    ['the year 0 by its offset', { from: '0001-01-01T00:00:00+01:00', to: '0001-01-02' }, 'from'],
    ['the year 10000 by its offset', { from: '9999-12-31', to: '9999-12-31T23:00:00-01:00' }, 'to'],
  ] as const)
    test(`refused: ${what}`, () => {
      assert.throws(
        () => readRange(input, now),
        (error: ApiError) => error.code === 'invalid_request' && error.param === param,
      );
    });

  test('a range is read as few steps as possible, and every hour of it once', () => {
    const pieces = piecesOf(readRange({ from: '2025-11-15', to: '2026-11-16' }, now));
    assert.equal(pieces.filter(({ step }) => step === 2).length, 11);
    assert.equal(pieces.filter(({ step }) => step === 1).length, 16 + 15);
    const hours = piecesOf(
      readRange({ from: '2026-10-30T22:00Z', to: '2026-11-02T02:00Z', granularity: 'hour' }, now),
    );
    assert.deepEqual(
      hours.map(({ step, at }) => [step, at.slice(0, 13)]),
      [
        [0, '2026-10-30T22'],
        [0, '2026-10-30T23'],
        [1, '2026-10-31T00'],
        [1, '2026-11-01T00'],
        [0, '2026-11-02T00'],
        [0, '2026-11-02T01'],
      ],
    );
  });
});

describe('over REST', () => {
  const { service, scene, server, sql } = useService();

  test('analytics#range: a range that cannot be answered is 400 and says which field', async () => {
    for (const path of ['/v1/analytics', '/v1/usage'])
      for (const query of [
        'from=2026-11-02&to=2026-11-01',
        'from=2024-01-01&to=2026-01-01',
        'from=2026-11-01&to=2026-11-10&granularity=hour',
        'from=nonsense',
        'granularity=week',
      ])
        assertError(await server('GET', `${path}?${query}`), 400, 'invalid_request');
    assertError(await server('GET', '/v1/analytics?nope=1'), 400, 'unknown_field');
    const { body } = await server('GET', '/v1/analytics?from=2024-02-28&to=2024-03-02');
    assert.deepEqual(
      body.series.map((row: { t: string }) => row.t.slice(0, 10)),
      ['2024-02-28', '2024-02-29', '2024-03-01'],
    );
    assert.equal(body.totals.activeUsers, 0);
    assert.deepEqual(body.topConversations, []);
  });

  test('messages at the edges of hours, days and months count in their own', async () => {
    const [a, b] = [await scene.actor(), await scene.actor()];
    const group = await scene.group(a, [b]);
    const [{ env, conv, first, second }] = (await sql(
      `SELECT c.env, c.no AS conv, (SELECT no FROM users WHERE id = $2) AS first, (SELECT no FROM users WHERE id = $3) AS second
       FROM conversations c WHERE c.id = $1`,
      [group.id, a.id, b.id],
    )) as [Record<string, number>];
    const at = [
      '2026-01-31T23:59:59.999Z',
      '2026-02-01T00:00:00.000Z',
      '2026-02-01T00:59:59.999Z',
      '2026-02-28T23:00:00Z',
    ];
    await sql(
      `INSERT INTO activity_notes (at, c_env, c_no, place, usr) SELECT t, ARRAY[$1::int], ARRAY[$2::bigint], '{1}', ARRAY[u]
       FROM unnest($3::timestamptz[], $4::bigint[]) AS x(t, u)`,
      [env, conv, at, [first, first, second, first]],
    );
    const of = async (query: string) => (await server('GET', `/v1/analytics?${query}`)).body;
    const days = await of('from=2026-01-31&to=2026-03-01');
    assert.deepEqual([days.totals.messages, days.totals.activeUsers, days.series.length], [4, 2, 29]);
    assert.deepEqual(
      days.series
        .filter((r: { messages: number }) => r.messages > 0)
        .map((r: Record<string, unknown>) => [String(r['t']).slice(0, 10), r['messages'], r['activeUsers']]),
      [
        ['2026-01-31', 1, 1],
        ['2026-02-01', 2, 2],
        ['2026-02-28', 1, 1],
      ],
    );
    assert.deepEqual((await of('from=2026-02-01&to=2026-03-01')).totals.messages, 3);
    const hours = await of('from=2026-01-31T23:00:00Z&to=2026-02-01T01:00:00Z&granularity=hour');
    assert.deepEqual(
      hours.series.map((r: { messages: number }) => r.messages),
      [1, 2],
    );
    assert.equal(hours.topConversations[0].senders, 2);
    const usage = (await server('GET', '/v1/usage?from=2026-01-31&to=2026-02-02')).body;
    assert.deepEqual(
      usage.data.map((r: { date: string }) => r.date),
      ['2026-01-31', '2026-02-01'],
    );
    assert.deepEqual(
      usage.data.map((r: { mau: number }) => r.mau),
      [1, 2],
    );
    // 31 January 2026 was a Saturday.
    assert.equal(days.heatmap[5][23], 2);
    assert.equal(days.heatmap[6][0], 2);
  });

  test('analytics#csv: format=csv is the series, as a CSV library reads it', async () => {
    const query = 'from=2026-01-31&to=2026-03-01';
    const answer = await fetch(`${service.url}/v1/analytics?${query}&format=csv`, {
      headers: { authorization: `Bearer ${environments.dev.secretKey}` },
    });
    const text = await answer.text();
    assert.equal(answer.headers.get('content-type'), 'text/csv; charset=utf-8');
    const rows = parse(text, { columns: true });
    const { body } = await server('GET', `/v1/analytics?${query}`);
    assert.deepEqual(
      rows,
      body.series.map((row: object) =>
        Object.fromEntries(Object.entries(row).map(([name, value]) => [name, String(value)])),
      ),
    );
    assert.match(text, /^t,messages,[^\n]*\r\n2026-01-31T00:00:00\.000Z,1,/);
  });
});

test('analytics#callers: no message text is read: it works for a role of the store that may read no message', async () => {
  const parts = await startParts();
  const [node] = await startInProcess(parts.env, 1);
  const pool = new pg.Pool({ connectionString: parts.env['DATABASE_URL'], max: 1 });
  try {
    const scene = createScene(node!.url);
    const [a, b] = [await scene.actor(), await scene.actor()];
    const group = await scene.group(a, [b], { name: 'Team' });
    await scene.send(a, group.id, { text: 'a secret' });
    await pool.query(
      `CREATE ROLE counting; GRANT ALL ON ALL TABLES IN SCHEMA public TO counting; REVOKE ALL ON messages FROM counting; SET ROLE counting`,
    );
    await assert.rejects(pool.query('SELECT text FROM messages'), /permission denied/);
    const db = {
      query: async <R extends object>(text: string, values: unknown[] = []): Promise<R[]> =>
        (await pool.query<R>(text, values)).rows,
    };
    await db.query('SELECT count_notes(1000)');
    const [row] = await db.query<{ no: number }>('SELECT no FROM environments WHERE id = $1', [
      environments.dev.id,
    ]);
    const services = {
      ...node!.services,
      analytics: { ...node!.services.analytics, catchUp: () => Promise.resolve() },
    };
    const ctx = { db, services, env: { no: row!.no, plan: 'free' } } as unknown as Parameters<
      typeof analytics
    >[0];
    const report = await analytics(ctx, {});
    assert.ok('totals' in report);
    assert.equal(report.totals.messages, 1);
    assert.equal(report.topConversations[0]!.name, 'Team');
    assert.ok(!JSON.stringify(report).includes('secret'));
    await pool.query('RESET ROLE; DROP OWNED BY counting; DROP ROLE counting');
  } finally {
    await pool.end();
    await node!.stop();
    await parts.stop();
  }
});
