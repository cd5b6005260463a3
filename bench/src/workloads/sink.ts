import { randomBytes } from 'node:crypto';
import { Agent, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { migrateHistory } from '../../../packages/server/src/platform/history/open.ts';
import type { HistoryEngine, MessageRecord } from '../../../packages/server/src/platform/history/port.ts';
import { bareLoop } from '../../../packages/server/test/history/bare.ts';
import { startCustomerMariadb, startCustomerMongodb } from '../../../packages/server/test/history/servers.ts';
import { depsOf } from '../../../packages/server/test/history/world.ts';
import { timesOf, withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { lineOf, start } from '../children.ts';
import { rssOf } from '../procfs.ts';
import { tenants } from '../servers/parley.ts';
import type { RunningParley } from '../servers/parley.ts';
import { format, median } from '../stats.ts';
import { restConnections, sends } from './store.ts';
import { environmentOf, longConversation } from './seed.ts';

/**
 * History in customers' own databases (docs/storage.md): how fast the sink writes beside a bare loop of batched inserts, for each engine;
 * what it costs a send; how long a cold page takes beside the query itself; and, with `--only memory`, what a long copy needs of memory.
 */

const most = 200_000;
/** As the sink's own. */
const batch = 500;
const pages = 100;
/** Below the limit of 50 a second. */
const pageSpacingMs = 30;
const receiver = fileURLToPath(new URL('../../../examples/history-receiver/receiver.mjs', import.meta.url));

const [tenant] = tenants as [(typeof tenants)[0]];

export async function sink(bench: Bench): Promise<void> {
  const { only } = bench.options;
  const wants = (part: string): boolean => (only ? only.includes(part) : part !== 'memory');
  const engines = Object.keys(customers).filter(wants) as HistoryEngine[];
  if (engines.length > 0 || wants('pages'))
    await withRunning(bench, bench.freshParley('sink'), async (parley) => {
      const count = Math.min(most, bench.options.messages);
      const conversation = await longConversation(parley, await environmentOf(parley, tenant), count);
      const records = await recordsOf(parley, conversation);
      const api = await dashboard(parley);
      for (const engine of engines) await throughput(bench, parley, api, engine, records);
      if (wants('pages')) await coldPages(bench, parley, api, conversation);
    });
  if (wants('send')) await sendCost(bench);
  if (wants('memory')) await memory(bench);
}

interface Customer {
  url: string;
  /** Of an http endpoint, once it is known. */
  secret?(secret: string): Promise<void>;
  stop(): Promise<unknown>;
}

/** Real servers, each with a database that holds nothing; null where there is none. */
const customers: Record<HistoryEngine, (bench: Bench) => Promise<Customer | null>> = {
  async postgres(bench) {
    const database = await bench.database();
    const name = `customer_${randomBytes(4).toString('hex')}`;
    await database.create(name);
    return { url: `${database.url(name)}?sslmode=disable`, stop: () => Promise.resolve() };
  },
  async mysql() {
    const server = await startCustomerMariadb();
    return { url: await server.createDatabase(), stop: () => server.stop() };
  },
  async mongodb() {
    const server = await startCustomerMongodb();
    return server && { url: await server.createDatabase(), stop: () => server.stop() };
  },
  http() {
    const port = 21_000 + Math.floor(Math.random() * 1_000);
    let stop = () => Promise.resolve();
    return Promise.resolve({
      url: `http://127.0.0.1:${port}/history`,
      async secret(secret: string) {
        const child = start(process.execPath, [receiver], {
          env: { PATH: process.env['PATH'] ?? '', PORT: String(port), SECRET: secret },
        });
        await lineOf(child, /listening/);
        stop = () => child.stop();
      },
      stop: () => stop(),
    });
  },
};

/** Sets the environment's database, and answers with the secret of an http endpoint. */
async function connect(api: Dashboard, customer: Customer): Promise<string> {
  if (!customer.secret) await migrateHistory({ url: customer.url }, depsOf(tenant.id));
  const { signingSecret = '' } = await api('PUT', '/v1/storage/database/a', { url: customer.url });
  await customer.secret?.(signingSecret);
  const { ok, errors } = await api('POST', '/v1/storage/database/test', { slot: 'a' });
  if (!ok) throw new Error(`the customer's database: ${errors?.join()}`);
  return signingSecret;
}

async function copied(api: Dashboard, rows: number, look: () => void = () => undefined): Promise<number> {
  const begun = performance.now();
  await api('PATCH', '/v1/storage', { mode: 'byo_db', bufferRetention: '24h' });
  while ((await api('GET', '/v1/storage')).sink.copy !== null) {
    look();
    await delay(100);
  }
  return rows / ((performance.now() - begun) / 1_000);
}

async function throughput(
  bench: Bench,
  parley: RunningParley,
  api: Dashboard,
  engine: HistoryEngine,
  records: readonly MessageRecord[],
): Promise<void> {
  const [sunk, bare]: [number[], number[]] = [[], []];
  for (let round = 0; round < timesOf(bench); round++) {
    const customer = await customers[engine](bench);
    if (!customer) return bench.say(`sink, ${engine}: no server is at hand, so it was not measured`);
    try {
      const secret = await connect(api, customer);
      const measures = [
        async () => sunk.push(await copied(api, records.length)),
        async () => bare.push(await bareLoop(engine, customer.url, secret, records, batch)),
      ];
      // Whoever is first in one round is second in the next.
      for (const measure of round % 2 === 0 ? measures : measures.reverse()) await measure();
      await api('PATCH', '/v1/storage', { mode: 'managed' });
    } finally {
      await customer.stop();
    }
  }
  const [ours, theirs] = [median(sunk), median(bare)];
  bench.results.add('sink', 'parley', `${engine}: copied`, 'rows/s', ours);
  bench.results.add('sink', 'parley', `${engine}: a bare loop`, 'rows/s', theirs);
  bench.say(
    `sink, ${engine}: ${format(ours)} rows/s, a bare loop of inserts ${format(theirs)} (${(ours / theirs).toFixed(2)})`,
  );
}

/** The messages as the sink writes them. */
async function recordsOf(parley: RunningParley, conversation: string): Promise<MessageRecord[]> {
  const { rows } = await parley.sql(
    `SELECT m.id, m.seq::float8 AS seq, u.id AS "senderId", m.text, to_char(m.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS "createdAt"
     FROM conversations c JOIN messages m ON m.env = c.env AND m.conv = c.no JOIN users u ON u.env = m.env AND u.no = m.sender
     WHERE c.id = $1 ORDER BY m.seq`,
    [conversation],
  );
  return (rows as Pick<MessageRecord, 'id' | 'seq' | 'senderId' | 'text' | 'createdAt'>[]).map((row) => ({
    ...{ kind: 'message', conversationId: conversation, replyTo: null, attachments: null, metadata: null },
    ...{ version: 1, editedAt: null, deletedAt: null, hard: false, revision: 4, ...row },
  }));
}

/**
 * Two services with stores of their own, in turns: in one all senders' environments note their messages for a sink, in the other none
 * does. Neither has a worker, so what is measured is the send path alone, in CPU of the service and its PostgreSQL.
 */
async function sendCost(bench: Bench): Promise<void> {
  const { warmMs, windowMs, users, rounds } = bench.options;
  const servers = (['with', 'without'] as const).map((what) => ({
    what,
    parley: bench.freshParley(`sink-${what}`, { CHAT_ROLES: 'api,gateway' }),
    cpu: [] as number[],
  }));
  for (let round = 0; round < rounds; round++)
    for (const { what, parley, cpu } of round % 2 === 0 ? servers : [...servers].reverse())
      await withRunning(bench, parley, async (running) => {
        if (what === 'with') await running.sql('UPDATE environments SET listeners = listeners | 8');
        const run = await bench.load.http(
          {
            ...{ port: running.port, requests: await sends(running, users, round) },
            ...{ connections: restConnections, warmMs, windowMs },
          },
          running.roots,
        );
        cpu.push((run.serverCpuMs * 1_000) / run.answered);
        bench.say(`sink: CPU per send ${what} ${format(cpu.at(-1)!)} µs`);
        if (what === 'with') await running.sql('TRUNCATE sink_log');
      });
  const [on, off] = servers.map(({ cpu }) => median(cpu)) as [number, number];
  bench.results.add('sink', 'parley', 'CPU per send with', 'µs', on);
  bench.results.add('sink', 'parley', 'CPU per send without', 'µs', off);
  bench.say(
    `sink: CPU per send ${format(on)} µs with, ${format(off)} without (${((on / off - 1) * 100).toFixed(1)} %)`,
  );
}

async function coldPages(
  bench: Bench,
  parley: RunningParley,
  api: Dashboard,
  conversation: string,
): Promise<void> {
  const customer = (await customers.postgres(bench))!;
  await connect(api, customer);
  await copied(api, 0);
  const where = '(SELECT no FROM conversations WHERE id = $1)';
  await parley.sql(`UPDATE messages SET created_at = created_at - interval '10 days' WHERE conv = ${where}`, [
    conversation,
  ]);
  await parley.sql(`UPDATE sink_conversations SET oldest_at = '-infinity' WHERE conv = ${where}`, [
    conversation,
  ]);
  await parley.sql(`UPDATE storage SET pruned_at = '-infinity', due_at = '-infinity'`);
  const { rows } = await parley.sql(`SELECT last_seq::float8 AS n FROM conversations WHERE id = $1`, [
    conversation,
  ]);
  const newest = (rows[0] as { n: number }).n;
  const begun = performance.now();
  for (let cold = 0; cold < newest - 1;) {
    const { rows } = await parley.sql(
      `SELECT cold_seq::float8 AS cold FROM sink_conversations WHERE conv = ${where}`,
      [conversation],
    );
    cold = (rows[0] as { cold: number }).cold;
    await delay(100);
  }
  bench.say(`sink: ${format(newest / ((performance.now() - begun) / 1_000))} messages/s left the buffer`);
  await parley.sql('VACUUM ANALYZE messages');

  const client = new pg.Client(customer.url.replace(/\?.*/, ''));
  await client.connect();
  const agent = new Agent({ keepAlive: true });
  const [through, direct]: [number[], number[]] = [[], []];
  for (let i = 0; i < pages; i++) {
    const before = Math.min(newest, 1_000 + ((i * 7_919) % Math.max(1, newest - 1_000)));
    for (const measure of i % 2 === 0 ? ['through', 'direct'] : ['direct', 'through']) {
      const begun = performance.now();
      if (measure === 'through') {
        await page(
          `${parley.url}/v1/conversations/${conversation}/messages?before=${before}&limit=50`,
          agent,
        );
        through.push(performance.now() - begun);
      } else {
        await client.query(
          'SELECT * FROM parley_messages WHERE env = $1 AND conversation_id = $2 AND seq < $3 AND NOT hard ORDER BY seq DESC LIMIT 50',
          [tenant.id, conversation, before],
        );
        direct.push(performance.now() - begun);
      }
      await delay(pageSpacingMs);
    }
  }
  agent.destroy();
  await client.end();
  const [ours, theirs] = [median(through), median(direct)];
  bench.results.add('sink', 'parley', 'cold page: p50', 'ms', ours);
  bench.results.add('sink', 'parley', 'the query itself: p50', 'ms', theirs);
  bench.say(
    `sink: cold page p50 ${ours.toFixed(2)} ms, the query itself ${theirs.toFixed(2)} ms (${(ours / theirs).toFixed(2)} ×)`,
  );
}

const page = (url: string, agent: Agent): Promise<unknown> =>
  new Promise((resolve, reject) => {
    get(url, { agent, headers: { authorization: `Bearer ${tenant.secretKey}` } }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.once('end', () => {
        const text = Buffer.concat(chunks).toString();
        if (answer.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`a cold page: ${answer.statusCode} ${text}`));
      });
    }).once('error', reject);
  });

