import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { assertError } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';
import { until } from '../push-feature/tools.ts';
import { startReceiver } from '../webhooks/receiver.ts';

/** reactions.md, over REST and the socket. */

const { scene, server, sql } = useService();

const path = (id: string, emoji?: string) =>
  `/v1/messages/${id}/reactions${emoji === undefined ? '' : `/${encodeURIComponent(emoji)}`}`;
const react = (who: Actor, id: string, emoji: string, fields: object = {}) =>
  who.api('PUT', path(id, emoji), fields);
const unreact = (who: Actor, id: string, emoji: string) => who.api('DELETE', path(id, emoji));
/** A server reacts for users, and has no limit of theirs. */
const reactAs = (userId: string, id: string, emoji: string, replace = false) =>
  server('PUT', path(id, emoji), { userId, replace });

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
async function talk(members = 3) {
  const people = await Promise.all(range(members).map((i) => scene.actor(`p${i}`)));
  const { id: cid } = await scene.group(people[0]!, people.slice(1));
  const message = await scene.send(people[0]!, cid);
  return {
    people: people as [Actor, Actor, Actor, ...Actor[]],
    cid,
    id: message.id as string,
    seq: message.seq as number,
  };
}
const ok = async (answer: Promise<{ status: number; body: any }>) => {
  const { status, body } = await answer;
  assert.equal(status, 200, JSON.stringify(body));
  return body;
};
const shown = async (who: Actor, id: string) => (await ok(who.api('GET', `/v1/messages/${id}`))).reactions;

test('reactions#set, reactions#message: counts in the order of first use, the newest three users, and one’s own', async () => {
  const { people, cid, id } = await talk(5);
  const [anna] = people;
  assert.equal(await shown(anna, id), undefined, 'absent where there are none');
  const first = await ok(react(anna, id, '👍'));
  assert.deepEqual(first, {
    messageId: id,
    reactions: {
      revision: 1,
      total: 1,
      counts: [{ emoji: '👍', count: 1, userIds: [anna.id] }],
      own: ['👍'],
    },
  });
  for (const { id: userId } of people.slice(1)) await ok(reactAs(userId, id, '👍'));
  const bySecond = await ok(reactAs(people[1].id, id, ':party:'));
  assert.equal(bySecond.reactions.own, undefined, 'a server has none of its own');
  const newest = people
    .slice(2)
    .reverse()
    .map((p) => p.id);
  const counts = [
    { emoji: '👍', count: 5, userIds: newest },
    { emoji: ':party:', count: 1, userIds: [people[1].id] },
  ];
  assert.deepEqual(await shown(anna, id), { revision: 6, total: 6, counts, own: ['👍'] });
  const page = (await ok(people[1].api('GET', `/v1/conversations/${cid}/messages`))).data;
  assert.deepEqual(page[0].reactions, { revision: 6, total: 6, counts, own: ['👍', ':party:'] });
  const forServer = (await ok(server('GET', `/v1/conversations/${cid}/messages`))).data;
  assert.equal(forServer[0].reactions.own, undefined);
  // Who goes makes room for those who reacted earlier.
  const left = await ok(unreact(people[4]!, id, '👍'));
  assert.deepEqual(left.reactions.counts[0].userIds, [people[3]!.id, people[2].id, people[1].id]);
  const replaced = await ok(react(people[1], id, '🎉', { replace: true }));
  assert.deepEqual(replaced.reactions.own, ['🎉']);
  assert.deepEqual(
    replaced.reactions.counts.map((c: any) => [c.emoji, c.count]),
    [
      ['👍', 3],
      ['🎉', 1],
    ],
  );
  assert.equal((await ok(unreact(people[1], id, '🎉'))).reactions.total, 3);
  assert.equal((await ok(unreact(people[1], id, '🎉'))).reactions.total, 3, 'also if it was not there');
});

