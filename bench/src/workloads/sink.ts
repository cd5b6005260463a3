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
import { distanceMs, distant } from '../distant.ts';
import { coldQuery } from '../peers/cold-query.ts';
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
/** Pages and queries of each kind that are not counted: the first pay for the compiler. */
const warmPages = 100;
const warmMessages = 2_000;
/** Below the limit of 50 a second. */
const pageSpacingMs = 30;
const queryServer = fileURLToPath(new URL('../peers/query.ts', import.meta.url));
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

/** Copies everything, but for no longer than `mostMs`. Answers with how many rows were copied in a second. */
async function copied(
  parley: RunningParley,
  api: Dashboard,
  rows: number,
  look: (done: number) => void = () => undefined,
  mostMs = Infinity,
): Promise<number> {
  // Past the service: what is looked at so often must cost it nothing.
  const store = new pg.Client(await parley.store());
  await store.connect();
  try {
    const begun = performance.now();
    const rate = (done: number) => done / ((performance.now() - begun) / 1_000);
    await api('PATCH', '/v1/storage', { mode: 'byo_db', bufferRetention: '24h' });
    for (;;) {
      const { rows: found } = await store.query<{ done: number }>(
        `SELECT (copy ->> 'done')::float8 AS done FROM storage WHERE copy IS NOT NULL`,
      );
      const done = found[0]?.done;
      look(done ?? rows);
      if (done === undefined) return rate(rows);
      if (performance.now() - begun > mostMs) return rate(done);
      await delay(100);
    }
  } finally {
    await store.end();
  }
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
        async () => sunk.push(await copied(parley, api, records.length)),
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
    kind: 'message',
    conversationId: conversation,
    replyTo: null,
    attachments: null,
    metadata: null,
    extras: null,
    version: 1,
    editedAt: null,
    deletedAt: null,
    hard: false,
    revision: 4,
    ...row,
  }));
}

/**
 * One service, in turns of a second: in one turn all environments note their messages for a sink, in the next none does. It has no worker,
 * so what is measured is the send path alone, in CPU of the service and its PostgreSQL. Other work on the machine changes it, so each turn
 * is compared with the one beside it, and the middle of these ratios counts. (Two services beside each other differ by up to 10 % when
 * both do the same.)
 */
async function sendCost(bench: Bench): Promise<void> {
  const { windowMs, users, rounds } = bench.options;
  const turns = Math.max(4, Math.round((2 * rounds * windowMs) / 1_000));
  await withRunning(bench, bench.freshParley('sink-send', { CHAT_ROLES: 'api,gateway' }), async (parley) => {
    const costs: { with: number; without: number }[] = [];
    const cost = async (round: number, listeners: string): Promise<number> => {
      const requests = await sends(parley, users, round);
      await parley.sql(`UPDATE environments SET listeners = listeners ${listeners}`);
      const load = {
        port: parley.port,
        requests,
        connections: restConnections,
        warmMs: 300,
        windowMs: 1_000,
      };
      const run = await bench.load.http(load, parley.roots);
      return (run.serverCpuMs * 1_000) / run.answered;
    };
    for (let turn = 0; turn < turns; turn++) {
      const beside = { with: 0, without: 0 };
      for (const what of turn % 2 === 0 ? (['with', 'without'] as const) : (['without', 'with'] as const))
        beside[what] = await cost(2 * turn + Number(what === 'with'), what === 'with' ? '| 8' : '& ~8');
      // The first pays for the compiler.
      if (turn > 0) costs.push(beside);
    }
    const ratio = median(costs.map((c) => c.with / c.without));
    const [on, off] = [median(costs.map((c) => c.with)), median(costs.map((c) => c.without))];
    bench.results.add('sink', 'parley', 'CPU per send with', 'µs', on);
    bench.results.add('sink', 'parley', 'CPU per send without', 'µs', off);
    bench.say(
      `sink: CPU per send ${format(on)} µs with, ${format(off)} without; the middle of ${costs.length} pairs ${((ratio - 1) * 100).toFixed(1)} %`,
    );
  });
}

