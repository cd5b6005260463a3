import { limits } from '@parley/protocol';
import { removeExpired } from '../../../packages/server/src/features/retention/retention.ts';
import { PgDb } from '../../../packages/server/src/platform/postgres/db.ts';
import { withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { groups } from '../servers/server.ts';
import { tenants } from '../servers/parley.ts';
import { format } from '../stats.ts';
import { enter } from './paced.ts';
import { environmentOf } from './seed.ts';

/**
 * Thirty days of traffic, one after the other: each adds the rows that its messages, changes and REST calls would have left, in the past, and
 * then what was past its time at its end is removed by the service's own code. What is kept must stop growing when the longest
 * retention is over, and a message must cost at the end what it cost at the beginning.
 */

const days = 30;
const dayMs = 24 * 3_600_000;
const eventDays = 7;
/** Days at whose end a message's cost is measured: with nothing to remove yet, and in the long run. */
const measured = [1, 10, 20, 30];
const kept = ['sent_ids', 'events', 'idempotency'] as const;

export async function retention(bench: Bench): Promise<void> {
  const perDay = Math.max(20_000, Math.round(bench.options.messages / 50));
  const add = (metric: string, unit: string, value: number) =>
    bench.results.add('retention', 'parley', metric, unit, value);
  await withRunning(bench, bench.freshParley('retention'), async (parley) => {
    const { windowMs, warmMs, users } = bench.options;
    const env = await environmentOf(parley, tenants[0]!);
    await enter(bench, parley, groups('retention', users, 10));
    const db = new PgDb(await parley.store(), { max: 1, onError: () => undefined });
    try {
      const begin = Date.now() - days * dayMs;
      let rows = 0;
      let seconds = 0;
      let dropped = 0;
      let dropMs = 0;
      for (let day = 1; day <= days; day++) {
        const [from, to] = [new Date(begin + (day - 1) * dayMs), new Date(begin + day * dayMs)];
        await db.query('SELECT keep_sent_ids($1, $2)', [from, limits.dedupHours / 24]);
        await addDay(db, { env, day, perDay, from });
        // In a day autovacuum comes by often; here it has a second.
        await db.query('VACUUM events');
        await db.query('VACUUM idempotency');
        let started = performance.now();
        const [gone] = await db.query<{ n: number }>('SELECT keep_sent_ids($1, $2) AS n', [
          to,
          limits.dedupHours / 24,
        ]);
        dropMs += performance.now() - started;
        dropped += gone!.n;
        started = performance.now();
        const removed = await removeExpired(db, eventDays * dayMs, to);
        const some = removed['events']! + removed['idempotency']!;
        if (some > perDay) {
          rows += some;
          seconds += (performance.now() - started) / 1_000;
        }
        if (!measured.includes(day)) continue;
        const size = await sizeOf(db);
        add(`kept after day ${day}`, 'MB', size / 1e6);
        const run = await bench.load.run({ paceMs: 205, burst: 1, warmMs, windowMs }, parley.roots);
        const cpu = (run.serverCpuMs * 1_000) / run.acked;
        add(`CPU per message after day ${day}`, 'µs', cpu);
        add(`ack p50 after day ${day}`, 'ms', run.ack.p50);
        bench.say(
          `retention: day ${day}: ${format(size / 1e6)} MB kept, ${format(cpu)} µs per message, ack p50 ${format(run.ack.p50)} ms`,
        );
      }
      add('clientMsgIds, whole days: rows', '/s', (dropped * perDay) / (dropMs / 1_000));
      add('events and idempotency keys, row by row', '/s', rows / seconds);
      bench.say(
        `retention: ${dropped} days of clientMsgIds in ${format(dropMs)} ms; ${format(rows / seconds)} other rows/s by one worker`,
      );
    } finally {
      await db.close();
    }
  });
}

/** As many events and keys as messages: more than any use leaves. */
async function addDay(
  db: PgDb,
  { env, day, perDay, from }: { env: number; day: number; perDay: number; from: Date },
): Promise<void> {
  const at = `$2::timestamptz + (i - 1) * interval '1 day' / $3::int`;
  const values = [env, from, perDay];
  await db.query(
    `INSERT INTO sent_ids (env, conv, sender, client_msg_id, seq, created_at)
     SELECT $1, i % 1000, i % 100, gen_random_uuid()::text, i, ${at} FROM generate_series(1, $3::int) i`,
    values,
  );
  await db.query(
    `INSERT INTO events (env, conv, seq, type, message, users, created_at)
     SELECT $1, -(i % 1000), $4::bigint * $3 + i, 'message.updated', i, NULL, ${at} FROM generate_series(1, $3::int) i`,
    [...values, day],
  );
  await db.query(
    `INSERT INTO idempotency (env, key, route, fingerprint, status, body, subjects, created_at)
     SELECT $1, gen_random_uuid()::text, '\\x00', '\\x00', 201, repeat('x', 300)::bytea, ARRAY['u' || i % 1000], ${at}
     FROM generate_series(1, $3::int) i`,
    values,
  );
}

async function sizeOf(db: PgDb): Promise<number> {
  const [row] = await db.query<{ bytes: number }>(
    `SELECT sum(pg_total_relation_size(k::regclass)
       + coalesce((SELECT sum(pg_total_relation_size(t.relid)) FROM pg_partition_tree(k::regclass) t WHERE t.isleaf), 0))::float8 AS bytes
     FROM unnest($1::text[]) k`,
    [kept],
  );
  return row!.bytes;
}
