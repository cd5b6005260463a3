import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { startProxy } from '../../../../client/test/chaos/proxy.ts';
import type { FaultyProxy } from '../../../../client/test/chaos/proxy.ts';
import type { Random } from '../../../../client/test/chaos/random.ts';
import { startCustomerMariadb, startCustomerPostgres } from '../servers.ts';
import type { CustomerDatabase, Receiver } from '../servers.ts';
import { freePort } from '../../storage/process.ts';
import type { Admin } from './service.ts';

/** Customers with two databases each, and what may happen to these. */

export const engines = ['postgres', 'mariadb', 'http'] as const;
export type EngineName = (typeof engines)[number];

export interface StoredMessage {
  id: string;
  seq: number;
  text: string | null;
  version: number;
  deleted: boolean;
  hard: boolean;
}

/** What a database says, read past the service. */
export interface Stored {
  messages: StoredMessage[];
  members: { conversationId: string; userId: string; removed: boolean }[];
  conversations: { id: string; name: string | null }[];
}

/** One database behind a proxy of its own. */
export interface Place {
  proxy: FaultyProxy;
  /** Nothing gets through while this is set. */
  closed: boolean;
  /** Makes it the database of a slot, the first time of `a`, then of `b`. */
  enter(admin: Admin, slot: 'a' | 'b'): Promise<void>;
  backUp(): Promise<void>;
  /** Brings back the last backup. Returns the ids of messages that it does not have, or has in an earlier version. */
  restore(): Promise<string[]>;
  stored(): Promise<Stored>;
}

/** Begins; what it returns ends it. */
export type Fault = () => Promise<() => Promise<void>>;

export interface Customer {
  engine: EngineName;
  env: { id: string; secretKey: string };
  places: Record<'a' | 'b', Place>;
  /** What happens to both databases. */
  faults: Record<'stopped' | 'frozen' | 'disk full' | 'rights revoked' | 'table away', Fault>;
  stop(): Promise<void>;
}

const letters: Record<EngineName, string> = { postgres: 'p', mariadb: 'm', http: 'h' };
export const environmentOf = (engine: EngineName): Customer['env'] & { kind: string; plan: string } => ({
  id: `env_${engine}`,
  secretKey: `sk_live_${letters[engine].repeat(16)}_${letters[engine].repeat(32)}`,
  kind: 'development',
  plan: 'enterprise',
});

export const startCustomer = (engine: EngineName, random: Random): Promise<Customer> =>
  engine === 'http' ? startEndpoint(random) : startServer(engine, random);

async function proxied(
  port: number,
  random: Random,
): Promise<{ proxy: FaultyProxy; closed: boolean; port: number }> {
  const way = { closed: false };
  const proxy = await startProxy(() => (way.closed ? null : port), random);
  return Object.assign(way, { proxy, port: Number(new URL(proxy.url).port) });
}

/** Runs statements one after the other on one connection, as the admin and past the proxy. Returns the rows of the last. */
type Run = (...statements: string[]) => Promise<Record<string, unknown>[]>;

const runners: Record<'postgres' | 'mariadb', (url: string) => Run> = {
  postgres:
    (url) =>
    async (...statements) => {
      const client = new pg.Client(url.replace(/\?.*/, ''));
      client.on('error', () => undefined);
      await client.connect();
      try {
        let rows: Record<string, unknown>[] = [];
        for (const sql of statements) ({ rows } = await client.query<Record<string, unknown>>(sql));
        return rows;
      } finally {
        await client.end();
      }
    },
  mariadb: (url) => {
    const { hostname: host, port, username: user, pathname } = new URL(url);
    return async (...statements) => {
      const client = await mysql.createConnection({
        host,
        port: Number(port),
        user,
        database: pathname.slice(1),
      });
      try {
        let rows: unknown = [];
        for (const sql of statements) [rows] = await client.query(sql);
        return rows as Record<string, unknown>[];
      } finally {
        client.destroy();
      }
    };
  },
};

const tables = ['parley_messages', 'parley_members', 'parley_conversations'];

async function startServer(engine: 'postgres' | 'mariadb', random: Random): Promise<Customer> {
  const start = { postgres: startCustomerPostgres, mariadb: startCustomerMariadb }[engine];
  const server = await start({ small: true });
  const env = environmentOf(engine);
  const a = await sqlPlace(engine, server, env.id, random.fork());
  const b = await sqlPlace(engine, server, env.id, random.fork());
  const each = async (statements: (place: typeof a) => string[]): Promise<void> => {
    for (const place of [a, b]) await place.run(...statements(place));
  };
  return {
    engine,
    env,
    places: { a, b },
    faults: {
      async stopped() {
        await server.kill();
        return () => server.start();
      },
      frozen() {
        server.pause!();
        return Promise.resolve(() => Promise.resolve(server.resume!()));
      },
      async 'disk full'() {
        const { disk } = server;
        // Where no small disk can be mounted, the database says the same without being full.
        if (!disk) {
          await each(() => full[engine].begin);
          return () => each(() => full[engine].end);
        }
        await disk.fill();
        return async () => {
          await disk.free();
          // The server may have ended itself, or may wait for room.
          await server.kill();
          await server.start();
        };
      },
      async 'rights revoked'() {
        await each(({ rights }) => rights('REVOKE', 'FROM'));
        return () => each(({ rights }) => rights('GRANT', 'TO'));
      },
      async 'table away'() {
        await each(() => ['ALTER TABLE parley_messages RENAME TO messages_away']);
        return () => each(() => ['ALTER TABLE messages_away RENAME TO parley_messages']);
      },
    },
    async stop() {
      await a.proxy.close();
      await b.proxy.close();
      await server.stop();
    },
  };
}

