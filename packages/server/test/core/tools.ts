import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClientConfig } from 'pg';
import type { EventRecord, Message } from '@parley/protocol';
import type { PgDb, Queryable } from '../../src/platform/postgres/db.ts';
import { startEmbeddedPostgres } from '../../src/platform/postgres/embedded/index.ts';
import type { Api } from '../support/api.ts';

export interface OutsidePostgres {
  url: string;
  connection: ClientConfig;
  stop(): Promise<void>;
  start(): Promise<void>;
  dispose(): Promise<void>;
}

/** A PostgreSQL that the service is pointed to by DATABASE_URL, and that can be stopped and started again. */
export async function outsidePostgres(): Promise<OutsidePostgres> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-out-'));
  const run = () => startEmbeddedPostgres({ dataDir, log: () => undefined });
  let server = await run();
  const { host, port, user, database } = server.connection;
  return {
    url: `postgresql://${user}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`,
    connection: server.connection,
    stop: () => server.stop(),
    start: async () => {
      server = await run();
    },
    dispose: async () => {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

export async function createGroup(server: Api, members: string[], extra: object = {}): Promise<string> {
  const { status, body } = await server('POST', '/v1/conversations', { type: 'group', members, ...extra });
  assert.equal(status, 201, JSON.stringify(body));
  return (body as { id: string }).id;
}

/** The whole event stream, page by page. */
export async function allEvents(api: Api, conversationId: string): Promise<EventRecord[]> {
  const found: EventRecord[] = [];
  for (let more = true; more;) {
    const after = found.at(-1)?.seq ?? 0;
    const { status, body } = await api(
      'GET',
      `/v1/conversations/${conversationId}/events?after=${after}&limit=200`,
    );
    assert.equal(status, 200, JSON.stringify(body));
    const page = body as { data: EventRecord[]; hasMore: boolean };
    found.push(...page.data);
    more = page.hasMore;
    assert.ok(!more || page.data.length > 0, 'a page with more to come is not empty');
  }
  return found;
}

/** All messages of a conversation in ascending seq, read backwards page by page. */
export async function allMessages(api: Api, conversationId: string): Promise<Message[]> {
  const found: Message[] = [];
  for (let more = true; more;) {
    const before = found.length > 0 ? `&before=${found.at(-1)!.seq}` : '';
    const { body } = await api('GET', `/v1/conversations/${conversationId}/messages?limit=200${before}`);
    const page = body as { data: Message[]; hasMore: boolean };
    found.push(...page.data);
    more = page.hasMore;
  }
  return found.reverse();
}

export function assertContiguous(seqs: number[], first = 1): void {
  assert.deepEqual(
    seqs,
    times(seqs.length, (i) => first + i),
  );
}

/** Every row of every table as text, for proving that something is nowhere. */
export async function dump(db: PgDb): Promise<string> {
  const tables = await db.query<{ name: string }>(
    `SELECT c.oid::regclass::text AS name FROM pg_class c
     WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace ORDER BY 1`,
  );
  let text = '';
  for (const { name } of tables) {
    const rows = await db.query<{ line: string }>(
      `SELECT t::text AS line FROM (SELECT to_jsonb(x) AS t FROM ${name} x) y`,
    );
    text += `${name}\n${rows.map((r) => r.line).join('\n')}\n`;
  }
  return text;
}

/** Moves conversations and all that happened in them by whole hours into the past. */
export async function ageConversations(db: PgDb, ids: string[], hours: number): Promise<void> {
  const by = `created_at = created_at - $2 * interval '1 hour'`;
  const convs = '(SELECT no FROM conversations WHERE id = ANY($1))';
  for (const table of ['events', 'messages'])
    await db.query(
      `UPDATE ${table} SET ${by}, active_at = active_at - $2 * interval '1 hour' WHERE conv IN ${convs}`,
      [ids, hours],
    );
  await db.query(
    `UPDATE members SET last_activity_step = last_activity_step - $2 * 360, own_activity_step = own_activity_step - $2 * 360,
       own_activity_at = own_activity_at - $2 * interval '1 hour' WHERE conv IN ${convs}`,
    [ids, hours],
  );
  await db.query(
    `UPDATE conversations SET ${by}, last_activity_step = last_activity_step - $2 * 360,
       last_activity_at = last_activity_at - $2 * interval '1 hour' WHERE id = ANY($1)`,
    [ids, hours],
  );
}

/** Puts messages by a user into conversations, `count` each, straight into the tables. */
export async function seedMessages(
  db: PgDb,
  options: { conversations: string[]; sender: string; count: number; text: string },
): Promise<void> {
  const { conversations, sender, count, text } = options;
  const values = [conversations, count];
  // One by one: a slow machine must be done with a statement within its time-out.
  for (const conversation of conversations)
    await db.query(
      `INSERT INTO messages (env, conv, seq, id, sender, text, created_at)
       SELECT c.env, c.no, c.last_seq + i, 'msg_' || c.no || 'x' || c.last_seq + i, u.no, $4, now()
       FROM conversations c JOIN users u ON u.env = c.env AND u.id = $3, generate_series(1, $2::int) i
       WHERE c.id = $1`,
      [conversation, count, sender, text],
    );
  await db.query(
    `UPDATE members m SET own_unread = own_unread + $2 FROM conversations c, users u
     WHERE c.id = ANY($1) AND u.env = c.env AND u.id = $3 AND m.env = c.env AND m.conv = c.no AND m.usr = u.no`,
    [...values, sender],
  );
  await db.query(
    `UPDATE conversations SET last_seq = last_seq + $2, message_count = message_count + $2, last_message_seq = last_seq + $2
     WHERE id = ANY($1)`,
    values,
  );
}

/** Runs every statement under EXPLAIN as well, and adds up the pages that PostgreSQL touches. */
export function counting(db: Queryable): { db: Queryable; pages: () => number; statements: () => number } {
  let pages = 0;
  let statements = 0;
  return {
    db: {
      query: async <R extends object>(sql: string, values?: unknown[]) => {
        const [row] = await db.query<{ 'QUERY PLAN': { Plan: Record<string, number> }[] }>(
          `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ${sql}`,
          values,
        );
        const plan = row!['QUERY PLAN'][0]!.Plan;
        pages += plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!;
        statements++;
        return db.query<R>(sql, values);
      },
    },
    pages: () => pages,
    statements: () => statements,
  };
}
