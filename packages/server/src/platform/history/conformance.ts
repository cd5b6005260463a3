import assert from 'node:assert/strict';
import { messageRevision } from './port.ts';
import type { ConversationRecord, History, HistoryRecord, MemberRecord, MessageRecord } from './port.ts';

/**
 * What every history database must do, as checks that can run on any of them: the tests run them on the four engines,
 * and `npm run parley -- history check` runs them on a customer's own endpoint. Each check uses conversations of its
 * own.
 */
export interface Check {
  name: string;
  /** `unique` returns names that no other check uses. */
  run(history: History, unique: (what: string) => string): Promise<void>;
}

export function message(
  fields: Partial<MessageRecord> & Pick<MessageRecord, 'id' | 'conversationId' | 'seq'>,
): MessageRecord {
  const whole: MessageRecord = {
    kind: 'message',
    senderId: 'alice',
    text: `text ${fields.seq}`,
    replyTo: null,
    attachments: null,
    metadata: null,
    extras: null,
    version: 1,
    createdAt: new Date(Date.UTC(2026, 0, 1) + fields.seq * 1_001).toISOString(),
    editedAt: null,
    deletedAt: null,
    hard: false,
    revision: 0,
    ...fields,
  };
  return { ...whole, revision: fields.revision ?? messageRevision(whole) };
}

const member = (
  fields: Partial<MemberRecord> & Pick<MemberRecord, 'conversationId' | 'userId'>,
): MemberRecord => ({ kind: 'member', role: 'member', removed: false, extras: null, revision: 1, ...fields });

const edited = (of: MessageRecord, version: number): MessageRecord =>
  message({
    ...of,
    version,
    text: `version ${version}`,
    editedAt: '2026-02-03T04:05:06.789Z',
    revision: version * 4,
  });
const tombstone = (of: MessageRecord): MessageRecord =>
  message({
    ...of,
    text: null,
    metadata: null,
    extras: null,
    attachments: null,
    deletedAt: '2026-03-04T05:06:07.008Z',
    revision: of.version * 4 + 1,
  });
const stub = (of: MessageRecord): MessageRecord =>
  message({ ...tombstone(of), hard: true, revision: of.version * 4 + 2 });

const series = (conversationId: string, seqs: number[]): MessageRecord[] =>
  seqs.map((seq) => message({ id: `msg_${conversationId}_${seq}`, conversationId, seq }));
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);
/** Of all messages of a conversation, the newest first. */
export async function allSeqs(history: History, conversationId: string): Promise<number[]> {
  const found: number[] = [];
  for (let more = true; more;) {
    const page = await history.read({ conversationId, before: found.at(-1), limit: 200 });
    found.push(...seqsOf(page));
    more = page.hasMore;
  }
  return found;
}
const seqsOf = (page: { data: MessageRecord[] }): number[] => page.data.map((m) => m.seq);

