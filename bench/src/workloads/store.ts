import { fileURLToPath } from 'node:url';
import { timesOf, withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { lineOf, start as startChild } from '../children.ts';
import { tenants } from '../servers/parley.ts';
import type { RunningParley } from '../servers/parley.ts';
import { groups } from '../servers/server.ts';
import { format } from '../stats.ts';
import { record } from './paced.ts';
import { environmentOf, grow, longConversation, longList } from './seed.ts';
import type { Store } from './seed.ts';

/** Workloads about Parley's store: history, list, growth, rest, start. */

const storeLimit = fileURLToPath(new URL('../peers/store-limit.ts', import.meta.url));
const pageSize = 50;
const pageConnections = 4;
export const restConnections = 64;

const get = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${tenants[0]!.secretKey}\r\n\r\n`;

/** @param workload null: nothing is recorded. */
export async function pages(
  bench: Bench,
  parley: RunningParley,
  workload: string | null,
  metric: string,
  paths: string[],
): Promise<void> {
  const { windowMs, warmMs } = bench.options;
  const run = await bench.load.http(
    {
      port: parley.port,
      requests: paths.map(get),
      connections: pageConnections,
      warmMs: warmMs / 2,
      windowMs: windowMs / 2,
    },
    parley.roots,
  );
  if (workload === null) return;
  if (run.refused > 0)
    bench.results.note(`${workload}: ${run.refused} refused, the first: ${run.firstRefusal}`);
  const cpu = (run.serverCpuMs * 1_000) / run.answered;
  bench.results.add(workload, 'parley', `${metric}: CPU per page`, 'µs', cpu);
  bench.results.add(workload, 'parley', `${metric}: p50`, 'ms', run.latency.p50);
  bench.results.add(workload, 'parley', `${metric}: p99`, 'ms', run.latency.p99);
  bench.say(`${workload}, ${metric}: ${format(cpu)} µs CPU per page, p50 ${format(run.latency.p50)} ms`);
}

export async function history(bench: Bench): Promise<void> {
  const { messages } = bench.options;
  const rounds = timesOf(bench);
  const sizes = [messages / 1_000, messages / 10, messages].map((n) => Math.max(1_000, Math.round(n)));
  await withRunning(bench, bench.freshParley('history'), async (parley) => {
    const env = await environmentOf(parley, tenants[0]!);
    const long: { size: number; id: string }[] = [];
    for (const size of sizes) {
      bench.say(`history: writing ${format(size)} messages`);
      long.push({ size, id: await longConversation(parley, env, size) });
    }
    const { rows } = await parley.sql(
      `SELECT pg_total_relation_size('messages')::float8 / (SELECT count(*) FROM messages) AS bytes`,
    );
    bench.results.add(
      'history',
      'parley',
      'stored per message',
      'bytes',
      (rows[0] as { bytes: number }).bytes,
    );
    // Warm, or the first would pay for the compiler.
    await pages(bench, parley, null, '', [`/v1/conversations/${long[0]!.id}/messages?limit=${pageSize}`]);
    for (let round = 0; round < rounds; round++)
      for (const { size, id } of long) {
        const path = `/v1/conversations/${id}/messages?limit=${pageSize}`;
        await pages(bench, parley, 'history', `${format(size)} messages, head`, [path]);
        // Spread over the whole conversation.
        const deep = Array.from({ length: 500 }, (_, i) => {
          const before = Math.floor((((i * 7_919) % 500) / 500) * (size - pageSize)) + pageSize + 1;
          return `${path}&before=${before}`;
        });
        await pages(bench, parley, 'history', `${format(size)} messages, deep`, deep);
      }
  });
}

export async function list(bench: Bench): Promise<void> {
  const { conversations } = bench.options;
  const rounds = timesOf(bench);
  const sizes = [...new Set([10, conversations / 10, conversations])];
  await withRunning(bench, bench.freshParley('list'), async (parley) => {
    const env = await environmentOf(parley, tenants[0]!);
    const users: { size: number; id: string }[] = [];
    for (const size of sizes) users.push({ size, id: await longList(parley, env, size) });
    // Warm, or the first would pay for the compiler.
    await pages(bench, parley, null, '', [`/v1/conversations?userId=${users[0]!.id}&limit=10`]);
    for (let round = 0; round < rounds; round++)
      for (const { size, id } of users)
        await pages(bench, parley, 'list', `${format(size)} conversations`, [
          `/v1/conversations?userId=${id}&limit=10`,
        ]);
  });
}

/** The same crowd, in ten tenants, on a store that grows around it. */
export async function growth(bench: Bench): Promise<void> {
  const { messages, rounds, users, warmMs, windowMs } = bench.options;
  const parley = bench.freshParley('growth');
  let from: Store = { tenants: tenants.length, conversations: 0, messages: 0 };
  for (const factor of [1, 10, 100]) {
    const to: Store = {
      tenants: tenants.length * factor,
      conversations: Math.max(10, Math.round((messages / 10_000) * factor)),
      messages: Math.max(1_000, Math.round((messages / 100) * factor)),
    };
    await withRunning(bench, parley, async (running) => {
      bench.say(
        `growth: a store of ${format(to.tenants)} tenants, ${format(to.conversations)} conversations, ${format(to.messages)} messages`,
      );
      await grow(running, from, to);
    });
    from = to;
    for (let round = 0; round < rounds; round++)
      await withRunning(bench, parley, async (running) => {
        const plan = groups('growth', Math.max(10, users / 10), 10);
        const parts = await Promise.all(tenants.slice(0, 10).map((t) => running.accounts(plan, t)));
        const { wire, port } = running;
        const opened = await bench.load.open({ wire, port, accounts: parts.flat(), atOnce: 100 });
        if (opened.failed > 0) throw new Error(`${opened.failed} logins failed: ${opened.firstFailure}`);
        const before = await updates(running);
        const run = await bench.load.run({ paceMs: 205, burst: 1, warmMs, windowMs }, running.roots);
        record(bench, `growth ×${factor}`, 'parley', run, 10);
        await tables(bench, running, `growth ×${factor}`, before);
      });
  }
}

/** How often rows of conversations and members were changed, and how often in place (HOT). */
async function updates(parley: RunningParley): Promise<{ all: number; hot: number }> {
  const { rows } = await parley.sql(
    `SELECT sum(n_tup_upd)::float8 AS all, sum(n_tup_hot_upd)::float8 AS hot FROM pg_stat_user_tables
     WHERE relname IN ('conversations', 'members')`,
  );
  return rows[0] as { all: number; hot: number };
}

/** What the rows of messages take, how many changes were made in place since `before`, and how long vacuum takes after a run. */
async function tables(
  bench: Bench,
  parley: RunningParley,
  workload: string,
  before: { all: number; hot: number },
): Promise<void> {
  const add = (metric: string, unit: string, value: number) =>
    bench.results.add(workload, 'parley', metric, unit, value);
  const { rows } = await parley.sql(
    `SELECT n, pg_relation_size('messages') / n AS heap, pg_indexes_size('messages') / n AS indexes
     FROM (SELECT count(*)::float8 AS n FROM messages) x`,
  );
  const { n, heap, indexes } = rows[0] as { n: number; heap: number; indexes: number };
  const after = await updates(parley);
  const hot = (100 * (after.hot - before.hot)) / (after.all - before.all);
  const begin = performance.now();
  await parley.sql('VACUUM messages');
  const vacuum = performance.now() - begin;
  add('messages in the store', '', n);
  add('rows of messages, each', 'bytes', heap);
  add('indexes of messages, each', 'bytes', indexes);
  add('changes of conversations and members in place (HOT)', '%', hot);
  add('vacuum of messages afterwards', 'ms', vacuum);
  bench.say(
    `${workload}: ${format(n)} messages, ${format(heap)} and ${format(indexes)} bytes each in rows and indexes, ${format(hot)} % of changes in place, vacuum ${format(vacuum)} ms`,
  );
}

/** Sends over REST by ten tenants' servers: a key may make 5,000 requests a second (plans.ts), ten together are not held back. */
export async function sends(running: RunningParley, users: number, round: number): Promise<string[]> {
  const plan = groups('rest', Math.max(20, users / 10), 10);
  const parts = await Promise.all(tenants.slice(0, 10).map((t) => running.accounts(plan, t)));
  return parts.flatMap((accounts, i) =>
    accounts.map((account) => {
      const body = JSON.stringify({
        clientMsgId: `${Date.now()}-${round}-@ID@`,
        senderId: account.name,
        text: 'lorem ipsum dolor sit amet consectetur adipiscing elit sed do ei',
      });
      // `@ID@` becomes twelve digits.
      return (
        `POST /v1/conversations/${account.speaks}/messages HTTP/1.1\r\nHost: localhost\r\n` +
        `Authorization: Bearer ${tenants[i]!.secretKey}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length + 8}\r\n\r\n${body}`
      );
    }),
  );
}

export async function rest(bench: Bench): Promise<void> {
  const { warmMs, windowMs, users } = bench.options;
  const rounds = timesOf(bench);
  for (let round = 0; round < rounds; round++) {
    await withRunning(bench, bench.parley!, async (running) => {
      const requests = await sends(running, users, round);
      const run = await bench.load.http(
        { port: running.port, requests, connections: restConnections, warmMs, windowMs },
        running.roots,
      );
      if (run.refused > 0) bench.results.note(`rest: ${run.refused} refused, the first: ${run.firstRefusal}`);
      const rate = run.answered / run.seconds;
      bench.results.add('rest', 'parley', 'messages', '/s', rate);
      bench.results.add('rest', 'parley', 'p50', 'ms', run.latency.p50);
      bench.results.add('rest', 'parley', 'p99', 'ms', run.latency.p99);
      bench.results.add('rest', 'parley', 'CPU per message', 'µs', (run.serverCpuMs * 1_000) / run.answered);
      bench.say(`rest: ${format(rate)} messages/s, p50 ${format(run.latency.p50)} ms`);
    });
    const database = await bench.database();
    await database.create('storelimit');
    const child = startChild(process.execPath, [storeLimit, String(windowMs / 4_000)], {
      env: { PATH: process.env['PATH'] ?? '', DATABASE_URL: database.url('storelimit') },
    });
    const [, text = '{}'] = await lineOf(child, /^rates (.*)$/);
    for (const [size, rate] of Object.entries(JSON.parse(text) as Record<string, number>)) {
      bench.results.add('store', 'postgres', `${size} rows a commit`, '/s', rate);
      bench.say(`store: ${format(rate)} rows/s, ${size} a commit`);
    }
  }
}

export async function start(bench: Bench): Promise<void> {
  const parley = bench.freshParley('start');
  await withRunning(bench, parley, (running) => {
    bench.results.add('start', 'parley', 'first start', 's', running.startMs / 1_000);
    return Promise.resolve();
  });
  for (let round = 0; round < Math.max(3, bench.options.rounds); round++)
    await withRunning(bench, parley, (running) => {
      bench.results.add('start', 'parley', 'start to ready', 's', running.startMs / 1_000);
      bench.say(`start: ready after ${format(running.startMs / 1_000)} s`);
      return Promise.resolve();
    });
}
