import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@parley/protocol';
import { unreadCount } from '../../src/log/unread/sql/counters.ts';
import { appendBatch as append } from '../../src/log/sql/append.ts';
import type { Appended, NewMessage } from '../../src/log/sql/append.ts';
import { blocked } from '../../src/log/lanes.ts';
import { joined } from '../../src/platform/postgres/db.ts';
import type { Db, Queryable } from '../../src/platform/postgres/db.ts';
import { allEvents, createGroup, times } from './tools.ts';
import { useService } from '../support/use.ts';

/** The group commit: all of a batch at once, and each message as if it had come alone. */

const { server, db } = useService({ own: true });
let made = 0;

/** Nobody else holds a conversation here. */
async function appendBatch(queryable: Db, batch: NewMessage[]): Promise<(Appended | Error)[]> {
  const answers = await append(queryable, batch);
  return answers.map((answer) => (answer === blocked ? assert.fail('blocked') : answer));
}

/** All at once, or one by one. */
async function appendBy(size: number, batch: NewMessage[]): Promise<(Appended | Error)[]> {
  const answers = [];
  for (let at = 0; at < batch.length; at += size)
    answers.push(...(await appendBatch(db, batch.slice(at, at + size))));
  return answers;
}

async function numbers(...ids: string[]): Promise<number[]> {
  const rows = await db.query<{ id: string; no: number }>('SELECT id, no FROM users WHERE id = ANY($1)', [
    ids,
  ]);
  return ids.map((id) => rows.find((r) => r.id === id)!.no);
}

async function newMessage(conversationId: string, more: Partial<NewMessage> = {}): Promise<NewMessage> {
  const [row] = await db.query<{ env: number }>('SELECT env FROM conversations WHERE id = $1', [
    conversationId,
  ]);
  const n = String(++made).padStart(26, '0');
  return {
    env: row?.env ?? 1,
    conversationId,
    sender: null,
    own: false,
    clientMsgId: `c-${n}`,
    id: `msg_${n}`,
    text: `text ${n}`,
    replyTo: null,
    metadata: null,
    attachments: null,
    ...more,
  };
}

interface Count {
  conv: string;
  usr: string;
  lastReadSeq: number;
  unread: number;
}
const counts = (conversationId: string): Promise<Count[]> =>
  db.query<Count>(
    `SELECT u.id AS usr, m.last_read_seq AS "lastReadSeq", ${unreadCount('c', 'm')} AS unread
     FROM members m JOIN conversations c ON c.no = m.conv JOIN users u ON u.no = m.usr WHERE c.id = $1 ORDER BY u.id`,
    [conversationId],
  );

test('messages#order: a batch over several conversations gives each its next seqs, in the order sent', async () => {
  const groups = await Promise.all(times(3, () => createGroup(server, ['ann', 'bob'])));
  const [ann, bob] = await numbers('ann', 'bob');
  const batch = await Promise.all(
    times(30, (i) => newMessage(groups[(i * 7) % 3]!, { sender: i % 2 ? ann! : bob!, own: true })),
  );
  const answers = await appendBatch(db, batch);
  for (const group of groups) {
    const events = (await allEvents(server, group)).filter((e) => e.type === 'message.new');
    const sent = batch.flatMap((m, i) =>
      m.conversationId === group ? [{ id: m.id, text: m.text, answer: answers[i]! }] : [],
    );
    assert.equal(sent.length, 10);
    events.forEach((event, i) => {
      const { message } = event as unknown as { message: Message };
      assert.equal(message.id, sent[i]!.id);
      assert.equal(message.text, sent[i]!.text);
      assert.deepEqual(sent[i]!.answer, {
        ...sent[i]!.answer,
        status: 'ok',
        seq: event.seq,
        at: message.createdAt,
      });
    });
  }
});