test('reactions#set, T1.3: a reaction repeated 100 times over REST and socket is one row and one revision', async () => {
  const { people, cid, id, seq } = await talk();
  const socket = await scene.online(people[1]);
  // As a server, a repetition is not limited; two by the user itself.
  const [asked, acked] = await Promise.all([
    Promise.all(range(97).map(() => ok(reactAs(people[1].id, id, '👍')))),
    socket.request('reaction.set', { id, emoji: '👍', on: true }),
    react(people[1], id, '👍'),
    socket.request('reaction.set', { id, emoji: '👍', on: true, replace: true }),
  ]);
  assert.ok(asked.every(({ reactions }) => reactions.revision === 1 && reactions.total === 1));
  assert.deepEqual(acked.reactions.own, ['👍']);
  const rows = await sql(
    `SELECT r.* FROM reactions r JOIN conversations c ON c.env = r.env AND c.no = r.conv WHERE c.id = $1 AND r.message = $2`,
    [cid, seq],
  );
  assert.equal(rows.length, 1);
  await socket.event('message.reactions', cid);
  assert.equal((await scene.events(cid)).filter((e) => e.type === 'message.reactions').length, 1);
});

test('reactions#limits, T1.4: of 25 users who race for the last of 20 emoji exactly one gets it', async () => {
  const { people, id } = await talk(26);
  await Promise.all(range(19).map((i) => ok(reactAs(people[0].id, id, `:${i}:`))));
  const answers = await Promise.all(people.slice(1).map((p, i) => reactAs(p.id, id, `:new-${i}:`)));
  assert.equal(answers.filter((a) => a.status === 200).length, 1);
  for (const answer of answers.filter((a) => a.status !== 200)) {
    assertError(answer, 409, 'limit_reached', 'emoji');
    assert.deepEqual(answer.body.error.details, { limit: 20 });
  }
  assert.equal((await shown(people[0], id)).counts.length, 20);
  await ok(reactAs(people[1].id, id, ':3:'));
  // What replacing takes away makes room.
  const alone = (await shown(people[0], id)).counts.find((c: any) => c.emoji.startsWith(':new'));
  await ok(reactAs(alone.userIds[0], id, ':other:', true));
  assert.equal((await shown(people[0], id)).counts.length, 20);
});

test('reactions#emoji: bad input is the documented error, and nothing is written', async () => {
  const { people, cid, id } = await talk();
  const [anna, ben] = people;
  const stranger = await scene.actor();
  const socket = await scene.online(anna);
  for (const emoji of ['x'.repeat(65), '👍'.repeat(17), 'a\tb', '\u0085', 'poll:1'])
    assertError(await react(anna, id, emoji), 400, 'invalid_request', 'emoji');
  await socket.refused('reaction.set', { id, emoji: 'poll:2', on: true }, 'invalid_frame');
  await socket.refused('reaction.set', { id, emoji: '', on: true }, 'invalid_frame');
  await socket.refused('reaction.set', { id, emoji: '👍' }, 'invalid_frame');
  assertError(await react(anna, id, '👍', { userId: ben.id }), 403, 'forbidden', 'userId');
  assertError(await react(anna, id, '👍', { color: 'red' }), 400, 'unknown_field');
  assertError(await server('PUT', path(id, '👍'), {}), 400, 'invalid_request', 'userId');
  assertError(await reactAs(stranger.id, id, '👍'), 403, 'not_member');
  assertError(await reactAs('nobody-at-all', id, '👍'), 403, 'not_member');
  assertError(await react(stranger, id, '👍'), 403, 'not_member');
  assertError(await stranger.api('GET', path(id)), 403, 'not_member');
  assertError(await react(anna, 'msg_none', '👍'), 404, 'not_found');
  assertError(await unreact(anna, 'msg_none', '👍'), 404, 'not_found');
  assertError(await anna.api('GET', `${path(id)}?cursor=e30`), 400, 'invalid_request', 'cursor');
  const [conv] = await sql('SELECT no, flags FROM conversations WHERE id = $1', [cid]);
  assert.equal(conv!['flags'], 0);
  assert.deepEqual(await sql('SELECT 1 FROM message_reactions WHERE conv = $1', [conv!['no']]), []);
});

