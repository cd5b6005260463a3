import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, test } from 'node:test';
import type { Message } from '@parley/protocol';
import { removeExpired } from '../../src/features/retention/retention.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';
import { assertError } from '../support/api.ts';
import { allEvents, createGroup, times } from './tools.ts';
import { useService } from '../support/use.ts';

const { server, db } = useService({ own: true });
let id: string;
const weekMs = 7 * 24 * 3_600_000;

beforeEach(async () => {
  id = await createGroup(server, ['ann', 'bob']);
});

const send = async (body: object): Promise<Message> =>
  (await server('POST', `/v1/conversations/${id}/messages`, body)).body as Message;
const events = (after: number) => server('GET', `/v1/conversations/${id}/events?after=${after}`);
const conv = '(SELECT no FROM conversations WHERE id = $1)';
/** Moves what the conversation holds up to a seq into the past. */
const backdate = async (upTo: number, age: string): Promise<void> => {
  for (const table of ['events', 'messages'])
    await db.query(
      `UPDATE ${table} SET created_at = created_at - $3::interval WHERE conv = ${conv} AND seq <= $2`,
      [id, upTo, age],
    );
};

describe('events#resync-required: the events gap and the buffer floor', () => {
  test('below the floor is 410 resync_required, before the sweep and after it', async () => {
    await server('PATCH', `/v1/conversations/${id}`, { name: 'second' });
    await send({ text: 'third' });
    await send({ text: 'fourth' });
    await backdate(3, '7 days 1 minute');
    for (const when of ['before', 'after']) {
      for (const from of [0, 1, 2]) assertError(await events(from), 410, 'resync_required');
      const { status, body } = await events(3);
      assert.equal(status, 200, `${when} the sweep`);
      assert.deepEqual(
        (body as { data: { seq: number }[] }).data.map((e) => e.seq),
        [4],
      );
      await removeExpired(db, weekMs);
    }
    const kept = (await server('GET', `/v1/conversations/${id}/messages`)).body as { data: Message[] };
    assert.deepEqual(
      kept.data.map((m) => m.seq),
      [4, 3],
      'the floor is one of events: history stays',
    );
  });

  test('just above the floor is served', async () => {
    await send({ text: 'second' });
    await backdate(2, '6 days 23 hours 59 minutes');
    assert.equal((await allEvents(server, id)).length, 2);
  });

  test('a gap of 1,000 is served, one more is 410', async () => {
    for (let i = 0; i < 10; i++) await Promise.all(times(100, (n) => send({ text: `${i} ${n}` })));
    const edge = await events(1);
    assert.equal(edge.status, 200);
    assert.deepEqual([(edge.body as { hasMore: boolean }).hasMore], [true]);
    assertError(await events(0), 410, 'resync_required');
    assert.equal((await events(2_000)).status, 200, 'ahead of the stream there is nothing to miss');
  });
});

