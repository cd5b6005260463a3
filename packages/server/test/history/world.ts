import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { openHistory } from '../../src/platform/history/open.ts';
import type { History } from '../../src/platform/history/port.ts';
import type { HistoryDeps } from '../../src/platform/history/shared.ts';
import { createOutbound } from '../../src/platform/outbound/outbound.ts';
import type { PgDb } from '../../src/platform/postgres/db.ts';
import { signedInOwner } from '../accounts/dashboard.ts';
import type { Answer, Api } from '../support/api.ts';
import type { Service } from '../support/service.ts';

/** Polls until it holds; a bound only ends what has failed. */
export async function eventually<T>(
  look: () => Promise<T | undefined | false | null>,
  what: string | (() => string),
  ms = 60_000,
): Promise<T> {
  for (const deadline = Date.now() + ms; ;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) assert.fail(`it never happened: ${typeof what === 'string' ? what : what()}`);
    await delay(30);
  }
}

/** The dashboard of one environment, with its storage. */
export interface StorageWorld {
  api: Api;
  record(): Promise<Answer['body']>;
  /** Makes the tables in a customer's database, and keeps the environment's history there. */
  connect(adminUrl: string): Promise<void>;
  /** Waits until nothing is left to write or to copy. */
  settled(): Promise<Answer['body']>;
  /** As if everything in the conversations had happened 10 days ago, and waits until it has left the buffer, but for `left`. */
  cool(conversations: string[], left?: number): Promise<void>;
}

export async function openStorage(
  service: Pick<Service, 'url'>,
  db: PgDb,
  environment = 'env_dev',
): Promise<StorageWorld> {
  const api = (await signedInOwner(service.url)).in(environment);
  const record = async (): Promise<Answer['body']> => {
    const { status, body } = await api('GET', '/v1/storage');
    if (status === 429) {
      // Whoever looks all the time is told to wait.
      await delay(body.error.retryAfterMs);
      return record();
    }
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };
  const settled = async () => {
    let now: Answer['body'];
    return eventually(
      async () => {
        now = await record();
        return now.sink.backlog === 0 && now.sink.copy === null && now.sink.erasures === 0 ? now : null;
      },
      () => `the sink is done: ${JSON.stringify(now.sink)}`,
    );
  };
  return {
    api,
    record,
    settled,
    async connect(adminUrl) {
      const made = await api('POST', '/v1/storage/database/migrate', { adminUrl });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      const on = await api('PATCH', '/v1/storage', { mode: 'byo_db', bufferRetention: '24h' });
      assert.equal(on.status, 200, JSON.stringify(on.body));
      await settled();
    },
    async cool(conversations, left = 0) {
      await settled();
      await age(db, conversations, 10);
      await eventually(async () => {
        const [held] = await db.query<{ n: number }>(
          `SELECT count(*)::int AS n FROM messages m JOIN conversations c ON c.env = m.env AND c.no = m.conv
           WHERE c.id = ANY($1) AND m.id IS NOT NULL AND NOT m.hard AND m.seq < c.last_message_seq
             AND greatest(m.created_at, m.edited_at, m.deleted_at) < now() - interval '5 days'`,
          [conversations],
        );
        return held!.n === left;
      }, 'what is old has left the buffer');
    },
  };
}

async function age(db: PgDb, ids: string[], days: number): Promise<void> {
  const convs = '(SELECT no FROM conversations WHERE id = ANY($1))';
  await db.query(
    `UPDATE messages SET created_at = created_at - $2 * interval '1 day', edited_at = edited_at - $2 * interval '1 day',
       deleted_at = deleted_at - $2 * interval '1 day' WHERE conv IN ${convs} AND id IS NOT NULL`,
    [ids, days],
  );
  await db.query(`UPDATE sink_conversations SET oldest_at = '-infinity' WHERE conv IN ${convs}`, [ids]);
  await db.query(`UPDATE storage SET pruned_at = '-infinity'`);
}

/** As that many sends into an empty conversation would have left it; seqs begin with 2. */
export const fill = (db: PgDb, conversation: string, count: number): Promise<unknown> =>
  db.query(
    `WITH c AS (UPDATE conversations SET last_seq = $2::bigint + 1, last_message_seq = $2::bigint + 1, message_count = $2::bigint
       WHERE id = $1 RETURNING env, no, id)
     INSERT INTO messages (env, conv, seq, id, text, created_at)
     SELECT c.env, c.no, g, 'msg_' || right(c.id, 20) || lpad(g::text, 6, '0'), 'text ' || g, now() FROM c, generate_series(2, $2::bigint + 1) g`,
    [conversation, count],
  );

export const depsOf = (env: string): HistoryDeps => ({
  outbound: createOutbound({ allowPrivate: true }),
  tenant: 1,
  env,
  random: (bytes: number) => randomBytes(bytes),
  seconds: () => Math.floor(Date.now() / 1000),
});

/** A look into the customer's database past the service. */
export const inspect = (url: string, env = 'env_dev'): Promise<History> => openHistory({ url }, depsOf(env));
