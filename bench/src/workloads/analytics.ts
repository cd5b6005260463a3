import pg from 'pg';
import { sql as counting } from '../../../packages/server/src/log/sql/consumers.sql.ts';
import { withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { cpuOf } from '../procfs.ts';
import { tenants } from '../servers/parley.ts';
import type { RunningParley } from '../servers/parley.ts';
import { groups } from '../servers/server.ts';
import { format, meanChange, median } from '../stats.ts';
import { enter } from './paced.ts';
import { environmentOf } from './seed.ts';

/**
 * What analytics costs, and how fast it answers (--only send, --only reports for one of both).
 *
 * The send path: the same service with the same sockets, window by window with and without the note that the group commit writes
 * for analytics (and so with and without what folds notes in). CPU per message is what to look at: it hardly depends on what
 * else the machine does. Folding is measured for itself too, because most of it is done after a window.
 *
 * Reports: 366 days of a store of --messages messages by a tenth as many users, written by SQL.
 */

const days = 366;
const asked = 100;
const portion = 250_000;

export async function analytics(bench: Bench): Promise<void> {
  const { only } = bench.options;
  if (!only || only.includes('send'))
    await withRunning(bench, bench.freshParley('analytics'), async (parley) => {
      await sendPath(bench, parley);
      await bench.load.close();
    });
  // Without a worker, which would fold what is measured here.
  const alone = bench.freshParley('analytics-reports', { CHAT_ROLES: 'api,gateway' });
  if (!only || only.includes('reports'))
    await withRunning(bench, alone, async (parley) => {
      await reports(bench, parley);
    });
}

async function sendPath(bench: Bench, parley: RunningParley): Promise<void> {
  const { options, results } = bench;
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
      const each = (run.serverCpuMs * 1_000) / run.acked;
      cpu[mode]!.push(each);
      results.add('analytics', 'parley', `${mode} analytics: acknowledged`, '/s', run.acked / run.seconds);
      results.add('analytics', 'parley', `${mode} analytics: CPU per message`, 'µs', each);
      bench.say(
        `analytics, ${mode}: ${format(run.acked / run.seconds)}/s, ${format(each)} µs CPU per message`,
      );
    }
  await parley.sql(counting);
  const ratios = cpu['with']!.map((each, i) => each / cpu['without']![i]!);
  for (const ratio of ratios)
    results.add('analytics', 'parley', 'cost on the send path', '%', 100 * (ratio - 1));
  bench.say(`analytics: ${meanChange(ratios)} more CPU per message`);
  const { each, messages } = await fold(parley);
  if (messages > 0) {
    results.add('analytics', 'parley', 'folding, per message', 'µs', each);
    bench.say(
      `analytics: folding ${format(messages)} messages that were left took ${each.toFixed(2)} µs CPU each`,
    );
  }
}

/** Folds all that waits, and says what CPU a message takes of it. */
async function fold(parley: RunningParley): Promise<{ each: number; messages: number }> {
  const { rows } = await parley.sql('SELECT coalesce(sum(size), 0)::int AS n FROM activity_notes');
  const { n } = rows[0] as { n: number };
  const client = new pg.Client(await parley.store());
  await client.connect();
  try {
    const { rows: own } = await client.query('SELECT pg_backend_pid() AS pid');
    const roots = [(own[0] as { pid: number }).pid];
    const before = cpuOf(roots).all;
    for (let more = true; more;) {
      const { rows: folded } = await client.query(`SELECT count_notes(${portion}) AS n`);
      more = (folded[0] as { n: number }).n > 0;
    }
    return { each: ((cpuOf(roots).all - before) * 1_000) / n, messages: n };
  } finally {
    await client.end();
  }
}

/** Notes as the group commit leaves them: 2,500 of 100 messages each, by 2,000 users in 1,000 conversations, now. */
async function foldSome(parley: RunningParley, env: number, first: First): Promise<number> {
  await parley.sql(
    `INSERT INTO activity_notes (at, size, c_env, c_no, place, usr)
     SELECT now(), 100, array_agg($1::int), array_agg($2::bigint + (b * 37 + m) % 1000), array_agg(m ORDER BY m), array_agg($3::bigint + (b * 37 + m) % 2000)
     FROM generate_series(1, 2500) b, generate_series(1, 100) m GROUP BY b`,
    [env, first.conversation, first.user],
  );
  return (await fold(parley)).each;
}

