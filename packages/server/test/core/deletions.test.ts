import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { unreadCount } from '../../src/log/unread/sql/counters.ts';
import { listConversations } from '../../src/features/conversations/sql/list.ts';
import { createSyncer } from '../../src/features/sync/operations.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';
import { migrate, readSchema } from '../../src/platform/postgres/migrate.ts';
import { allEvents, counting, createGroup, outsidePostgres, seedMessages, times } from './tools.ts';
import { useService } from '../support/use.ts';
import { seed } from '../../../../scripts/seed.ts';

/** Unread counts stay exact whatever is deleted, and a deletion writes few rows. */

const { scene, db } = useService({ own: true });

test('a deletion rewrites the row of no member but its sender, however many have read the message', async () => {
  const [writer, ...readers] = await Promise.all(times(40, () => scene.actor()));
  const { id } = await scene.group(null, [writer!, ...readers]);
  const first = await scene.send(null, id);
  const messages = [];
  for (let i = 0; i < 10; i++) messages.push(await scene.send(writer!, id));
  const onBehalf = await scene.send(null, id, { text: 'x', senderId: writer!.id });
  for (const reader of readers.slice(1))
    await reader.api('POST', `/v1/conversations/${id}/read`, { seq: onBehalf.seq });
  // Activity is renewed for all members every ten seconds, by whatever happens: not now.
  await db.query('UPDATE conversations SET last_activity_step = last_activity_step + 1000 WHERE id = $1', [
    id,
  ]);
  const versions = () =>
    db.query<{ usr: string; xmin: string }>(
      `SELECT u.id AS usr, m.xmin::text FROM members m JOIN conversations c ON c.no = m.conv JOIN users u ON u.no = m.usr
       WHERE c.id = $1 ORDER BY 1`,
      [id],
    );
  const before = await versions();
  for (const { id: message } of messages.slice(0, 5)) await writer!.api('DELETE', `/v1/messages/${message}`);
  await scene.server('DELETE', `/v1/messages/${messages[5].id}?hard=true`);
  await scene.server('DELETE', `/v1/messages/${first.id}`);
  assert.deepEqual(await versions(), before);
  await scene.server('DELETE', `/v1/messages/${onBehalf.id}`);
  const changed = (await versions()).filter(({ xmin }, i) => xmin !== before[i]!.xmin);
  assert.deepEqual(
    changed.map((c) => c.usr),
    [writer!.id],
    'it had not read its own',
  );
  for (const [user, unread] of [
    [writer!, 0],
    [readers[0]!, 4],
    [readers[1]!, 0],
  ] as const)
    assert.equal((await scene.item(user, id)).unreadCount, unread);
});

const seqs = fc.oneof(
  fc.integer({ min: 1, max: 600 }),
  fc.integer({ min: 65_000, max: 66_200 }),
  fc.integer({ min: 16_777_000, max: 16_777_500 }),
  fc.integer({ min: 1, max: 2 ** 34 }),
);

test('deleted messages above a seq are counted right on every side of every block', async () => {
  let conv = 1_000_000;
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(seqs, { maxLength: 60 }),
      fc.array(seqs, { minLength: 1, maxLength: 10 }),
      async (deleted, asked) => {
        conv++;
        const half = Math.floor(deleted.length / 2);
        for (const part of [deleted.slice(0, half), deleted.slice(half)])
          await db.query('SELECT count_deleted(1, $1, $2)', [conv, part]);
        for (const seq of [...asked, ...deleted, ...deleted.map((s) => s - 1)]) {
          const [row] = await db.query<{ n: number }>('SELECT deleted_above(1, $1, $2) AS n', [conv, seq]);
          assert.equal(row!.n, deleted.filter((s) => s > seq).length, `above ${seq}`);
        }
      },
    ),
    { numRuns: 40, seed: seed('deletions') },
  );
});

test('a list and a sync cost little more with 20,000 deleted messages above the read mark of each conversation', async (t) => {
  const convs = 10;
  const count = 20_000;
  for (const user of ['none-deleted', 'many-deleted']) {
    const ids = await Promise.all(times(convs, () => createGroup(scene.server, [user, 'writer'])));
    await seedMessages(db, { conversations: ids, sender: 'writer', count, text: 'x' });
    if (user === 'none-deleted') continue;
    await db.query(
      `UPDATE messages m SET deleted_at = now(), text = NULL FROM conversations c
       WHERE c.id = ANY($1) AND m.env = c.env AND m.conv = c.no AND m.seq % 2 = 0`,
      [ids],
    );
    await db.query(`UPDATE conversations SET last_deleted_seq = last_seq WHERE id = ANY($1)`, [ids]);
    await db.query(
      `SELECT count_deleted(c.env, c.no, ARRAY(SELECT seq FROM messages m WHERE m.conv = c.no AND deleted_at IS NOT NULL))
       FROM conversations c WHERE id = ANY($1)`,
      [ids],
    );
  }
  for (const table of ['messages', 'conversations', 'members', 'deleted_counts'])
    await db.query(`VACUUM ANALYZE ${table}`);
  const cost = async (user: string, read: (q: Queryable, env: number, no: number) => Promise<unknown>) => {
    const [row] = await db.query<{ env: number; no: number }>('SELECT env, no FROM users WHERE id = $1', [
      user,
    ]);
    const counted = counting(db);
    await read(counted.db, row!.env, row!.no);
    return counted.pages();
  };
  for (const read of [
    (q: Queryable, env: number, no: number) =>
      listConversations(q, env, no, 50, undefined, { byDefault: 'all', now: 0 }),
    (q: Queryable, env: number, no: number) => createSyncer(q)(env, no, null),
  ]) {
    const [none, many] = [await cost('none-deleted', read), await cost('many-deleted', read)];
    t.diagnostic(`${none} pages without, ${many} with ${count / 2} deleted in each of ${convs}`);
    // At most 255 rows a level, so two levels here: a cost that grew with the deletions would be 10,000 for each.
    assert.ok(many - none <= 2 * 255 * convs, `${none} against ${many}`);
  }
  const { body } = await scene.server('GET', '/v1/conversations?userId=many-deleted&limit=50');
  assert.deepEqual(
    (body.data as { unreadCount: number }[]).map((c) => c.unreadCount),
    times(convs, () => count / 2),
  );
});