/** A trigger that answers as a full disk does. */
const full = {
  postgres: {
    begin: [
      `CREATE OR REPLACE FUNCTION chaos_full() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = 'could not extend file'; END $$`,
      'CREATE TRIGGER chaos_full BEFORE INSERT OR UPDATE ON parley_messages EXECUTE FUNCTION chaos_full()',
    ],
    end: ['DROP TRIGGER chaos_full ON parley_messages'],
  },
  mariadb: {
    begin: [
      `CREATE TRIGGER chaos_full BEFORE INSERT ON parley_messages FOR EACH ROW SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1021`,
    ],
    end: ['DROP TRIGGER chaos_full'],
  },
};

const writersSql = {
  postgres: `SELECT DISTINCT grantee AS writer FROM information_schema.role_table_grants
    WHERE table_name = 'parley_messages' AND grantee LIKE 'parley_writer%'`,
  mariadb: `SELECT DISTINCT concat('\`', User, '\`@\`', Host, '\`') AS writer FROM mysql.tables_priv WHERE Db = database()`,
};

async function sqlPlace(
  engine: 'postgres' | 'mariadb',
  server: CustomerDatabase,
  env: string,
  random: Random,
) {
  const url = await server.createDatabase();
  const target = Number(new URL(url).port);
  const way = await proxied(target, random);
  const run = runners[engine](url);
  let writers: string[] = [];
  const is = (condition: string) => `CASE WHEN ${condition} THEN 1 ELSE 0 END`;
  return Object.assign(way, {
    run,
    rights: (verb: 'GRANT' | 'REVOKE', to: 'TO' | 'FROM'): string[] =>
      writers.flatMap((writer) =>
        tables.map((table) => `${verb} SELECT, INSERT, UPDATE, DELETE ON ${table} ${to} ${writer}`),
      ),
    async enter(admin: Admin, slot: 'a' | 'b') {
      const adminUrl = url.replace(`:${target}/`, `:${way.port}/`);
      const { body } = await admin('POST', '/v1/storage/database/migrate', { adminUrl });
      assert.ok(body.slot?.lastTest.ok, `${engine}, slot ${slot}: ${JSON.stringify(body)}`);
      writers = (await run(writersSql[engine])).map(({ writer }) => String(writer));
      assert.notDeepEqual(writers, []);
    },
    async backUp() {
      for (const table of tables)
        await run(
          `DROP TABLE IF EXISTS backup_${table}`,
          `CREATE TABLE backup_${table} AS SELECT * FROM ${table}`,
        );
    },
    async restore() {
      const lost = await run(
        ...(engine === 'postgres'
          ? ['BEGIN', `LOCK TABLE ${tables.join(', ')}`]
          : ['SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE', 'START TRANSACTION']),
        `CREATE TEMPORARY TABLE lost AS SELECT m.id FROM parley_messages m
           LEFT JOIN backup_parley_messages b ON b.env = m.env AND b.id = m.id
           WHERE m.env = '${env}' AND (b.id IS NULL OR b.revision < m.revision)`,
        ...tables.flatMap((table) => [
          `DELETE FROM ${table}`,
          `INSERT INTO ${table} SELECT * FROM backup_${table}`,
        ]),
        'COMMIT',
        'SELECT id FROM lost',
      );
      return lost.map(({ id }) => String(id));
    },
    async stored(): Promise<Stored> {
      const from = (table: string, columns: string) =>
        run(`SELECT ${columns} FROM ${table} WHERE env = '${env}'`) as Promise<any[]>;
      const messages = await from(
        'parley_messages',
        `id, seq, text, version, ${is('deleted_at IS NOT NULL')} AS deleted, ${is('hard')} AS hard`,
      );
      const members = await from(
        'parley_members',
        `conversation_id AS c, user_id AS u, ${is('removed')} AS removed`,
      );
      return {
        messages: messages.map((m) => ({
          id: m.id,
          seq: Number(m.seq),
          text: m.text,
          version: Number(m.version),
          deleted: Number(m.deleted) === 1,
          hard: Number(m.hard) === 1,
        })),
        members: members.map(({ c, u, removed }) => ({
          conversationId: c,
          userId: u,
          removed: Number(removed) === 1,
        })),
        conversations: await from('parley_conversations', 'id, name'),
      };
    },
  }) satisfies Place;
}