async function reports(bench: Bench, parley: RunningParley): Promise<void> {
  const { messages } = bench.options;
  const add = (metric: string, unit: string, value: number) =>
    bench.results.add('analytics', 'parley', metric, unit, value);
  const tenant = tenants[1]!;
  const env = await environmentOf(parley, tenant);
  const users = Math.max(1_000, Math.floor(messages / 10));
  bench.say(`analytics: writing ${format(messages)} messages by ${format(users)} users over ${days} days`);
  const first = await writePeople(parley, env, messages, users);
  const rounds = Array.from({ length: 5 });
  const small: number[] = [];
  for (const _ of rounds) small.push(await foldSome(parley, env, first));
  await write(bench, parley, env, messages, users, first);

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
  const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)]!;
  add(`${days} days: p50`, 'ms', at(0.5));
  add(`${days} days: p99`, 'ms', at(0.99));
  add(`${days} days: first`, 'ms', times[0]!);
  bench.say(
    `analytics: ${days} days in p50 ${format(at(0.5))}, p99 ${format(at(0.99))}, first ${format(times[0]!)} ms`,
  );

  const large: number[] = [];
  for (const _ of rounds) large.push(await foldSome(parley, env, first));
  // The first fold of an hour makes its rows, all later ones find them.
  add('folding into an empty store, per message', 'µs', median(small.slice(1)));
  add('folding into this store, per message', 'µs', median(large.slice(1)));
  bench.say(
    `analytics: folding ${median(small.slice(1)).toFixed(2)} µs a message in an empty store, ${median(large.slice(1)).toFixed(2)} in this one`,
  );

  // The other way to know who was active: a row for each user and day, which sender_activity is here.
  const narrow = await timed(() =>
    parley.sql('SELECT count(DISTINCT usr) FROM sender_activity WHERE env = $1 AND step = 2', [env]),
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
  add('active users of a year, bitmaps', 'ms', bits);
  add('active users of a year, a row each', 'ms', narrow);
  add('bitmaps', 'MB', Number(size.bits));
  add('a row each', 'MB', Number(size.narrow));
  bench.say(
    `analytics: active users of a year: bitmaps ${format(bits)} ms and ${format(Number(size.bits))} MB, ` +
      `rows ${format(narrow)} ms and ${format(Number(size.narrow))} MB`,
  );
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

const perConversation = 100;

interface First {
  user: number;
  conversation: number;
}

/** Triggers are off: what they would note is not looked at here. */
const quickly = `SET synchronous_commit = off; SET session_replication_role = replica; SET work_mem = '256MB'; SET jit = off;`;

async function writePeople(
  parley: RunningParley,
  env: number,
  messages: number,
  users: number,
): Promise<First> {
  const conversations = Math.max(1, Math.floor(messages / perConversation));
  await parley.sql(
    `${quickly}
     INSERT INTO users (env, id) SELECT ${env}, 'active-' || g FROM generate_series(1, ${users}) g;
     INSERT INTO conversations (env, id, type, name, last_activity_at, last_activity_step, created_at)
       SELECT ${env}, 'conv_01k0year' || lpad(g::text, 18, '0'), 'group', 'Room ' || g, now(), activity_step(now()), now()
       FROM generate_series(1, ${conversations}) g`,
  );
  const { rows } = await parley.sql(
    `SELECT (SELECT min(no) FROM users WHERE env = $1)::int AS user, (SELECT min(no) FROM conversations WHERE env = $1)::int AS conversation`,
    [env],
  );
  return rows[0] as First;
}

/**
 * What sends over a year would have left: the rows of messages, and what analytics keeps of them for days and months. Message `g` of `n` is
 * sent at g/n of the year, in conversation g % (n / 100) by user (g * 7919) % (n / 10): so a user sends every 37 days, and a
 * conversation hears something every 4, and no row of a day needs adding up. Tables are emptied in the transaction that fills them,
 * which spares PostgreSQL its log, and filled in the order of their keys.
 */
async function write(
  bench: Bench,
  parley: RunningParley,
  env: number,
  n: number,
  users: number,
  first: First,
): Promise<void> {
  const conversations = Math.max(1, Math.floor(n / perConversation));
  const begin = `(date_trunc('day', now(), 'UTC') + interval '1 day' - interval '${days} days')`;
  const at = `${begin} + g * ${days * 86_400}::float8 / ${n} * interval '1 second'`;
  const day = `${begin} + (g * ${days}::bigint / ${n}) * interval '1 day'`;
  const sender = `${first.user}::bigint + g * 7919 % ${users}`;
  const all = `generate_series(0::bigint, ${n - 1}) g`;
  const tops = (kind: string, table: string, column: string) => `
    INSERT INTO activity_tops SELECT s.env, s.step, s.at, '${kind}', array_agg(t.no), array_agg(t.messages)
    FROM (SELECT DISTINCT env, step, at FROM active_users WHERE env = ${env}) s CROSS JOIN LATERAL (
      SELECT ${column} AS no, messages FROM ${table} a WHERE a.env = s.env AND a.step = s.step AND a.at = s.at ORDER BY messages DESC, 1 LIMIT 100
    ) t GROUP BY 1, 2, 3;`;
  const write = async (what: string, statements: string): Promise<void> => {
    await parley.sql(`${quickly} BEGIN; ${statements} COMMIT`);
    bench.say(`analytics: ${what}`);
  };
  const messages = write(
    'messages are written',
    `TRUNCATE messages; ALTER TABLE messages SET (autovacuum_enabled = off);
     INSERT INTO messages (env, conv, seq, id, sender, text, created_at)
     SELECT ${env}, ${first.conversation}::bigint + c, k + 1, 'msg_01k2' || lpad(c::text, 12, '0') || lpad(k::text, 10, '0'), ${sender}, 'lorem ipsum', ${at}
     FROM (SELECT c, k, k * ${conversations}::bigint + c AS g FROM generate_series(0, ${conversations - 1}) c, generate_series(0, ${perConversation - 1}) k) x;`,
  );
  await write(
    'senders are written',
    `TRUNCATE sender_activity; ALTER TABLE sender_activity SET (autovacuum_enabled = off);
     INSERT INTO sender_activity SELECT ${env}, 1, ${day}, ${sender}, 1 FROM ${all};
     INSERT INTO sender_activity SELECT ${env}, 2, date_trunc('month', ${day}, 'UTC'), ${sender}, 1 FROM ${all};`,
  );
  await write(
    'active users are written',
    `TRUNCATE active_users;
     INSERT INTO active_users SELECT env, 1, at, (usr >> 13)::int, set_bits((usr & 8191)::int, 1)::bit(8192) FROM sender_activity
       WHERE env = ${env} AND step = 1 GROUP BY 1, 3, 4;
     INSERT INTO active_users SELECT env, 2, date_trunc('month', at, 'UTC'), chunk, bit_or(bits) FROM active_users WHERE step = 1 GROUP BY 1, 3, 4;
     DELETE FROM active_months;
     INSERT INTO active_months SELECT env, at, sum(bit_count(bits)) FROM active_users WHERE step = 2 GROUP BY 1, 2;
     DELETE FROM counters WHERE env = ${env};
     INSERT INTO counters SELECT ${env}, 1, a.at, jsonb_build_object('activeUsers', sum(bit_count(a.bits)),
         'messages', (SELECT count(*) FROM sender_activity s WHERE s.env = ${env} AND s.step = 1 AND s.at = a.at))
       FROM active_users a WHERE a.step = 1 GROUP BY 3;`,
  );
  await write(
    'conversations are written',
    `TRUNCATE conversation_activity; ALTER TABLE conversation_activity SET (autovacuum_enabled = off);
     INSERT INTO conversation_activity SELECT ${env}, 1, ${day}, ${first.conversation}::bigint + g % ${conversations}, 1, ARRAY[${sender}], ${at} FROM ${all};
     INSERT INTO conversation_activity SELECT env, 2, date_trunc('month', at, 'UTC'), conv, count(*), array_agg(senders[1]), max(last_at)
       FROM conversation_activity WHERE step = 1 GROUP BY 1, 3, 4;`,
  );
  await messages;
  await write(
    'the largest are written',
    `TRUNCATE activity_tops, message_hours;
     ${tops('conversation', 'conversation_activity', 'conv')} ${tops('sender', 'sender_activity', 'usr')}
     INSERT INTO message_hours SELECT ${env}, ${begin} + h * interval '1 hour',
       ((h + 1) * ${n}::bigint + ${days * 24 - 1}) / ${days * 24} - (h * ${n}::bigint + ${days * 24 - 1}) / ${days * 24} FROM generate_series(0, ${days * 24 - 1}) h;`,
  );
  await parley.sql('VACUUM ANALYZE active_users, activity_tops, counters, message_hours, active_months');
  await parley.sql('ANALYZE');
}