test('others send between the batches of an erasure', async () => {
  const { id } = await scene.group(null, [await scene.actor()]);
  const gone = 'erased-while-others-send';
  await scene.server('POST', `/v1/conversations/${id}/members`, { userIds: [gone] });
  await seedMessages(db, { conversations: [id], sender: gone, count: 800, text: 'x' });
  const over = { yes: false };
  const erasing = scene.server('DELETE', `/v1/users/${gone}?messages=delete`).finally(() => {
    over.yes = true;
  });
  const sent: number[] = [];
  while (!over.yes) sent.push((await scene.send(null, id)).seq);
  assert.equal((await erasing).status, 204);
  const [first, last] = (
    await db.query<{ seq: number }>(
      `SELECT e.seq FROM events e JOIN conversations c ON c.no = e.conv WHERE c.id = $1 AND e.type = 'message.deleted' ORDER BY 1`,
      [id],
    )
  ).reduce(([a], { seq }) => [a ?? seq, seq], [undefined, 0] as [number | undefined, number]);
  assert.ok(
    sent.some((seq) => seq > first! && seq < last),
    `sent at ${sent.slice(0, 5)}…, deleted from ${first} to ${last}`,
  );
  const events = await allEvents(scene.server, id).catch(() => []);
  assert.ok(events.every((e, i) => i === 0 || e.seq === events[i - 1]!.seq + 1));
});

test('a store whose counters counted live messages alone is put right by its migration', async () => {
  const postgres = await outsidePostgres();
  const old = new PgDb(postgres.connection, { max: 2, onError: () => undefined });
  try {
    const schema = await readSchema();
    const before = schema.migrations.filter((m) => !/000[7-9]_|00[1-9]\d_/.test(m.name));
    await migrate(postgres.connection, { migrations: before, functions: [] });
    await old.query(
      `INSERT INTO conversations (env, id, type, last_seq, message_count, last_message_seq, last_activity_at, act, created_at)
       SELECT 1, 'conv_' || i, 'group', 400, 0, 400, now(), 0, now() FROM generate_series(1, 3) i`,
    );
    // Each third message is deleted, but for the third conversation; senders are users 1 to 4; every tenth seq is no message.
    await old.query(
      `INSERT INTO messages (env, conv, seq, id, sender, text, created_at, deleted_at)
       SELECT 1, c.no, s, c.id || ' ' || s, 1 + s % 4, 'x', now(), CASE WHEN s % 3 = 0 AND c.id <> 'conv_3' THEN now() END
       FROM conversations c, generate_series(1, 400) s WHERE s % 10 <> 0`,
    );
    await old.query(
      `INSERT INTO members (env, conv, usr, last_read_seq, read_count, own_unread, act, self_act, self_at)
       SELECT 1, c.no, u, u * 97, (SELECT count(*) FROM messages m WHERE m.conv = c.no AND m.seq <= u * 97 AND m.deleted_at IS NULL),
         (SELECT count(*) FROM messages m WHERE m.conv = c.no AND m.seq > u * 97 AND m.sender = u AND m.deleted_at IS NULL), 0, 0, now()
       FROM conversations c, generate_series(0, 4) u`,
    );
    await old.query(
      'UPDATE conversations c SET message_count = (SELECT count(*) FROM messages m WHERE m.conv = c.no AND m.deleted_at IS NULL)',
    );
    await migrate(postgres.connection, schema);
    const rows = await old.query<{ unread: number; counted: number }>(
      `SELECT ${unreadCount('c', 'm')} AS unread, (SELECT count(*) FROM messages s WHERE s.conv = c.no AND s.seq > m.last_read_seq
         AND s.sender <> m.usr AND s.deleted_at IS NULL) AS counted
       FROM conversations c JOIN members m ON m.conv = c.no`,
    );
    assert.equal(rows.length, 15);
    for (const { unread, counted } of rows) assert.equal(unread, counted);
    assert.ok(rows.some((r) => r.counted > 100));
  } finally {
    await old.close();
    await postgres.dispose();
  }
});