/** `down` takes no connection, `frozen` answers when that is over; a number is the status of every answer. */
type EndpointState = 'up' | 'down' | 'frozen' | number;

/** What the receiver of examples/ keeps and does. */
type ExampleStore = Receiver['store'] &
  Record<'ping' | 'write' | 'read' | 'get', (request: object) => object>;
const receiver = new URL('../../../../../examples/history-receiver/receiver.mjs', import.meta.url).href;

async function startEndpoint(random: Random): Promise<Customer> {
  const env = environmentOf('http');
  const a = await endpointPlace(env.id, random.fork());
  const b = await endpointPlace(env.id, random.fork());
  const become = (state: EndpointState): Promise<void> => {
    for (const place of [a, b]) place.become(state);
    return Promise.resolve();
  };
  const turned =
    (state: EndpointState): Fault =>
    async () => {
      await become(state);
      return () => become('up');
    };
  return {
    engine: 'http',
    env,
    places: { a, b },
    faults: {
      stopped: turned('down'),
      frozen: turned('frozen'),
      'disk full': turned(507),
      'rights revoked': turned(403),
      'table away': turned(404),
    },
    async stop() {
      for (const place of [a, b]) {
        await place.proxy.close();
        place.close();
      }
    },
  };
}

/** An http endpoint that keeps what the contract of docs/storage.md says, and has faults. */
async function endpointPlace(env: string, random: Random) {
  const { createStore } = (await import(receiver)) as { createStore(): ExampleStore };
  const store = createStore();
  let secret = '';
  let state: EndpointState = 'up';
  /** What came while it was frozen. */
  let waiting: (() => void)[] = [];
  const kept = () => {
    if (!store.environments.has(env))
      store.environments.set(env, { message: new Map(), conversation: new Map(), member: new Map() });
    return store.environments.get(env)!;
  };
  let backup = structuredClone(kept());

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    if (state === 'frozen') await new Promise<void>((resolve) => waiting.push(resolve));
    const say = (status: number, said: object) =>
      void res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said));
    if (state === 'down') return void res.destroy();
    if (typeof state === 'number') return say(state, {});
    const body = Buffer.concat(chunks);
    // Without a look at the time: clocks are apart here.
    const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signatures } = req.headers;
    const hmac = createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'));
    const wanted = hmac
      .update(`${String(id)}.${String(at)}.`)
      .update(body)
      .digest('base64');
    if (!String(signatures).split(' ').includes(`v1,${wanted}`)) return say(401, {});
    const request = JSON.parse(body.toString()) as { op: 'ping' | 'write' | 'read' | 'get' };
    return say(200, store[request.op](request));
  }
  const server = createServer((req, res) => {
    answer(req, res).catch(() => res.destroy());
  });
  server.on('connection', (socket) => {
    if (state === 'down') socket.destroy();
  });
  server.listen(await freePort(), '127.0.0.1');
  await once(server, 'listening');
  const way = await proxied((server.address() as AddressInfo).port, random);
  return Object.assign(way, {
    become(to: EndpointState): void {
      state = to;
      if (to === 'down') server.closeAllConnections();
      if (to === 'frozen') return;
      for (const go of waiting) go();
      waiting = [];
    },
    close(): void {
      server.closeAllConnections();
      server.close();
    },
    async enter(admin: Admin, slot: 'a' | 'b') {
      const url = `${way.proxy.url}/history`;
      const put = await admin('PUT', `/v1/storage/database/${slot}`, { type: 'http', url });
      assert.equal(put.status, 200, JSON.stringify(put.body));
      secret = put.body.signingSecret;
      const { body } = await admin('POST', '/v1/storage/database/test', { slot });
      assert.ok(body.ok, `http, slot ${slot}: ${JSON.stringify(body)}`);
    },
    backUp() {
      backup = structuredClone(kept());
      return Promise.resolve();
    },
    restore() {
      const has = (id: unknown): number => Number(backup.message.get(String(id))?.['revision'] ?? -1);
      const lost = [...kept().message.values()].filter((m) => has(m['id']) < Number(m['revision']));
      store.environments.set(env, structuredClone(backup));
      return Promise.resolve(lost.map((m) => String(m['id'])));
    },
    stored(): Promise<Stored> {
      const { message, member, conversation } = kept();
      const all = (of: Map<string, Record<string, unknown>>) => [...of.values()] as any[];
      return Promise.resolve({
        messages: all(message).map(({ id, seq, text, version, deletedAt, hard }) => ({
          id,
          seq,
          text,
          version,
          deleted: deletedAt !== null,
          hard,
        })),
        members: all(member).map(({ conversationId, userId, removed }) => ({
          conversationId,
          userId,
          removed,
        })),
        conversations: all(conversation).map(({ id, name }) => ({ id, name })),
      });
    },
  }) satisfies Place;
}