test('reactions#list: who reacted, newest first, in pages, of one emoji or of all', async () => {
  const { people, id } = await talk(4);
  for (const { id: userId } of people) await ok(reactAs(userId, id, '👍'));
  await ok(reactAs(people[0].id, id, '🎉'));
  const all: any[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const more: string = cursor === '' ? '' : `&cursor=${cursor}`;
    const page = await ok(people[0].api('GET', `${path(id)}?limit=2${more}`));
    all.push(...page.data);
    cursor = page.nextCursor;
  }
  const expected = [[people[0].id, '🎉'], ...people.toReversed().map((p) => [p.id, '👍'])];
  assert.deepEqual(
    all.map((r) => [r.userId, r.emoji]),
    expected,
  );
  const one = await ok(server('GET', `${path(id)}?emoji=${encodeURIComponent('🎉')}`));
  assert.deepEqual(
    one.data.map((r: any) => r.userId),
    [people[0].id],
  );
});

test('reactions#event, reactions#own: members hear of the counts, the reactor’s devices of their own, webhooks of both', async () => {
  const { people, cid, id } = await talk();
  const receiver = await startReceiver();
  try {
    await server('POST', '/v1/webhooks', { url: receiver.url, events: ['message.reactions'] });
    const [watcher, phone, laptop] = await Promise.all([
      scene.online(people[0]),
      scene.online(people[1]),
      scene.online(people[1]),
    ]);
    await phone.request('reaction.set', { id, emoji: '👍', on: true });
    const own = await laptop.ephemeral('reaction.own');
    assert.deepEqual(own.d, { cid, id, revision: 1, own: ['👍'] });
    const event = await watcher.event('message.reactions', cid);
    const counts = [{ emoji: '👍', count: 1, userIds: [people[1].id] }];
    const changes = [{ userId: people[1].id, emoji: '👍', on: true }];
    assert.deepEqual(event.d, { id, revision: 1, total: 1, counts, changes, more: false });
    const { data } = await receiver.next('message.reactions', (r) => r.data.conversationId === cid);
    assert.deepEqual(data, {
      conversationId: cid,
      seq: event.seq,
      messageId: id,
      total: 1,
      counts,
      changes,
      more: false,
    });
    // What comes in the window after is told together, with what changed since.
    await Promise.all(
      range(15).flatMap((i) => [reactAs(people[0].id, id, `:${i}:`), reactAs(people[2].id, id, `:${i}:`)]),
    );
    let told = await watcher.event('message.reactions', cid);
    while (told.d.revision < 31) told = await watcher.event('message.reactions', cid);
    assert.equal(told.d.total, 31);
    assert.ok(
      watcher.events(cid).filter((f) => f.e === 'message.reactions').length < 31,
      'fewer than changes',
    );
    assert.ok(
      watcher.frames.every((f) => f.t !== 'reaction.own' || f.d.own.every((e: string) => e.startsWith(':'))),
    );
  } finally {
    await receiver.close();
  }
});

/** All members react with all of these, as one batch of the group commit. */
async function everybody(cid: string, seq: number, emoji: string[]): Promise<void> {
  const set = await sql(
    `SELECT s.status FROM conversations c, LATERAL (
       SELECT array_agg(m.env) AS envs, array_agg(m.conv) AS convs, array_agg($2::bigint) AS seqs, array_agg(m.usr) AS users,
         array_agg(e) AS emoji, array_agg(true) AS on_, array_agg(false) AS no
       FROM members m, unnest($3::text[]) e WHERE m.conv = c.no AND m.env = c.env
     ) x, LATERAL set_reactions(x.envs, x.convs, x.seqs, x.users, x.on_, x.emoji, x.on_, x.no, 30000) s WHERE c.id = $1`,
    [cid, seq, emoji],
  );
  assert.deepEqual(new Set(set.map((row) => row['status'])), new Set(['ok']));
}

