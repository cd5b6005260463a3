import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { tenants } from '../servers/parley.ts';
import type { RunningParley } from '../servers/parley.ts';
import { format, median } from '../stats.ts';
import { restConnections, sends } from './store.ts';
import { environmentOf, longConversation } from './seed.ts';

/**
 * History in a customer's own PostgreSQL (docs/storage.md): how fast the sink writes beside a bare loop of batched inserts, what it costs
 * a send, and how long a cold page takes beside the query itself.
 */

const most = 200_000;
const batch = 200;
const pages = 60;
/** Below the limit of 50 a second. */
const pageSpacingMs = 30;

export async function sink(bench: Bench): Promise<void> {
  const count = Math.min(most, bench.options.messages);
  const database = await bench.database();
  await withRunning(bench, bench.freshParley('sink'), async (parley) => {
    const env = await environmentOf(parley, tenants[0]!);
    const conversation = await longConversation(parley, env, count);
    const without = await sendCost(bench, parley, 'without');
    await database.create('customer');
    const api = await dashboard(parley);
    const url = `${database.url('customer')}?sslmode=disable`;
    await api('POST', '/v1/storage/database/migrate', { adminUrl: url });
    await api('PUT', '/v1/storage/database/a', { url });
    await api('POST', '/v1/storage/database/test', { slot: 'a' });

    const { rows: all } = await parley.sql('SELECT count(*)::float8 AS n FROM messages WHERE env = $1', [
      env,
    ]);
    const total = (all[0] as { n: number }).n;
    const begun = performance.now();
    await api('PATCH', '/v1/storage', { mode: 'byo_db', bufferRetention: '24h' });
    while ((await api('GET', '/v1/storage')).sink.copy !== null) await delay(100);
    const copied = total / ((performance.now() - begun) / 1_000);
    const bare = await bareLoop(parley, database.config('customer'), env);
    bench.results.add('sink', 'parley', 'copied', 'rows/s', copied);
    bench.results.add('sink', 'parley', 'a bare loop', 'rows/s', bare);
    bench.say(
      `sink: ${format(copied)} rows/s, a bare loop of inserts ${format(bare)} (${(copied / bare).toFixed(2)})`,
    );

    const beside = await sendCost(bench, parley, 'with');
    bench.say(
      `sink: CPU per send, the sink's own work included, ${format(beside)} µs with, ${format(without)} without (${((beside / without - 1) * 100).toFixed(1)} %)`,
    );
    await coldPages(bench, parley, database.config('customer'), conversation);
  });
}

async function sendCost(bench: Bench, parley: RunningParley, what: string): Promise<number> {
  const { warmMs, windowMs, users } = bench.options;
  const requests = await sends(parley, users, 0);
  const run = await bench.load.http(
    { port: parley.port, requests, connections: restConnections, warmMs, windowMs },
    parley.roots,
  );
  const cpu = (run.serverCpuMs * 1_000) / run.answered;
  bench.results.add('sink', 'parley', `CPU per send ${what}`, 'µs', cpu);
  return cpu;
}

/** The same rows, as fast as one connection inserts them: into a table of the same form, all in memory before. */
async function bareLoop(parley: RunningParley, config: pg.ClientConfig, env: number): Promise<number> {
  const { rows } = await parley.sql(
    `SELECT id, conv::text AS cid, seq, text, created_at AS at FROM messages WHERE env = $1 LIMIT ${most}`,
    [env],
  );
  const all = rows as { id: string; cid: string; seq: number; text: string; at: string }[];
  const client = new pg.Client(config);
  await client.connect();
  await client.query('CREATE TABLE bare (LIKE parley_messages INCLUDING ALL)');
  const begun = performance.now();
  for (let i = 0; i < all.length; i += batch) {
    const part = all.slice(i, i + batch);
    await client.query(
      `INSERT INTO bare (env, id, conversation_id, seq, text, version, created_at, revision)
       SELECT 'bare', u.id, u.cid, u.seq, u.text, 1, u.at, 4 FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::timestamptz[]) u(id, cid, seq, text, at)`,
      [
        part.map((r) => r.id),
        part.map((r) => r.cid),
        part.map((r) => r.seq),
        part.map((r) => r.text),
        part.map((r) => r.at),
      ],
    );
  }
  const rate = all.length / ((performance.now() - begun) / 1_000);
  await client.end();
  return rate;
}

async function coldPages(
  bench: Bench,
  parley: RunningParley,
  config: pg.ClientConfig,
  conversation: string,
): Promise<void> {
  const where = '(SELECT no FROM conversations WHERE id = $1)';
  await parley.sql(`UPDATE messages SET created_at = created_at - interval '10 days' WHERE conv = ${where}`, [
    conversation,
  ]);
  await parley.sql(`UPDATE sink_conversations SET oldest_at = '-infinity' WHERE conv = ${where}`, [
    conversation,
  ]);
  await parley.sql(`UPDATE storage SET pruned_at = '-infinity'`);
  for (;;) {
    const { rows } = await parley.sql(
      `SELECT cold_seq > 10000 AS cold FROM sink_conversations WHERE conv = ${where}`,
      [conversation],
    );
    if ((rows[0] as { cold: boolean }).cold) break;
    await delay(200);
  }
  const client = new pg.Client(config);
  await client.connect();
  const [through, direct]: [number[], number[]] = [[], []];
  for (let i = 0; i < pages; i++) {
    const before = 1_000 + i * 100;
    let begun = performance.now();
    const answer = await fetch(
      `${parley.url}/v1/conversations/${conversation}/messages?before=${before}&limit=50`,
      {
        headers: { authorization: `Bearer ${tenants[0]!.secretKey}` },
      },
    );
    await answer.json();
    if (answer.status !== 200) throw new Error(`a cold page: ${answer.status}`);
    through.push(performance.now() - begun);
    begun = performance.now();
    await client.query(
      'SELECT * FROM parley_messages WHERE env = $1 AND conversation_id = $2 AND seq < $3 AND NOT hard ORDER BY seq DESC LIMIT 50',
      [tenants[0]!.id, conversation, before],
    );
    direct.push(performance.now() - begun);
    await delay(pageSpacingMs);
  }
  await client.end();
  bench.results.add('sink', 'parley', 'cold page: p50', 'ms', median(through));
  bench.results.add('sink', 'parley', 'the query itself: p50', 'ms', median(direct));
  bench.say(
    `sink: cold page p50 ${format(median(through))} ms, the query itself ${format(median(direct))} ms`,
  );
}

interface StorageAnswer {
  sink: { copy: object | null };
}

async function dashboard(
  parley: RunningParley,
): Promise<(method: string, path: string, body?: object) => Promise<StorageAnswer>> {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    origin: parley.url,
    'sec-fetch-site': 'same-origin',
    'chat-env': tenants[0]!.id,
  };
  const ask = async (method: string, path: string, body?: object): Promise<Response> => {
    const answer = await fetch(parley.url + path, {
      method,
      headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const signedIn = await ask('POST', '/v1/session', {
    email: 'owner@example.com',
    password: 'correct horse',
  });
  headers['cookie'] = signedIn.headers.getSetCookie()[0]!.split(';')[0]!;
  return async (method, path, body) => (await (await ask(method, path, body)).json()) as StorageAnswer;
}
