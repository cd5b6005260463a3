import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { appendBatch, logSettings } from '../../src/log/append.ts';
import type { NewMessage } from '../../src/log/append.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import type { ConnectionSettings } from '../../src/platform/postgres/db.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { outsidePostgres, times } from './tools.ts';
import type { OutsidePostgres } from './tools.ts';

/**
 * docs/log.md: however messages are gathered, and whichever function appends them, they get the same answers and leave the same
 * store. Random batches are given to stores that begin as copies of one another.
 */

const seed = 20_260;
const rounds = 60;

type Append = (db: PgDb, batch: NewMessage[]) => ReturnType<typeof appendBatch>;
const inPieces =
  (sizeOf: () => number, waitMs: number | null): Append =>
  async (db, batch) => {
    const answers = [];
    for (let at = 0, size; at < batch.length; at += size) {
      size = sizeOf();
      answers.push(...(await appendBatch(db, batch.slice(at, at + size), waitMs)));
    }
    return answers;
  };
const pieces = randomFrom(seed + 1);
const paths: Record<string, Append> = {
  'all at once': (db, batch) => appendBatch(db, batch),
  'one by one, append_message': inPieces(() => 1, null),
  'one by one, append_messages': inPieces(() => 1, 1_000),
  'in pieces': inPieces(() => 1 + pieces(7), null),
};

let postgres: OutsidePostgres;
const stores = new Map<string, PgDb>();

before(async () => {
  postgres = await outsidePostgres();
  const admin = new PgDb(postgres.connection, { max: 1, onError: () => undefined });
  const open = async (database: string): Promise<PgDb> => {
    const connection = { ...postgres.connection, database } as ConnectionSettings;
    return new PgDb(connection, { max: 1, onError: () => undefined, settings: logSettings });
  };
  await admin.query('CREATE DATABASE original');
  await migrate({ ...postgres.connection, database: 'original' } as ConnectionSettings);
  const original = await open('original');
  await fill(original);
  await original.close();
  for (const [i, path] of Object.keys(paths).entries()) {
    await admin.query(`CREATE DATABASE copy${i} TEMPLATE original`);
    stores.set(path, await open(`copy${i}`));
  }
  await admin.close();
});
after(async () => {
  for (const db of stores.values()) await db.close();
  await postgres?.dispose();
});