test('reactions#message, T1.2: with 10,000 reactions a message is below 4 KB in history, and below 16 KB whatever its emoji and ids', async () => {
  const page = async (ids: string[], emoji: string[]) => {
    const anna = await scene.actor();
    const members = ids.map((id) => ({ id, api: anna.api }));
    const { id: cid } = await scene.group(anna, members);
    const { seq } = await scene.send(anna, cid);
    await everybody(cid, seq, emoji);
    const [message] = (await ok(anna.api('GET', `/v1/conversations/${cid}/messages`))).data;
    assert.deepEqual([message.reactions.total, message.reactions.own.length], [20 * (ids.length + 1), 20]);
    return Buffer.byteLength(JSON.stringify(message));
  };
  const usual = await page(
    range(499).map(() => randomUUID()),
    range(20).map((i) => `:${i}:`),
  );
  assert.ok(usual < 4_096, `${usual} bytes`);
  // The longest ids, and emoji of 64 bytes that take twice as many in JSON.
  const largest = await page(
    range(3).map((i) => `${randomUUID()}${i}`.padEnd(128, 'x')),
    range(20).map((i) => `${i}`.padEnd(64, '"')),
  );
  assert.ok(largest > 8_192 && largest < 16_384, `${largest} bytes`);
});

test('reactions#quiet, T1.7: unread counts and the last message are the same after 1,000 reactions', async () => {
  const { people, cid, id, seq } = await talk(50);
  const [, reader] = people;
  const before = await scene.item(reader, cid);
  await everybody(
    cid,
    seq,
    range(20).map((i) => `:${i}:`),
  );
  const after = await scene.item(reader, cid);
  for (const field of ['unreadCount', 'lastReadSeq', 'lastMessage', 'lastMessageAt', 'muted'])
    assert.deepEqual(after[field], before[field], field);
  assert.equal((await shown(reader, id)).total, 1_000);
});

test('reactions#deleted: a tombstone shows none, takes none, and its rows go', async () => {
  const { people, cid, id, seq } = await talk();
  const [anna, ben] = people;
  await ok(react(anna, id, '👍'));
  await ok(react(ben, id, '👍'));
  await ok(anna.api('DELETE', `/v1/messages/${id}`));
  assert.equal(await shown(anna, id), undefined);
  assertError(await react(ben, id, '🎉'), 404, 'not_found');
  assertError(await unreact(ben, id, '👍'), 404, 'not_found');
  const [conv] = await sql('SELECT no FROM conversations WHERE id = $1', [cid]);
  const left = () => sql('SELECT 1 FROM reactions WHERE conv = $1 AND message = $2', [conv!['no'], seq]);
  await until(async () => (await left()).length === 0, 'the rows are gone');
  const events = (await scene.events(cid)).filter((e) => e.type === 'message.reactions');
  assert.ok(
    events.every((e) => e.total === 0 && e.counts.length === 0),
    'read later they show the message as it is',
  );
});

test('reactions#erasure: anonymize keeps reactions under the replacement; delete takes them back, with an event', async () => {
  for (const mode of ['anonymize', 'delete']) {
    const { people, cid, id } = await talk();
    const [anna, ben] = people;
    const socket = await scene.online(anna);
    await ok(react(anna, id, '👍'));
    await ok(react(ben, id, '👍'));
    assert.equal((await server('DELETE', `/v1/users/${ben.id}?messages=${mode}`)).status, 204);
    const reactions = await shown(anna, id);
    assert.ok(!JSON.stringify(reactions).includes(ben.id));
    if (mode === 'anonymize') {
      assert.equal(reactions.total, 2);
      assert.match(reactions.counts[0].userIds[0], /^deleted:/);
    } else {
      assert.deepEqual(reactions.counts, [{ emoji: '👍', count: 1, userIds: [anna.id] }]);
      let told = await socket.event('message.reactions', cid);
      while (told.d.total !== 1 || told.d.revision < 3) told = await socket.event('message.reactions', cid);
    }
    assert.ok(!JSON.stringify(await scene.events(cid)).includes(ben.id));
  }
});