/** Resident memory of the service (without its PostgreSQL), while as many messages are copied as --messages says. */
async function memory(bench: Bench): Promise<void> {
  await withRunning(bench, bench.freshParley('sink-memory'), async (parley) => {
    const count = bench.options.messages;
    await longConversation(parley, await environmentOf(parley, tenant), count);
    const api = await dashboard(parley);
    await connect(api, (await customers.postgres(bench))!);
    const seen: number[] = [];
    const look = () => void seen.push(rssOf(parley.roots) / 1_024);
    look();
    const rate = await copied(api, count, look);
    const tenth = (i: number) =>
      Math.max(...seen.slice(Math.floor((seen.length * i) / 10), Math.ceil((seen.length * (i + 1)) / 10)));
    const tenths = Array.from({ length: 10 }, (_, i) => tenth(i));
    bench.results.add(
      'sink',
      'parley',
      `memory, ${format(count)} rows copied: most`,
      'MB',
      Math.max(...seen),
    );
    bench.say(
      `sink: ${format(count)} rows copied at ${format(rate)} rows/s; memory ${seen[0]!.toFixed(0)} MB before, the most in each tenth of the time ${tenths.map((mb) => mb.toFixed(0)).join(' ')} MB`,
    );
  });
}

interface StorageAnswer {
  sink: { copy: object | null };
  signingSecret?: string;
  ok?: boolean;
  errors?: string[];
}
type Dashboard = (method: string, path: string, body?: object) => Promise<StorageAnswer>;

async function dashboard(parley: RunningParley): Promise<Dashboard> {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    origin: parley.url,
    'sec-fetch-site': 'same-origin',
    'chat-env': tenant.id,
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