/** Numbers below `n` that are the same in every run (mulberry32). */
function randomFrom(start: number): (n: number) => number {
  let state = start;
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

const convs = times(6, (i) => ({ env: 1 + (i % 2), id: `conv_${i}` }));
const usersPerEnv = 5;

/**
 * Two environments, of which one has listeners; conversations 0 to 4, and 5 which is deleted. Of the users of an environment the
 * first three are members everywhere, the fourth is a member who was erased, the fifth is no member.
 */
async function fill(db: PgDb): Promise<void> {
  await db.query(`INSERT INTO organizations (id, name) VALUES ('org', 'org')`);
  await db.query(
    `INSERT INTO environments (id, org, name, kind, listeners) VALUES ('env_1', 1, 'a', 'development', 9), ('env_2', 1, 'b', 'development', 0)`,
  );
  await db.query(
    `INSERT INTO users (env, id, erased_at) SELECT e, 'u' || i, CASE WHEN i = 4 THEN now() END
     FROM generate_series(1, 2) e, generate_series(1, $1::int) i ORDER BY e, i`,
    [usersPerEnv],
  );
  for (const [i, { env, id }] of convs.entries()) {
    await db.query(
      `INSERT INTO conversations (env, id, type, last_seq, message_count, last_message_seq, last_activity_at, last_activity_step, created_at, deleted_at)
       VALUES ($1, $2, 'group', 4, 3, 4, now(), 0, now(), CASE WHEN $3 THEN now() END)`,
      [env, id, i === 5],
    );
    await db.query(
      `INSERT INTO members (env, conv, usr, last_activity_step, own_activity_step, own_activity_at) SELECT $1::int, $2::bigint, no, 0, 0, now() FROM users WHERE env = $1::int AND id <> 'u5'`,
      [env, i + 1],
    );
    // Seq 3 is hard-deleted.
    await db.query(
      `INSERT INTO messages (env, conv, seq, id, sender, text, created_at, hard, deleted_at)
       SELECT $1::int, $2::bigint, s, 'msg_' || $2::bigint || '_' || s, (SELECT min(no) FROM users WHERE env = $1::int), 'old', now(), s = 3, CASE WHEN s = 3 THEN now() END
       FROM generate_series(2, 4) s`,
      [env, i + 1],
    );
    await db.query(
      `INSERT INTO sent_ids (env, conv, sender, client_msg_id, seq, created_at)
       SELECT $1::int, $2::bigint, (SELECT min(no) FROM users WHERE env = $1::int), 'c' || s, s, now() - (s - 2) * interval '40 hours' FROM generate_series(2, 4) s`,
      [env, i + 1],
    );
    // By each of three users and by the server; the last of each is not ready.
    await db.query(
      `INSERT INTO attachments (env, id, conv, uploader, name, size, content_type, object_key, resource, created_at, ready_at, mime_type, keep_until)
       SELECT $1::int, 'att_' || $2::bigint || '_' || u || '_' || k, $2::bigint, CASE WHEN u > 0 THEN (SELECT min(no) FROM users WHERE env = $1::int) + u - 1 END,
         'file', 1, 'text/plain', 'key', 'raw', now(), CASE WHEN k < 9 THEN now() END, 'text/plain', now()
       FROM generate_series(0, 3) u, generate_series(0, 9) k`,
      [env, i + 1],
    );
  }
}

const random = randomFrom(seed);
const oneOf = <T>(...choices: T[]): T => choices[random(choices.length)]!;
let made = 0;
/** Messages of earlier batches: only such can be replied to, because nobody knows an id before its message is committed. */
let committed = 0;

function randomMessage(earlier: NewMessage[]): NewMessage {
  made++;
  if (earlier.length > 0 && random(8) === 0) return { ...oneOf(...earlier), id: `msg_new${made}` };
  const place = random(7);
  const { env, id } = convs[place] ?? { env: 1, id: 'conv_nowhere' };
  const conv = place + 1;
  const user = random(usersPerEnv);
  const system = random(8) === 0;
  const own = !system && random(3) > 0;
  const text = random(4) === 0 ? null : `text ${made}`;
  const attachment = () =>
    `att_${oneOf(conv, conv, conv, 1)}_${oneOf(0, user + 1, 1 + random(3))}_${random(10)}`;
  const message: NewMessage = {
    ...{ env, conversationId: id, own, text },
    sender: system ? null : (env - 1) * usersPerEnv + 1 + user,
    clientMsgId:
      own || random(2)
        ? oneOf(`n${made}`, `n${made}`, `c${2 + random(3)}`, `n${random(committed + 1)}`)
        : null,
    id: `msg_new${made}`,
    replyTo:
      random(3) > 0
        ? null
        : oneOf(`msg_${conv}_${2 + random(3)}`, `msg_1_2`, `msg_new${random(committed + 1)}`, 'msg_none'),
    metadata: random(4) === 0 ? `{"n":${made}}` : null,
    attachments: random(3) > 0 ? null : JSON.stringify([...new Set(times(1 + random(3), attachment))]),
  };
  // What repeats a clientMsgId is the same message again: a batch answers it as it answers the first.
  const key = ({ conversationId, sender, clientMsgId }: NewMessage) =>
    `${conversationId} ${sender} ${clientMsgId}`;
  return message.clientMsgId !== null && earlier.some((e) => key(e) === key(message))
    ? { ...message, clientMsgId: `n${made}` }
    : message;
}

/** Everything that appending writes, but for the times, row by row. */
async function contents(db: PgDb): Promise<string[]> {
  const tables = {
    messages: 'env, conv, seq, id, sender, text, reply_to, metadata, attachments, version, hard',
    sent_ids: 'env, conv, sender, client_msg_id, seq',
    conversations: 'env, id, last_seq, message_count, last_message_seq',
    members: 'env, conv, usr, last_read_seq, read_count, own_unread',
    outbox: 'env, id, type, conv, seq, message, users, actor, data',
    sink_log: 'env, conv, seq, message',
    attachments: 'env, id, message',
  };
  const rows: string[] = [];
  for (const [table, columns] of Object.entries(tables)) {
    const found = await db.query<{ line: string }>(
      `SELECT to_json(x)::text AS line FROM (SELECT ${columns} FROM ${table}) x ORDER BY 1`,
    );
    rows.push(...found.map(({ line }) => `${table} ${line}`));
  }
  return rows;
}

const said = (answers: Awaited<ReturnType<typeof appendBatch>>): unknown[] =>
  answers.map((answer) =>
    answer instanceof Error
      ? (answer as Error & { code: string }).code
      : typeof answer === 'symbol'
        ? 'blocked'
        : { ...answer, at: undefined },
  );

interface Result {
  answers: unknown[];
  store: string[];
}

test(`a batch of N is N batches of one, whichever function appends them (seed ${seed})`, async () => {
  const seen = new Set<string>();
  for (let round = 0; round < rounds; round++) {
    committed = made;
    const batch: NewMessage[] = [];
    for (let i = random(30); i >= 0; i--) batch.push(randomMessage(batch));
    const results = new Map<string, Result>();
    for (const [path, append] of Object.entries(paths)) {
      const db = stores.get(path)!;
      results.set(path, { answers: said(await append(db, batch)), store: await contents(db) });
    }
    const [[, expected], ...others] = [...results] as [[string, Result], ...[string, Result][]];
    for (const [path, result] of others) {
      assert.deepEqual(result.answers, expected.answers, `round ${round}, ${path}`);
      const differing = result.store.flatMap((row, at) =>
        row === expected.store[at] ? [] : [row, expected.store[at]],
      );
      assert.deepEqual(differing.slice(0, 4), [], `round ${round}, ${path}`);
    }
    for (const answer of expected.answers)
      seen.add(typeof answer === 'string' ? answer : (answer as { status: string }).status);
  }
  assert.deepEqual(
    [...seen].sort(),
    ['attachment_not_ready', 'duplicate', 'invalid_request', 'not_found', 'not_member', 'ok'],
    'every answer came up',
  );
  for (const db of stores.values()) {
    const stale = await db.query(
      `SELECT 1 FROM conversations c JOIN members m ON m.env = c.env AND m.conv = c.no WHERE m.last_activity_step <> c.last_activity_step`,
    );
    assert.equal(stale.length, 0, 'members carry the activity of their conversation');
  }
});