for (const size of [1, 100])
  test(`one that is refused, one that was there before and one twice leave the others as they are (${size} at once)`, async () => {
    const group = await createGroup(server, ['ann', 'bob']);
    await createGroup(server, ['cid']);
    const [ann, bob, cid] = await numbers('ann', 'bob', 'cid');
    const earlier = await newMessage(group, { sender: ann!, own: true });
    const [first] = await appendBatch(db, [earlier]);
    const twice = await newMessage(group, { sender: bob!, own: true });
    const batch = [
      await newMessage(group, { sender: ann!, own: true }),
      await newMessage(group, { sender: cid!, own: true }),
      { ...earlier, id: 'msg_again' },
      twice,
      { ...twice, id: 'msg_twice' },
      await newMessage('conv_nowhere', { sender: ann! }),
      await newMessage(group, { sender: ann!, own: true, replyTo: 'msg_nowhere' }),
      await newMessage(group, { sender: ann!, own: true, replyTo: earlier.id }),
    ];
    const answers = await appendBy(size, batch);
    const seq = (first as { seq: number }).seq;
    assert.deepEqual(
      answers.map((a) =>
        a instanceof Error ? (a as Error & { code: string }).code : [a.status, a.seq - seq],
      ),
      [
        ['ok', 1],
        'not_member',
        ['duplicate', 0],
        ['ok', 2],
        ['duplicate', 2],
        'not_found',
        'invalid_request',
        ['ok', 3],
      ],
    );
    assert.deepEqual(
      (await allEvents(server, group)).map((e) => e.seq),
      times(seq + 3, (i) => i + 1),
    );
  });

test('messages#own-send: own sends read up to themselves, sends on a user’s behalf neither read nor count as unread for it', async () => {
  const cases: { sends: [string, boolean][]; expected: [number, number][] }[] = [
    // read up to and unread, of ann and bob, counted from the batch's beginning
    {
      sends: [
        ['ann', true],
        ['bob', true],
      ],
      expected: [
        [1, 1],
        [2, 0],
      ],
    },
    {
      sends: [
        ['ann', true],
        ['ann', false],
      ],
      expected: [
        [1, 0],
        [0, 2],
      ],
    },
    {
      sends: [
        ['ann', false],
        ['ann', true],
      ],
      expected: [
        [2, 0],
        [0, 2],
      ],
    },
    {
      sends: [
        ['ann', false],
        ['ann', false],
        ['bob', true],
      ],
      expected: [
        [0, 1],
        [3, 0],
      ],
    },
    {
      sends: [
        ['bob', false],
        ['ann', true],
        ['bob', false],
      ],
      expected: [
        [2, 1],
        [0, 1],
      ],
    },
  ];
  const [ann, bob] = await numbers('ann', 'bob');
  for (const [{ sends, expected }, size] of cases.flatMap((one) => [[one, 1] as const, [one, 3] as const])) {
    const group = await createGroup(server, ['ann', 'bob']);
    const base = (await allEvents(server, group)).length;
    const batch = await Promise.all(
      sends.map(([who, own]) => newMessage(group, { sender: who === 'ann' ? ann! : bob!, own })),
    );
    await appendBy(size, batch);
    assert.deepEqual(
      (await counts(group)).map((c) => [Math.max(0, c.lastReadSeq - base), c.unread]),
      expected,
      `${JSON.stringify(sends)}, ${size} at once`,
    );
  }
});

test('however often a batch repeats a clientMsgId, and whatever becomes of the first, it is one round', async () => {
  const group = await createGroup(server, ['ann', 'bob']);
  await createGroup(server, ['cid']);
  const [ann, cid] = await numbers('ann', 'cid');
  const good = await newMessage(group, { sender: ann!, own: true });
  const bad = await newMessage(group, { sender: cid!, own: true });
  const [before] = await appendBatch(db, [await newMessage(group)]);
  let rounds = 0;
  const counting: Db = {
    tx: (run) => db.tx(run),
    query: (sql, values) => {
      rounds++;
      return db.query(sql, values);
    },
  };
  const repeats = (message: NewMessage) => times(50, (i) => ({ ...message, id: `${message.id}${i}` }));
  const answers = await appendBatch(counting, [...repeats(good), ...repeats(bad)]);
  assert.equal(rounds, 1);
  assert.ok(!(before instanceof Error));
  assert.deepEqual(
    answers.map((a) => (a instanceof Error ? (a as Error & { code: string }).code : [a.status, a.seq])),
    [
      ['ok', before!.seq + 1],
      ...times(49, () => ['duplicate', before!.seq + 1]),
      ...times(50, () => 'not_member'),
    ],
  );
});