async function coldPages(
  bench: Bench,
  parley: RunningParley,
  api: Dashboard,
  conversation: string,
): Promise<void> {
  const customer = (await customers.postgres(bench))!;
  await connect(api, customer);
  await copied(parley, api, 0);
  const newest = await cool(bench, parley, conversation);
  // What any page costs, wherever its messages are.
  const warm = await longConversation(parley, await environmentOf(parley, tenant), warmMessages);
  const far = await distant(Number(new URL(customer.url).port));
  const places: [where: string, url: string][] = [
    ['on this machine', customer.url],
    [`${2 * distanceMs} ms away`, customer.url.replace(/:\d+\//, `:${far.port}/`)],
  ];
  // A service that has been running for a while.
  const request = `GET /v1/conversations/${warm}/messages?before=${warmMessages}&limit=50 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${tenant.secretKey}\r\n\r\n`;
  const { warmMs } = bench.options;
  await bench.load.http(
    { port: parley.port, requests: [request], connections: 2, warmMs, windowMs: warmMs },
    parley.roots,
  );
  for (const [where, url] of places) {
    if (url !== customer.url) {
      // The same database at another address: it takes over at once.
      await api('PUT', '/v1/storage/database/b', { url });
      await api('POST', '/v1/storage/database/promote/b');
    }
    const { through, buffered, bare, direct } = await timed(
      parley,
      { cold: conversation, warm },
      url,
      newest,
    );
    bench.results.add('sink', 'parley', `cold page, database ${where}: p50`, 'ms', through);
    bench.results.add('sink', 'parley', `page of the buffer, database ${where}: p50`, 'ms', buffered);
    bench.results.add('sink', 'parley', `the query itself, database ${where}: p50`, 'ms', direct);
    bench.results.add('sink', 'parley', `the query over HTTP, database ${where}: p50`, 'ms', bare);
    const times = (ms: number) => `${(ms / direct).toFixed(2)} ×`;
    bench.say(
      `sink: cold page p50 ${through.toFixed(2)} ms, the query itself ${direct.toFixed(2)} ms (${times(through)}), a page of the buffer ${buffered.toFixed(2)} ms, so being cold adds ${times(through - buffered)} the query; a server that does nothing but the query ${bare.toFixed(2)} ms (${times(bare)}); database ${where}`,
    );
  }
  far.close();
}

/** Takes all of it out of the buffer. Answers with the newest seq. */
async function cool(bench: Bench, parley: RunningParley, conversation: string): Promise<number> {
  const where = '(SELECT no FROM conversations WHERE id = $1)';
  const one = async (text: string): Promise<number> =>
    (await parley.sql(text, [conversation])).rows.map((row: { n: number }) => row.n)[0]!;
  const newest = await one('SELECT last_seq::float8 AS n FROM conversations WHERE id = $1');
  for (const change of [
    `UPDATE messages SET created_at = created_at - interval '10 days' WHERE conv = ${where}`,
    `UPDATE sink_conversations SET oldest_at = '-infinity' WHERE conv = ${where}`,
  ])
    await parley.sql(change, [conversation]);
  await parley.sql(`UPDATE storage SET pruned_at = '-infinity', due_at = '-infinity'`);
  const begun = performance.now();
  while (
    (await one(`SELECT cold_seq::float8 AS n FROM sink_conversations WHERE conv = ${where}`)) <
    newest - 1
  )
    await delay(100);
  bench.say(`sink: ${format(newest / ((performance.now() - begun) / 1_000))} messages/s left the buffer`);
  await parley.sql('VACUUM ANALYZE messages');
  return newest;
}

/** Pages and queries in turns; the medians, in milliseconds. */
async function timed(
  parley: RunningParley,
  conversation: { cold: string; warm: string },
  url: string,
  newest: number,
): Promise<{ through: number; buffered: number; bare: number; direct: number }> {
  const bare = start(process.execPath, [queryServer], {
    env: { PATH: process.env['PATH'] ?? '', DATABASE_URL: url.replace(/\?.*/, '') },
  });
  const [, barePort] = await lineOf(bare, /listening at (\d+)/);
  const client = new pg.Client(url.replace(/\?.*/, ''));
  await client.connect();
  const agent = new Agent({ keepAlive: true });
  const kinds = ['through', 'buffered', 'bare', 'direct'] as const;
  const times: Record<(typeof kinds)[number], number[]> = { through: [], buffered: [], bare: [], direct: [] };
  const pageOf = (of: string, before: number) =>
    page(`${parley.url}/v1/conversations/${of}/messages?before=${before}&limit=50`, agent);
  for (let i = -warmPages; i < pages; i++) {
    const before = Math.min(newest, 1_000 + (((i + warmPages) * 7_919) % Math.max(1, newest - 1_000)));
    for (const what of i % 2 === 0 ? kinds : kinds.toReversed()) {
      const begun = performance.now();
      if (what === 'through') await pageOf(conversation.cold, before);
      else if (what === 'buffered') await pageOf(conversation.warm, 100 + (before % (warmMessages - 100)));
      else {
        const values = [tenant.id, conversation.cold, before];
        if (what === 'bare') await page(`http://127.0.0.1:${barePort}/${values.join('/')}`, agent);
        else await client.query(coldQuery, values);
      }
      if (i >= 0) times[what].push(performance.now() - begun);
      await delay(pageSpacingMs);
    }
  }
  agent.destroy();
  await client.end();
  await bare.stop();
  return {
    through: median(times.through),
    buffered: median(times.buffered),
    bare: median(times.bare),
    direct: median(times.direct),
  };
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

/**
 * Resident memory of the service (without its PostgreSQL), while as many messages are copied as --messages says, or as many as can be in
 * the time that --seconds says.
 */
async function memory(bench: Bench): Promise<void> {
  await withRunning(bench, bench.freshParley('sink-memory'), async (parley) => {
    const count = bench.options.messages;
    let done = 0;
    await longConversation(parley, await environmentOf(parley, tenant), count);
    const api = await dashboard(parley);
    await connect(api, (await customers.postgres(bench))!);
    const seen: number[] = [];
    const look = (rows: number) => {
      done = rows;
      seen.push(rssOf(parley.roots) / 1_024);
    };
    look(0);
    const rate = await copied(parley, api, count, look, bench.options.soakMs);
    const tenth = (i: number) =>
      Math.max(...seen.slice(Math.floor((seen.length * i) / 10), Math.ceil((seen.length * (i + 1)) / 10)));
    const tenths = Array.from({ length: 10 }, (_, i) => tenth(i));
    bench.results.add('sink', 'parley', `memory, ${format(done)} rows copied: most`, 'MB', Math.max(...seen));
    bench.say(
      `sink: ${format(done)} of ${format(count)} rows copied at ${format(rate)} rows/s; memory ${seen[0]!.toFixed(0)} MB before, the most in each tenth of the time ${tenths.map((mb) => mb.toFixed(0)).join(' ')} MB`,
    );
  });
}

interface StorageAnswer {
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