export const checks: Check[] = [
  {
    name: 'a message comes back as it was written, whatever characters and lengths it has',
    async run(history, unique) {
      const conversationId = unique('conv');
      const odd = [
        "it's",
        '"quoted"',
        'back\\slash',
        '\\',
        "\\'",
        '%s ? $1 :name',
        '🦊🏽‍🚀 e\u0301 ﷽',
        '\t\r\n',
        '\u202e\uFEFF',
        'x'.repeat(5_000),
        '🦊'.repeat(5_000),
        '',
      ];
      const written = odd.map((text, i) =>
        message({
          id: unique('msg'),
          conversationId,
          seq: i + 1,
          text: text || null,
          senderId: i === 3 ? null : 'Üser@x.y:z',
          replyTo: i === 1 ? 'msg_other' : null,
          metadata:
            i % 2
              ? JSON.stringify({ deep: { 'key "': [1, null, 'ä\u0000'.replace('\u0000', '\\u0000')] } })
              : null,
          attachments:
            i === 2
              ? JSON.stringify([
                  { id: 'att_1', name: "a'b.png", size: 3, mimeType: 'image/png', status: 'ready' },
                ])
              : null,
        }),
      );
      await history.write(written);
      assert.deepEqual((await history.read({ conversationId, limit: 50 })).data, [...written].reverse());
      for (const one of written) assert.deepEqual(await history.get(one.id), one);
      assert.equal(await history.get(unique('msg')), null);
    },
  },
  {
    name: 'pages go in both directions, and hasMore is true exactly where more follows',
    async run(history, unique) {
      const conversationId = unique('conv');
      const all = [1, 2, 3, 5, 8, 13, 21, 34];
      await history.write([...series(conversationId, all), ...series(unique('conv'), all)]);
      for (const limit of [1, 3, 8])
        for (const at of [0, 1, 2, 4, 5, 9, 21, 34, 35]) {
          const below = all.filter((s) => s < at).reverse();
          const down = await history.read({ conversationId, before: at, limit });
          assert.deepEqual(
            [seqsOf(down), down.hasMore],
            [below.slice(0, limit), below.length > limit],
            `before ${at} limit ${limit}`,
          );
          const above = all.filter((s) => s > at);
          const up = await history.read({ conversationId, after: at, limit });
          assert.deepEqual(
            [seqsOf(up), up.hasMore],
            [above.slice(0, limit).reverse(), above.length > limit],
            `after ${at} limit ${limit}`,
          );
        }
      const between = await history.read({ conversationId, before: 21, after: 2, limit: 3 });
      assert.deepEqual([seqsOf(between), between.hasMore], [[13, 8, 5], true]);
      const last = await history.read({ conversationId, before: 21, after: 5, limit: 3 });
      assert.deepEqual([seqsOf(last), last.hasMore], [[13, 8], false]);
    },
  },
  {
    name: 'writing twice changes nothing, and an older version never replaces a newer one',
    async run(history, unique) {
      const first = message({ id: unique('msg'), conversationId: unique('conv'), seq: 1 });
      const second = edited(first, 2);
      const third = edited(first, 3);
      await history.write([first]);
      await history.write([first]);
      await history.write([third]);
      await history.write([second]);
      await history.write([first]);
      assert.deepEqual(await history.get(first.id), third);
      const other = message({ id: unique('msg'), conversationId: first.conversationId, seq: 2 });
      await history.write([other, second]);
      assert.deepEqual((await history.read({ conversationId: first.conversationId, limit: 5 })).data, [
        other,
        third,
      ]);
    },
  },
  {
    name: 'a late repetition does not bring a deleted message back',
    async run(history, unique) {
      const conversationId = unique('conv');
      const [soft, hard] = series(conversationId, [1, 2]) as [MessageRecord, MessageRecord];
      await history.write([soft, hard]);
      await history.write([tombstone(soft), stub(hard)]);
      await history.write([soft, hard, edited(hard, 1)]).catch(() => undefined);
      await history.write([soft]);
      await history.write([hard]);
      assert.deepEqual((await history.read({ conversationId, limit: 5 })).data, [tombstone(soft)]);
      assert.equal(await history.get(hard.id), null);
      await history.write([stub(soft)]);
      assert.deepEqual(await history.read({ conversationId, limit: 5 }), { data: [], hasMore: false });
    },
  },
  {
    name: 'rewriting replaces what is there at the same revision, and nothing newer',
    async run(history, unique) {
      const [one, two] = series(unique('conv'), [1, 2]) as [MessageRecord, MessageRecord];
      await history.write([{ ...one, text: 'spoilt' }, edited(two, 2)]);
      await history.write([one, two]);
      assert.equal((await history.get(one.id))?.text, 'spoilt');
      await history.write([one, two], { rewrite: true });
      assert.deepEqual(await history.get(one.id), one);
      assert.deepEqual(await history.get(two.id), edited(two, 2));
    },
  },
  {
    name: 'extras come back as they were written, whatever is in them, and go with the content',
    async run(history, unique) {
      const extras = JSON.stringify({ 'a "b"': [1, null, { ä: '🦊' }], thread: { replies: 3 } });
      const [plain, extended] = series(unique('conv'), [1, 2]) as [MessageRecord, MessageRecord];
      await history.write([plain, { ...extended, extras }]);
      assert.deepEqual(await history.get(plain.id), plain);
      assert.deepEqual((await history.read({ conversationId: plain.conversationId, limit: 5 })).data, [
        { ...extended, extras },
        plain,
      ]);
      const changed = { ...edited(extended, 2), extras: '{"other":true}' };
      await history.write([changed]);
      await history.write([{ ...extended, extras }]);
      assert.deepEqual(await history.get(extended.id), changed);
      await history.write([tombstone(changed)]);
      assert.deepEqual(await history.get(extended.id), tombstone(changed));
    },
  },
  {
    name: 'conversations and members are taken, in one batch with messages',
    async run(history, unique) {
      const conversationId = unique('conv');
      const conversation: ConversationRecord = {
        kind: 'conversation',
        id: conversationId,
        type: 'group',
        name: 'Ünd',
        metadata: '{"a":1}',
        extras: '{"topic":"x"}',
        createdAt: '2026-01-01T00:00:00.000Z',
        deletedAt: null,
        revision: 1,
      };
      const alice = member({ conversationId, userId: 'alice', role: 'owner', extras: '{"muted":true}' });
      const batch: HistoryRecord[] = [
        conversation,
        alice,
        { ...alice, userId: 'bob', role: 'member' },
        ...series(conversationId, [2, 3]),
      ];
      await history.write(batch);
      await history.write(batch);
      await history.write([
        { ...conversation, name: null, deletedAt: '2026-01-02T00:00:00.000Z', revision: 4 },
        { ...alice, removed: true, revision: 5 },
      ]);
      assert.deepEqual(seqsOf(await history.read({ conversationId, limit: 5 })), [3, 2]);
    },
  },
  {
    name: 'an erasure that keeps messages renames their sender, and may be repeated',
    async run(history, unique) {
      const conversationId = unique('conv');
      const [userId, replacement] = [unique('user'), `deleted:${unique('x')}`];
      const [mine, his] = series(conversationId, [1, 2]).map((m, i) => ({
        ...m,
        senderId: i ? 'bob' : userId,
      })) as [MessageRecord, MessageRecord];
      await history.write([mine, his, member({ conversationId, userId })]);
      for (let i = 0; i < 2; i++) await history.erase({ userId, replacement, messages: 'anonymize' });
      assert.deepEqual(await history.get(mine.id), { ...mine, senderId: replacement });
      assert.deepEqual(await history.get(his.id), his);
      await history.write([mine]);
      assert.equal(
        (await history.get(mine.id))?.senderId,
        replacement,
        'a late repetition does not bring the name back',
      );
    },
  },
  {
    name: 'an erasure reaches a member who is there under the new name already',
    async run(history, unique) {
      const conversationId = unique('conv');
      const [userId, replacement] = [unique('user'), `deleted:${unique('x')}`];
      const [mine] = series(conversationId, [1]).map((m) => ({ ...m, senderId: userId }));
      await history.write([mine!, member({ conversationId, userId })]);
      await history.write([member({ conversationId, userId: replacement, removed: true, revision: 2 })]);
      await history.erase({ userId, replacement, messages: 'anonymize' });
      assert.equal((await history.get(mine!.id))?.senderId, replacement);
    },
  },
  {
    name: 'an erasure that deletes messages leaves nothing of them',
    async run(history, unique) {
      const conversationId = unique('conv');
      const [userId, replacement] = [unique('user'), `deleted:${unique('x')}`];
      const written = series(conversationId, upTo(60)).map((m) => ({
        ...m,
        senderId: m.seq % 2 ? userId : 'bob',
      }));
      await history.write(written);
      for (let i = 0; i < 2; i++) await history.erase({ userId, replacement, messages: 'delete' });
      await history.write(written);
      assert.deepEqual(
        seqsOf(await history.read({ conversationId, limit: 200 })),
        written
          .map((m) => m.seq)
          .filter((s) => s % 2 === 0)
          .reverse(),
      );
      assert.equal(await history.get(written[0]!.id), null);
    },
  },
  {
    name: 'a batch of 500 is written, and its count is right',
    async run(history, unique) {
      const conversationId = unique('conv');
      const batch = series(conversationId, upTo(500));
      await history.write(batch);
      await history.write(batch);
      assert.deepEqual(await allSeqs(history, conversationId), upTo(500).toReversed());
      const page = await history.read({ conversationId, limit: 200 });
      assert.deepEqual([page.data.length, page.data[0]?.seq, page.hasMore], [200, 500, true]);
    },
  },
  {
    name: 'writes of different records that are under way at once are all kept',
    async run(history, unique) {
      const conversationId = unique('conv');
      const whole = series(conversationId, upTo(200));
      const halves = [whole.slice(0, 100), whole.slice(100)];
      for (let round = 0; round < 5; round++) {
        const writes = halves.map((half) => half.slice(round * 20, round * 20 + 20));
        if (history.writesAtOnce > 1) await Promise.all(writes.map((records) => history.write(records)));
        else for (const records of writes) await history.write(records);
      }
      assert.deepEqual(seqsOf(await history.read({ conversationId, limit: 200 })), upTo(200).toReversed());
    },
  },
];
