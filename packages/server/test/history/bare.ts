import { createHmac } from 'node:crypto';
import { Agent, request } from 'node:http';
import { MongoClient } from 'mongodb';
import mysql from 'mysql2/promise';
import pg from 'pg';
import type { HistoryEngine, MessageRecord } from '../../src/platform/history/port.ts';
import { shapes, valueOf } from '../../src/platform/history/shared.ts';

/**
 * What the sink is measured against (npm run bench -- sink): a loop that inserts the same messages, all in memory before, with all their
 * columns, into a table of the same form with the same indexes; on one connection, a commit for each batch, one batch after the other.
 */

const columns = shapes.message.fields;

interface Bare {
  insert(part: readonly MessageRecord[]): Promise<unknown>;
  end(): Promise<unknown>;
}

const types: Record<string, string> = {
  seq: 'bigint',
  version: 'int',
  hard: 'boolean',
  revision: 'bigint',
  created_at: 'timestamptz',
  edited_at: 'timestamptz',
  deleted_at: 'timestamptz',
};

async function barePostgres(url: string): Promise<Bare> {
  const client = new pg.Client(url.replace(/\?.*/, ''));
  await client.connect();
  await client.query('DROP TABLE IF EXISTS bare');
  await client.query('CREATE TABLE bare (LIKE parley_messages INCLUDING ALL)');
  const arrays = columns.map((c, i) => `$${i + 1}::${types[c] ?? 'text'}[]`).join(', ');
  return {
    insert: (part) =>
      client.query(
        `INSERT INTO bare (env, ${columns.join(', ')}) SELECT 'bare', u.* FROM unnest(${arrays}) u`,
        columns.map((c) => part.map((record) => valueOf(record, c))),
      ),
    end: () => client.end(),
  };
}

async function bareMysql(url: string): Promise<Bare> {
  const { hostname, port, username, pathname } = new URL(url);
  const client = await mysql.createConnection({
    host: hostname,
    port: Number(port),
    user: username,
    database: pathname.slice(1),
    timezone: 'Z',
  });
  await client.query('DROP TABLE IF EXISTS bare');
  await client.query('CREATE TABLE bare LIKE parley_messages');
  const stored = (column: string, value: unknown): unknown =>
    column.endsWith('_at') && typeof value === 'string' ? value.replace('T', ' ').replace('Z', '') : value;
  return {
    insert: (part) =>
      client.query(`INSERT INTO bare (env, ${columns.join(', ')}) VALUES ?`, [
        part.map((record) => ['bare', ...columns.map((c) => stored(c, valueOf(record, c)))]),
      ]),
    end: () => client.end(),
  };
}

async function bareMongodb(url: string): Promise<Bare> {
  const client = new MongoClient(url.replace(/\?.*/, ''), { directConnection: true });
  await client.connect();
  const db = client.db(new URL(url).pathname.slice(1));
  const bare = db.collection<{ _id: string }>('bare');
  await bare.drop().catch(() => undefined);
  for (const index of await db.collection('parley_messages').indexes())
    if (index.name !== '_id_') await bare.createIndex(index.key, index.name ? { name: index.name } : {});
  const stored = ([name, value]: [string, unknown]): [string, unknown] => [
    name,
    name.endsWith('At') && typeof value === 'string' ? new Date(value) : value,
  ];
  return {
    insert: (part) =>
      bare.insertMany(
        part.map(({ kind: _kind, ...record }) => ({
          _id: `bare:${record.id}`,
          env: 'bare',
          ...(Object.fromEntries(Object.entries(record).map(stored)) as object),
        })),
        { ordered: false },
      ),
    end: () => client.close(),
  };
}

function bareHttp(url: string, secret: string): Promise<Bare> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  let batch = 0;
  return Promise.resolve({
    insert: (part) =>
      new Promise((resolve, reject) => {
        const body = JSON.stringify({
          op: 'write',
          env: 'bare',
          batch: String(batch++),
          records: part.map((record) => ({ ...record, metadata: {}, attachments: [] })),
        });
        const timestamp = String(Math.floor(Date.now() / 1_000));
        const signed = createHmac('sha256', key).update(`bare.${timestamp}.${body}`).digest('base64');
        const headers = {
          'content-type': 'application/json',
          'webhook-id': 'bare',
          'webhook-timestamp': timestamp,
          'webhook-signature': `v1,${signed}`,
        };
        request(url, { method: 'POST', agent, headers }, (answer) => {
          answer.resume();
          answer.once('end', () =>
            answer.statusCode === 200 ? resolve(null) : reject(new Error(`${answer.statusCode}`)),
          );
        })
          .once('error', reject)
          .end(body);
      }),
    end: () => Promise.resolve(agent.destroy()),
  });
}

/** Rows a second. */
export async function bareLoop(
  engine: HistoryEngine,
  url: string,
  secret: string,
  records: readonly MessageRecord[],
  batch: number,
): Promise<number> {
  const bare =
    engine === 'http'
      ? await bareHttp(url, secret)
      : await { postgres: barePostgres, mysql: bareMysql, mongodb: bareMongodb }[engine](url);
  try {
    const begun = performance.now();
    for (let i = 0; i < records.length; i += batch) await bare.insert(records.slice(i, i + batch));
    return records.length / ((performance.now() - begun) / 1_000);
  } finally {
    await bare.end();
  }
}