async function rowsWritten(tx: Queryable): Promise<Record<string, number>> {
  const [row] = await tx.query<Record<string, number>>(
    `SELECT sum(n_tup_ins) FILTER (WHERE relname = 'messages')::int AS messages,
       sum(n_tup_ins) FILTER (WHERE relname LIKE 'sent_ids%')::int AS sent_ids, sum(n_tup_del)::int AS removed,
       sum(n_tup_upd) FILTER (WHERE relname = 'conversations')::int AS conversations,
       sum(n_tup_upd) FILTER (WHERE relname = 'members')::int AS members
     FROM pg_stat_xact_user_tables`,
  );
  return row!;
}

test('one refused, one repeated and one expired message of a batch write no row of the others twice', async () => {
  const group = await createGroup(server, ['ann', 'bob']);
  await createGroup(server, ['cid']);
  const [ann, bob, cid] = await numbers('ann', 'bob', 'cid');
  const sent = await newMessage(group, { sender: ann!, own: true });
  const old = await newMessage(group, { sender: ann!, own: true });
  await appendBatch(db, [sent, old]);
  await db.query(
    `UPDATE sent_ids SET created_at = created_at - interval '49 hours' WHERE client_msg_id = $1`,
    [old.clientMsgId],
  );
  // The members' step of activity is not renewed, however long this takes.
  await db.query('UPDATE conversations SET last_activity_step = last_activity_step + 1000 WHERE id = $1', [
    group,
  ]);
  const batch = [
    ...(await Promise.all(times(5, () => newMessage(group, { sender: bob!, own: true })))),
    { ...sent, id: 'msg_repeated' },
    await newMessage(group, { sender: cid!, own: true }),
    { ...old, id: 'msg_expired' },
  ];
  const { answers, written } = await db.tx(async (tx) => {
    const before = await rowsWritten(tx);
    const given = await appendBatch(joined(tx), batch);
    const after = await rowsWritten(tx);
    return { answers: given, written: Object.entries(after).map(([what, n]) => [what, n - before[what]!]) };
  });
  assert.deepEqual(Object.fromEntries(written), {
    messages: 6,
    sent_ids: 6,
    removed: 0,
    conversations: 1,
    members: 2,
  });
  assert.deepEqual(
    answers.map((a) => (a instanceof Error ? (a as Error & { code: string }).code : a.status)),
    [...times(5, () => 'ok'), 'duplicate', 'not_member', 'ok'],
  );
});

test('a commit says whether somebody reads the outbox: nobody is woken for nothing', async () => {
  const group = await createGroup(server, ['ann', 'bob']);
  const noted = async (size: number): Promise<number> => {
    let calls = 0;
    const batch = await Promise.all(times(size, () => newMessage(group)));
    await append(db, batch, null, () => calls++);
    return calls;
  };
  const rows = async (): Promise<number> =>
    (await db.query<{ n: number }>('SELECT count(*)::int AS n FROM outbox'))[0]!.n;
  const listen = (bits: number) =>
    db.query(
      'UPDATE environments SET listeners = $2 WHERE no = (SELECT env FROM conversations WHERE id = $1)',
      [group, bits],
    );
  try {
    // Those that leave no rows come first: later the worker takes rows away meanwhile.
    for (const bits of [0, 4, 1, 2]) {
      await listen(bits);
      for (const size of [1, 3]) {
        const before = await rows();
        const woken = await noted(size);
        assert.equal(woken > 0, (bits & 3) !== 0, `${size} messages, listeners ${bits}`);
        if (bits === 0 || bits === 4) assert.equal(await rows(), before);
      }
    }
  } finally {
    await listen(0);
  }
});