describe('the sweep', () => {
  test('removes what is past its window, keeps the rest, in batches', async () => {
    const rows = 12_000;
    const [{ no: env }] = (await db.query<{ no: number }>(
      'SELECT no FROM environments ORDER BY no LIMIT 1',
    )) as [{ no: number }];
    // As a store from before migration 0037 holds them.
    await db.query(
      `INSERT INTO dedup (env, conv, sender, client_msg_id, seq, created_at)
       SELECT $1, 0, 1, i::text, i, now() - CASE WHEN i <= $2 THEN interval '48 hours 1 minute' ELSE interval '47 hours' END
       FROM generate_series(1, $2 + 10) i`,
      [env, rows],
    );
    await db.query(
      `INSERT INTO idempotency (env, key, route, fingerprint, created_at)
       SELECT 999, i::text, '', '', now() - CASE WHEN i <= 3 THEN interval '24 hours 1 minute' ELSE interval '23 hours' END
       FROM generate_series(1, 5) i`,
    );
    await db.query(
      `INSERT INTO events (env, conv, seq, type, created_at)
       SELECT $1, 0, i, 'conversation.updated', now() - CASE WHEN i <= 3 THEN interval '7 days 1 minute' ELSE interval '6 days' END
       FROM generate_series(1, 5) i`,
      [env],
    );
    // Of analytics, hours go after 90 days; days stay.
    await db.query(
      `INSERT INTO counters (env, step, at, counts)
       SELECT $1, s, date_trunc('day', now(), 'UTC') - d * interval '1 day', '{}' FROM generate_series(0, 1) s, unnest('{90,91,400}'::int[]) d`,
      [env],
    );
    const batches: number[] = [];
    const watched: Queryable = {
      query: async <R extends object>(sql: string, values?: unknown[]) => {
        const result = await db.query<R>(sql, values);
        if (sql.includes('dedup')) batches.push((result[0] as { n: number }).n);
        return result;
      },
    };
    const removed = await removeExpired(watched, weekMs);
    assert.equal(removed['dedup'], rows);
    assert.equal(removed['idempotency'], 3);
    assert.ok(removed['events']! >= 3);
    assert.deepEqual(batches, [5_000, 5_000, 2_000]);
    assert.equal(removed['hours'], 2);
    for (const [rest, left] of Object.entries({
      'dedup WHERE conv = 0': 10,
      'idempotency WHERE env = 999': 2,
      'events WHERE conv = 0': 2,
    }))
      assert.deepEqual(await db.query(`SELECT count(*) AS n FROM ${rest}`), [{ n: left }], rest);
    assert.deepEqual(new Set(Object.values(await removeExpired(db, weekMs))), new Set([0]));
  });

  const dayMs = 24 * 3_600_000;
  const partitionsOf = async (): Promise<string[]> =>
    (
      await db.query<{ name: string }>(
        `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'sent_ids'::regclass ORDER BY 1`,
      )
    ).map(({ name }) => name);
  const nameOf = (ms: number) => `sent_ids_${new Date(ms).toISOString().slice(0, 10).replaceAll('-', '')}`;
  const remember = (at: number) =>
    db.query(
      `INSERT INTO sent_ids (env, conv, sender, client_msg_id, seq, created_at) VALUES (999, 0, 1, $1, 1, $2)
       RETURNING tableoid::regclass::text AS day`,
      [randomUUID(), new Date(at)],
    );

  test('clientMsgIds go with their day, two days after its end and no sooner', async () => {
    const today = Date.now();
    for (let day = 10; day >= 0; day--) {
      const now = today - day * dayMs;
      const removed = await removeExpired(db, weekMs, new Date(now));
      assert.deepEqual(await remember(now), [{ day: nameOf(now) }]);
      const days = (await partitionsOf()).filter((name) => name !== 'sent_ids_other');
      const ended = days.filter((name) => name < nameOf(now));
      assert.equal(removed['sent_ids'], day <= 7 ? 1 : 0, `day ${day}`);
      assert.deepEqual(
        ended,
        [2, 1].filter((back) => day + back <= 10).map((back) => nameOf(now - back * dayMs)),
        'the two days before stay, those before them are gone',
      );
    }
    assert.equal((await removeExpired(db, weekMs, new Date(today + 30 * dayMs)))['sent_ids'], 0);
    assert.ok(
      (await partitionsOf()).includes(nameOf(today - dayMs)),
      'a process whose clock is ahead takes nothing away',
    );
    assert.deepEqual(await remember(today - 20 * dayMs), [{ day: 'sent_ids_other' }]);
    assert.equal((await removeExpired(db, weekMs))['sent_ids_other'], 1);
  });

  test('a day that nobody made in time is kept apart, and nobody waits for one that holds the table', async () => {
    const later = Date.now() + 40 * dayMs;
    assert.deepEqual(await remember(later), [{ day: 'sent_ids_other' }]);
    await removeExpired(db, weekMs, new Date(later));
    const made = await partitionsOf();
    assert.ok(!made.includes(nameOf(later)), 'its rows are in the table for all others');
    assert.ok(made.includes(nameOf(later + dayMs)));
    await db.tx(async (tx) => {
      await tx.query('LOCK TABLE sent_ids IN ROW EXCLUSIVE MODE');
      await removeExpired(db, weekMs, new Date(later + 2 * dayMs));
      assert.ok(!(await partitionsOf()).includes(nameOf(later + 2 * dayMs)), 'left to the next time');
    });
    await removeExpired(db, weekMs, new Date(later + 2 * dayMs));
    assert.ok((await partitionsOf()).includes(nameOf(later + 2 * dayMs)));
  });
});

describe('plans#retention: windows', () => {
  const age = (table: string, interval: string) =>
    db.query(
      `UPDATE ${table} SET created_at = created_at - $1::interval WHERE created_at > now() - interval '1 minute'`,
      [interval],
    );

  test('a clientMsgId is remembered 48 hours, and commits anew after', async () => {
    const body = { clientMsgId: randomUUID(), text: 'hello', senderId: 'ann' };
    const first = await send(body);
    await age('sent_ids', '47 hours 59 minutes');
    assert.equal((await send(body)).id, first.id);
    await db.query(
      `UPDATE sent_ids SET created_at = created_at - interval '2 minutes' WHERE client_msg_id = $1`,
      [body.clientMsgId],
    );
    const second = await send(body);
    assert.notEqual(second.id, first.id);
    assert.equal(second.seq, first.seq + 1);
    assert.equal((await send(body)).id, second.id, 'and that one is remembered in turn');
  });

  test('an Idempotency-Key is kept 24 hours, then acts anew', async () => {
    const key = { 'idempotency-key': randomUUID() };
    const create = () => server('POST', '/v1/conversations', { type: 'group', members: ['ann'] }, key);
    const first = await create();
    await age('idempotency', '23 hours 59 minutes');
    const replay = await create();
    assert.equal(replay.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(replay.body, first.body);
    await db.query(`UPDATE idempotency SET created_at = created_at - interval '2 minutes' WHERE key = $1`, [
      key['idempotency-key'],
    ]);
    const second = await create();
    assert.equal(second.status, 201);
    assert.equal(second.headers.get('idempotent-replayed'), null);
    assert.notEqual((second.body as { id: string }).id, (first.body as { id: string }).id);
  });
});
