import { readFile } from 'node:fs/promises';
import { withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { tenants } from '../servers/parley.ts';
import type { RunningParley } from '../servers/parley.ts';
import { groups } from '../servers/server.ts';
import { format } from '../stats.ts';
import { enter } from './paced.ts';
import { environmentOf } from './seed.ts';

/**
 * What analytics costs, and how fast it answers.
 *
 * The send path: the same service with the same sockets, window by window with and without the note that the group commit writes
 * for analytics (and so with and without what folds notes in). CPU per message is what to look at: it hardly depends on what
 * else the machine does.
 *
 * Reports: 366 days of a store of --messages messages by a tenth as many users, written by SQL.
 */

const functions = new URL('../../../packages/server/src/log/sql/append_messages.sql', import.meta.url);
const days = 366;
const asked = 20;

export async function analytics(bench: Bench): Promise<void> {
  await withRunning(bench, bench.freshParley('analytics'), async (parley) => {
    await sendPath(bench, parley);
    await bench.load.close();
    await reports(bench, parley);
  });
}

async function sendPath(bench: Bench, parley: RunningParley): Promise<void> {
  const { options, results } = bench;
  const counting = await readFile(functions, 'utf8');
  const silent = counting.replaceAll(/INSERT INTO activity_notes \([^)]*\)\s+VALUES[^;]*;/g, 'NULL;');
  if (silent === counting) throw new Error('the note for analytics was not found');
  const plan = groups('analytics', options.users * 2, 10);
  await enter(bench, parley, plan);
  const cpu: Record<string, number[]> = { with: [], without: [] };
  for (let round = 0; round < options.rounds * 2; round++)
    // The order turns round by round: whatever grows or warms up meanwhile falls on both.
    for (const mode of round % 2 === 0 ? ['with', 'without'] : ['without', 'with']) {
      await parley.sql(mode === 'with' ? counting : silent);
      const run = await bench.load.run(
        { paceMs: 150, burst: 1, warmMs: options.warmMs, windowMs: options.windowMs },
        parley.roots,
      );
      const each = ((run.serverCpuMs + run.databaseCpuMs) * 1_000) / run.acked;
      cpu[mode]!.push(each);
      results.add('analytics', 'parley', `${mode} analytics: acknowledged`, '/s', run.acked / run.seconds);
      results.add('analytics', 'parley', `${mode} analytics: CPU per message`, 'µs', each);
      bench.say(
        `analytics, ${mode}: ${format(run.acked / run.seconds)}/s, ${format(each)} µs CPU per message`,
      );
    }
  await parley.sql(counting);
  const mean = (values: number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
  const cost = (mean(cpu['with']!) / mean(cpu['without']!) - 1) * 100;
  results.add('analytics', 'parley', 'cost on the send path', '%', cost);
  bench.say(`analytics: ${cost.toFixed(2)} % more CPU per message`);
}

async function reports(bench: Bench, parley: RunningParley): Promise<void> {
  const { messages } = bench.options;
  const tenant = tenants[1]!;
  const env = await environmentOf(parley, tenant);
  const users = Math.max(1_000, Math.floor(messages / 10));
  bench.say(`analytics: writing ${format(messages)} messages by ${format(users)} users over ${days} days`);
  await write(bench, parley, env, messages, users);

  const to = new Date(Math.ceil(Date.now() / 86_400_000) * 86_400_000);
  const from = new Date(to.getTime() - days * 86_400_000);
  const range = `from=${from.toISOString()}&to=${to.toISOString()}`;
  const times: number[] = [];
  for (let i = 0; i < asked; i++) {
    const begin = performance.now();
    const answer = await fetch(`${parley.url}/v1/analytics?${range}`, {
      headers: { authorization: `Bearer ${tenant.secretKey}` },
    });
    const { totals, series } = (await answer.json()) as {
      totals: { messages: number; activeUsers: number };
      series: unknown[];
    };
    times.push(performance.now() - begin);
    if (totals.messages !== messages || totals.activeUsers !== users || series.length !== days)
      throw new Error(`the report says ${JSON.stringify(totals)} in ${series.length} days`);
  }
  // The first fills caches.
  const sorted = times.slice(1).sort((a, b) => a - b);
  bench.results.add('analytics', 'parley', `${days} days: p50`, 'ms', sorted[Math.floor(sorted.length / 2)]!);
  bench.results.add('analytics', 'parley', `${days} days: max`, 'ms', sorted.at(-1)!);
  bench.results.add('analytics', 'parley', `${days} days: first`, 'ms', times[0]!);
  bench.say(`analytics: ${days} days in ${sorted.map((ms) => Math.round(ms)).join(', ')} ms`);

  // The other way to know who was active: a row for each user and day, which sender_activity is here.
  const narrow = await timed(() =>
    parley.sql('SELECT count(DISTINCT usr) FROM sender_activity WHERE env = $1 AND step = 1', [env]),
  );
  const bits = await timed(() =>
    parley.sql(
      `SELECT sum(bit_count(b)) FROM (SELECT bit_or(bits) AS b FROM active_users WHERE env = $1 AND step = 2 GROUP BY chunk) x`,
      [env],
    ),
  );
  const { rows } = await parley.sql(
    `SELECT pg_total_relation_size('active_users') / 1e6 AS bits, pg_total_relation_size('sender_activity') / 1e6 AS narrow`,
  );
  const size = rows[0] as { bits: string; narrow: string };
  bench.results.add('analytics', 'parley', 'active users of a year, bitmaps', 'ms', bits);
  bench.results.add('analytics', 'parley', 'active users of a year, a row each', 'ms', narrow);
  bench.results.add('analytics', 'parley', 'bitmaps', 'MB', Number(size.bits));
  bench.results.add('analytics', 'parley', 'a row each', 'MB', Number(size.narrow));
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

const chunk = 1_000_000;
const perConversation = 100;

/** What sends over a year would have left: the rows of messages, and what analytics keeps of them for days and months. */
async function write(
  bench: Bench,
  parley: RunningParley,
  env: number,
  messages: number,
  users: number,
): Promise<void> {
  const conversations = Math.max(1, Math.floor(messages / perConversation));
  const { rows: first } = await parley.sql(
    `WITH made AS (INSERT INTO users (env, id) SELECT $1, 'active-' || g FROM generate_series(1, $2::int) g RETURNING no) SELECT min(no) AS no FROM made`,
    [env, users],
  );
  const { rows: second } = await parley.sql(
    `WITH made AS (
       INSERT INTO conversations (env, id, type, name, last_activity_at, act, created_at)
       SELECT $1, 'conv_01k0year' || lpad(g::text, 18, '0'), 'group', 'Room ' || g, now(), activity_step(now()), now()
       FROM generate_series(1, $2::int) g RETURNING no
     ) SELECT min(no) AS no FROM made`,
    [env, conversations],
  );
  const user = Number((first[0] as { no: string }).no);
  const conversation = Number((second[0] as { no: string }).no);
  for (let i = 0; i < messages; i += chunk) {
    await parley.sql(
      `INSERT INTO messages (env, conv, seq, id, sender, text, created_at)
       SELECT $1, $2::bigint + g % $3::bigint, g / $3::bigint + 1, 'msg_01k2' || lpad(g::text, 22, '0'), $4::bigint + (g * 7919) % $5::bigint, 'lorem ipsum',
         date_trunc('day', now(), 'UTC') + interval '1 day' - make_interval(secs => ($6::float8 - g) / $6 * ${days} * 86400)
       FROM generate_series($7::bigint, least($7 + ${chunk - 1}, $6::bigint - 1)) g`,
      [env, conversation, conversations, user, users, messages, i],
    );
    bench.say(`analytics: ${format(Math.min(messages, i + chunk))} messages are written`);
  }
  // No worker may fold in what the users and conversations above noted meanwhile: it is written here.
  for (const statement of [
    `INSERT INTO sender_activity SELECT env, 1, date_trunc('day', created_at, 'UTC'), sender, count(*) FROM messages WHERE env = ${env} GROUP BY 1, 3, 4`,
    `INSERT INTO sender_activity SELECT env, 2, date_trunc('month', at, 'UTC'), usr, sum(messages) FROM sender_activity WHERE env = ${env} AND step = 1 GROUP BY 1, 3, 4`,
    `INSERT INTO conversation_activity SELECT env, 1, date_trunc('day', created_at, 'UTC'), conv, count(*), array_agg(DISTINCT sender), max(created_at)
       FROM messages WHERE env = ${env} GROUP BY 1, 3, 4`,
    `INSERT INTO conversation_activity SELECT env, 2, date_trunc('month', created_at, 'UTC'), conv, count(*), array_agg(DISTINCT sender), max(created_at)
       FROM messages WHERE env = ${env} GROUP BY 1, 3, 4`,
    `INSERT INTO active_users SELECT env, step, at, (usr >> 13)::int, set_bits((usr & 8191)::int, 1)::bit(8192) FROM sender_activity
       WHERE env = ${env} GROUP BY 1, 2, 3, 4`,
    `INSERT INTO active_months SELECT env, at, count(*) FROM sender_activity WHERE env = ${env} AND step = 2 GROUP BY 1, 2`,
    ...(['conversation', 'sender'] as const).map(
      (
        kind,
      ) => `INSERT INTO activity_tops SELECT env, step, at, '${kind}', array_agg(no ORDER BY messages DESC), array_agg(messages ORDER BY messages DESC) FROM (
         SELECT env, step, at, ${kind === 'sender' ? 'usr' : 'conv'} AS no, messages, row_number() OVER (PARTITION BY step, at ORDER BY messages DESC) AS place
         FROM ${kind}_activity WHERE env = ${env}) x WHERE place <= 100 GROUP BY 1, 2, 3`,
    ),
    `INSERT INTO message_hours SELECT env, date_trunc('hour', created_at, 'UTC'), count(*) FROM messages WHERE env = ${env} GROUP BY 1, 2`,
    `INSERT INTO counters AS c SELECT s.env, 1, s.at, jsonb_build_object('messages', sum(s.messages), 'activeUsers', count(*)) FROM sender_activity s
       WHERE s.env = ${env} AND s.step = 1 GROUP BY 1, 3 ON CONFLICT (env, step, at) DO UPDATE SET counts = merged_counts(c.counts, excluded.counts)`,
    'VACUUM ANALYZE',
  ])
    await parley.sql(statement);
}
