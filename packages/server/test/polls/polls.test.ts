import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setReactions } from '../../src/features/reactions/sql.ts';
import { assertError } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';
import { until } from '../push-feature/tools.ts';
import { startReceiver } from '../webhooks/receiver.ts';

/** polls.md, over REST and the socket. */

const { scene, server, sql, db } = useService();

const options = [{ text: 'Monday' }, { text: 'Tuesday' }, { text: 'Never' }];
const question = 'When do we meet?';
const ok = async (answer: Promise<Answer>) => {
  const { status, body } = await answer;
  assert.equal(status, 200, JSON.stringify(body));
  return body;
};
const vote = (who: Actor, id: string, ...wanted: number[]) =>
  who.api('PUT', `/v1/messages/${id}/votes`, { options: wanted });
const close = (api: Actor['api'], id: string) => api('POST', `/v1/messages/${id}/poll/close`);
const shown = async (who: Actor, id: string) => ok(who.api('GET', `/v1/messages/${id}`));

async function ask(poll: object = {}, members = 3) {
  const people = await Promise.all(Array.from({ length: members }, (_, i) => scene.actor(`p${i}`)));
  const { id: cid } = await scene.group(people[0]!, people.slice(1));
  const message = await scene.send(people[0]!, cid, { poll: { question, options, ...poll } });
  return { people: people as [Actor, Actor, Actor, ...Actor[]], cid, message, id: message.id as string };
}

test('polls#poll: a poll is part of its message in answers, events, history and webhooks; it needs no text', async () => {
  const receiver = await startReceiver();
  try {
    await server('POST', '/v1/webhooks', { url: receiver.url, events: ['message.created'] });
    const [anna, ben] = [await scene.actor(), await scene.actor()];
    const { id: cid } = await scene.group(anna, [ben]);
    const socket = await scene.online(ben);
    const closesAt = '2090-01-01T12:00:00+01:00';
    const sent = await scene.send(anna, cid, { poll: { question, options, multiple: true, closesAt } });
    const poll = {
      question,
      options: options.map(({ text }, i) => ({ id: i + 1, text })),
      multiple: true,
      anonymous: false,
      closesAt: '2090-01-01T11:00:00.000Z',
    };
    assert.deepEqual(sent.poll, poll);
    assert.deepEqual((await socket.event('message.new', cid)).d.message, sent);
    assert.deepEqual(await shown(ben, sent.id), sent);
    assert.deepEqual((await ok(server('GET', `/v1/conversations/${cid}/messages`))).data[0].poll, poll);
    assert.deepEqual((await scene.events(cid)).at(-1).message, sent);
    const { data } = await receiver.next('message.created', (r) => r.data.conversationId === cid);
    assert.deepEqual(data.message, sent);
    // The text can be edited, the poll cannot, and it stays.
    const edited = await ok(
      anna.api('PATCH', `/v1/messages/${sent.id}`, { text: 'please vote', expectedVersion: 1 }),
    );
    assert.deepEqual([edited.text, edited.poll], ['please vote', poll]);
    const socketOf = await scene.online(anna);
    const second = { cid, clientMsgId: 'again', poll: { question, options } };
    const ack = await socketOf.request('message.send', second);
    assert.deepEqual(await socketOf.request('message.send', second), ack, 'a repeat is the same message');
  } finally {
    await receiver.close();
  }
});

test('polls#votes: a single choice replaces the one before, several are a set, and both stay apart from emoji', async () => {
  const { people, cid, id } = await ask();
  const [anna, ben, carl] = people;
  const first = await ok(vote(ben, id, 2));
  assert.deepEqual(first, {
    messageId: id,
    reactions: {
      revision: 1,
      total: 0,
      counts: [],
      votes: [{ option: 2, count: 1, userIds: [ben.id] }],
      own: [],
      ownVotes: [2],
    },
  });
  assert.deepEqual(await ok(vote(ben, id, 2)), first, 'a repeat changes nothing');
  await ok(anna.api('PUT', `/v1/messages/${id}/reactions/:a:`, {}));
  await ok(vote(anna, id, 3));
  // Replacing reactions leaves the vote alone.
  await ok(anna.api('PUT', `/v1/messages/${id}/reactions/:b:`, { replace: true }));
  const moved = await ok(vote(ben, id, 1));
  assert.deepEqual(moved.reactions.votes, [
    { option: 1, count: 1, userIds: [ben.id] },
    { option: 3, count: 1, userIds: [anna.id] },
  ]);
  const { reactions } = await shown(anna, id);
  assert.deepEqual([reactions.total, reactions.own, reactions.ownVotes], [1, [':b:'], [3]]);
  const [listed] = (await ok(server('GET', `/v1/conversations/${cid}/messages`))).data;
  assert.deepEqual([listed.reactions.own, listed.reactions.ownVotes], [undefined, undefined]);
  const back = (await ok(vote(ben, id))).reactions;
  assert.deepEqual([back.votes.length, back.ownVotes], [1, undefined]);
  const reactors = await ok(carl.api('GET', `/v1/messages/${id}/reactions`));
  assert.deepEqual(
    reactors.data.map((r: any) => [r.userId, r.emoji]),
    [
      [anna.id, ':b:'],
      [anna.id, 'poll:3'],
    ],
  );
  const voters = await ok(carl.api('GET', `/v1/messages/${id}/reactions?emoji=poll:3`));
  assert.deepEqual(
    voters.data.map((r: any) => r.userId),
    [anna.id],
  );

  const several = await ask({ multiple: true });
  await ok(vote(several.people[0], several.id, 3, 1));
  const both = (await ok(vote(several.people[0], several.id, 1, 2))).reactions;
  assert.deepEqual(
    both.votes.map((v: any) => [v.option, v.count]),
    [
      [1, 1],
      [2, 1],
    ],
  );
  assert.deepEqual(both.ownVotes, [1, 2]);
});

test('polls#votes: ten options and twenty emoji have room in one message', async () => {
  const ten = Array.from({ length: 10 }, (_, i) => ({ text: `${i}` }));
  const { people, id } = await ask({ options: ten, multiple: true });
  const react = (i: number) => server('PUT', `/v1/messages/${id}/reactions/:${i}:`, { userId: people[1].id });
  await ok(vote(people[0], id, ...ten.map((_, i) => i + 1)));
  for (let i = 0; i < 20; i++) await ok(react(i));
  assertError(await react(20), 409, 'limit_reached', 'emoji');
  const { counts, votes, total } = (await ok(vote(people[1], id, 10))).reactions;
  assert.deepEqual([counts.length, votes.length, votes[9].count, total], [20, 10, 2, 20]);
});

test('polls#event: members hear of results, the voter’s devices of the own vote, webhooks of both', async () => {
  const { people, cid, id } = await ask();
  const receiver = await startReceiver();
  try {
    await server('POST', '/v1/webhooks', { url: receiver.url, events: ['message.reactions'] });
    const [watcher, phone, laptop] = await Promise.all([
      scene.online(people[0]),
      scene.online(people[1]),
      scene.online(people[1]),
    ]);
    const acked = await phone.request('poll.vote', { id, options: [2] });
    assert.deepEqual([acked.id, acked.reactions.ownVotes], [id, [2]]);
    assert.deepEqual((await laptop.ephemeral('reaction.own')).d, {
      cid,
      id,
      revision: 1,
      own: [],
      ownVotes: [2],
    });
    const event = await watcher.event('message.reactions', cid);
    const votes = [{ option: 2, count: 1, userIds: [people[1].id] }];
    const changes = [{ userId: people[1].id, emoji: 'poll:2', on: true }];
    const told = { total: 0, counts: [], votes, changes, more: false };
    assert.deepEqual(event.d, { id, revision: 1, ...told });
    const { data } = await receiver.next('message.reactions', (r) => r.data.conversationId === cid);
    assert.deepEqual(data, { conversationId: cid, seq: event.seq, messageId: id, ...told });
    const read = (await ok(people[1].api('GET', `/v1/conversations/${cid}/events?after=${event.seq - 1}`)))
      .data;
    assert.deepEqual([read[0].votes, read[0].changes, read[0].ownVotes], [votes, [], [2]]);
  } finally {
    await receiver.close();
  }
});

test('polls#anonymous, T10.3: no answer, event, webhook or list names a voter, also not after an erasure', async () => {
  const receiver = await startReceiver();
  try {
    await server('POST', '/v1/webhooks', { url: receiver.url, events: ['message.reactions'] });
    const { people, cid, id } = await ask({ anonymous: true, multiple: true }, 4);
    const [author, ...voters] = people;
    const watcher = await scene.online(author);
    for (const one of voters) await ok(vote(one, id, 1, 2));
    const changed = await ok(vote(voters[0]!, id, 2, 3));
    assert.deepEqual(changed.reactions.votes, [
      { option: 1, count: 2, userIds: [] },
      { option: 2, count: 3, userIds: [] },
      { option: 3, count: 1, userIds: [] },
    ]);
    assert.deepEqual(changed.reactions.ownVotes, [2, 3], 'one sees one’s own');
    await ok(voters[0]!.api('PUT', `/v1/messages/${id}/reactions/:a:`, {}));
    let last = await watcher.event('message.reactions', cid);
    while (last.d.revision < 5) last = await watcher.event('message.reactions', cid);
    assert.equal((await server('DELETE', `/v1/users/${voters[1]!.id}?messages=delete`)).status, 204);
    while (last.d.votes[0].count !== 1) last = await watcher.event('message.reactions', cid);
    const reactors = [];
    for (const api of [author.api, server])
      for (const query of ['', '?emoji=poll:2'])
        reactors.push(...(await ok(api('GET', `/v1/messages/${id}/reactions${query}`))).data);
    // An emoji is nobody's secret.
    assert.deepEqual(
      reactors.map((r) => [r.userId, r.emoji]),
      [
        [voters[0]!.id, ':a:'],
        [voters[0]!.id, ':a:'],
      ],
    );
    const told = watcher.events(cid).filter((f) => f.e === 'message.reactions');
    const hooked = await receiver.next('message.reactions', (r) => r.data.seq === last.seq);
    const everything = [
      ...told.map((f) => f.d),
      hooked.data,
      await shown(author, id),
      await ok(server('GET', `/v1/messages/${id}`)),
      ...(await scene.events(cid)).filter((e) => e.type === 'message.reactions'),
    ].map(({ reactions, changes = [], ...rest }) => {
      const { votes } = reactions ?? rest;
      assert.ok(changes.every((c: any) => c.emoji === ':a:'));
      return JSON.stringify(votes);
    });
    for (const { id: userId } of people) assert.ok(everything.every((text) => !text.includes(userId)));
    // What is stored for the next answers names nobody either.
    const rows = await sql(
      `SELECT r.counts FROM message_reactions r JOIN conversations c ON c.env = r.env AND c.no = r.conv WHERE c.id = $1`,
      [cid],
    );
    const entries = JSON.parse(rows[0]!['counts'] as string) as [string, number, number[]][];
    assert.ok(entries.every(([key, , users]) => !key.startsWith('poll:') || users.length === 0));
  } finally {
    await receiver.close();
  }
});

test('polls#close: the author and the server close; then no vote counts, results are told, and the version stays', async () => {
  const { people, cid, id } = await ask();
  const [anna, ben] = people;
  const socket = await scene.online(ben);
  await ok(vote(ben, id, 1));
  await socket.event('message.reactions', cid);
  await ok(vote(anna, id, 2));
  assertError(await close(ben.api, id), 403, 'forbidden');
  await ok(ben.api('PUT', `/v1/messages/${id}/pin`));
  const closed = await ok(close(anna.api, id));
  assert.deepEqual([closed.version, closed.editedAt, closed.reactions.votes.length], [1, null, 2]);
  assert.equal(closed.pinnedBy, ben.id, 'the message as it is read');
  assert.ok(Date.parse(closed.poll.closedAt) > 0);
  const enriched = await socket.event('message.enriched', cid);
  assert.deepEqual(enriched.d, { id, poll: closed.poll });
  const results = await socket.event('message.reactions', cid);
  assert.deepEqual(results.d.votes, closed.reactions.votes);
  for (const refused of [await vote(ben, id, 2), await vote(ben, id), await close(server, id)]) {
    assertError(refused, 409, 'state_conflict');
    assert.deepEqual(refused.body.error.details, { state: 'closed' });
  }
  await socket.refused('poll.vote', { id, options: [2] }, 'state_conflict');
  assert.deepEqual((await shown(anna, id)).reactions, closed.reactions);
  await ok(ben.api('PUT', `/v1/messages/${id}/reactions/:a:`, {}));
  const edited = await ok(anna.api('PATCH', `/v1/messages/${id}`, { text: 'over', expectedVersion: 1 }));
  assert.deepEqual(edited.poll, closed.poll);
  const other = await ask();
  assert.equal((await ok(close(server, other.id))).reactions, undefined, 'nobody voted');
});

test('polls#close: a vote that is being committed is counted before the close', async () => {
  const { people, cid, id, message } = await ask();
  const [anna, ben, carl] = people;
  await ok(vote(ben, id, 1));
  const [at] = await sql(
    `SELECT c.env, c.no AS conv, u.no AS usr FROM conversations c JOIN users u ON u.env = c.env AND u.id = $2 WHERE c.id = $1`,
    [cid, carl.id],
  );
  const mine = {
    conversationId: cid,
    message: message.seq,
    emoji: 'poll:1',
    on: true,
    replace: true,
    own: true,
  };
  const { env, conv, usr: user } = at as { env: number; conv: number; usr: number };
  let closing: Promise<Answer> | undefined;
  await db.tx(async (tx) => {
    const [done] = await setReactions(tx, [{ ...mine, env, conv, user }], 60_000);
    assert.equal((done as { changed: boolean }).changed, true);
    let closed = false;
    closing = close(anna.api, id);
    void closing.then(() => (closed = true));
    const waits = async () =>
      (
        await sql(
          `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INTO message_reactions AS r%'`,
        )
      ).length > 0;
    await until(async () => closed || (await waits()), 'the close waits for the vote');
    assert.equal(closed, false);
  });
  let answer = await closing!;
  // It waits for a second at most, and a slow machine may need longer than that for the steps above.
  if (answer.status === 503) answer = await close(anna.api, id);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.deepEqual(
    answer.body.reactions.votes.map((v: any) => [v.option, v.count]),
    [[1, 2]],
  );
});

test('polls#closes-at: from that moment of the store’s clock on a vote is refused, and so is closing', async () => {
  const { people, cid, id } = await ask({ closesAt: '2090-01-01T00:00:00Z' });
  await ok(vote(people[1], id, 1));
  await sql(
    `UPDATE messages SET extras = replace(extras, '2090-01-01T00:00:00.000Z', '2020-01-01T00:00:00.000Z') WHERE id = $1`,
    [id],
  );
  assertError(await vote(people[1], id, 2), 409, 'state_conflict');
  assertError(await close(people[0].api, id), 409, 'state_conflict');
  assert.deepEqual((await shown(people[1], id)).reactions.ownVotes, [1]);
  // A repeat of a send is the original, also when its poll has ended meanwhile.
  const closesAt = '2020-01-01T00:00:00Z';
  const at = `/v1/conversations/${cid}/messages`;
  const body = { clientMsgId: 'late', poll: { question, options, closesAt } };
  assertError(await people[0].api('POST', at, body), 400, 'invalid_request', 'poll.closesAt');
  const { id: first } = await scene.send(people[0], cid, { clientMsgId: 'late', text: 'hello' });
  const again = await people[0].api('POST', at, body);
  assert.deepEqual([again.status, again.body.id], [201, first]);
});

test('polls#limits: bad input is the documented error, and nothing is written', async () => {
  const { people, cid, id } = await ask();
  const [anna] = people;
  const stranger = await scene.actor();
  const socket = await scene.online(anna);
  const { id: plain } = await scene.send(anna, cid);
  const at = `/v1/conversations/${cid}/messages`;
  const before = (await ok(server('GET', at))).data.length;
  const many = (n: number) => Array.from({ length: n }, (_, i) => ({ text: `${i}` }));
  const bad: [object | null, string | undefined][] = [
    [{ options: many(1) }, 'poll.options'],
    [{ options: many(11) }, 'poll.options'],
    [{ question: '' }, 'poll.question'],
    [{ question: 'x'.repeat(301) }, 'poll.question'],
    [{ options: [{ text: 'x'.repeat(101) }, { text: 'y' }] }, 'poll.options[0].text'],
    [{ options: [{ text: '' }, { text: 'y' }] }, 'poll.options[0].text'],
    [
      {
        options: [
          { id: 2, text: 'x' },
          { id: 1, text: 'y' },
        ],
      },
      'poll.options[0].id',
    ],
    [{ closesAt: 'soon' }, 'poll.closesAt'],
    [{ closesAt: '2090-13-01T00:00:00Z' }, 'poll.closesAt'],
    [{ closesAt: '2020-01-01' }, 'poll.closesAt'],
    [{ closesAt: '0000-01-01' }, 'poll.closesAt'],
    [{ closesAt: '9999-12-31T23:59:59-23:59' }, 'poll.closesAt'],
    [{ multiple: 'yes' }, 'poll.multiple'],
  ];
  let n = 0;
  for (const [poll, param] of bad)
    assertError(
      await anna.api('POST', at, { clientMsgId: `bad-${n++}`, poll: { question, options, ...poll } }),
      400,
      'invalid_request',
      param,
    );
  for (const poll of [{ votes: [] }, { closedAt: '2020-01-01' }])
    assertError(
      await anna.api('POST', at, { clientMsgId: `bad-${n++}`, poll: { question, options, ...poll } }),
      400,
      'unknown_field',
    );
  await socket.refused(
    'message.send',
    { cid, clientMsgId: 'bad', poll: { question, options: many(1) } },
    'invalid_frame',
  );
  for (const wanted of [[4], [0], [1, 2], [1, 1], [1.5], ['1'], Array.from({ length: 11 }, (_, i) => i + 1)])
    assertError(
      await anna.api('PUT', `/v1/messages/${id}/votes`, { options: wanted }),
      400,
      'invalid_request',
    );
  assertError(await anna.api('PUT', `/v1/messages/${id}/votes`, {}), 400, 'invalid_request', 'options');
  await socket.refused('poll.vote', { id, options: [11] }, 'invalid_frame');
  await socket.refused('poll.vote', { id, options: [4] }, 'invalid_request');
  assertError(await vote(anna, plain, 1), 404, 'not_found');
  assertError(await vote(anna, 'msg_none', 1), 404, 'not_found');
  assertError(await vote(stranger, id, 1), 403, 'not_member');
  assertError(await vote(stranger, id, 9), 403, 'not_member');
  assertError(await close(stranger.api, id), 403, 'not_member');
  assertError(await close(anna.api, plain), 404, 'not_found');
  assertError(
    await anna.api('PUT', `/v1/messages/${id}/reactions/poll:1`, {}),
    400,
    'invalid_request',
    'emoji',
  );
  assertError(await server('PUT', `/v1/messages/${id}/votes`, { options: [1] }), 403, 'forbidden');
  const [conv] = await sql('SELECT no, flags FROM conversations WHERE id = $1', [cid]);
  assert.equal(conv!['flags'], 0);
  assert.deepEqual(await sql('SELECT 1 FROM message_reactions WHERE conv = $1', [conv!['no']]), []);
  assert.equal((await ok(server('GET', at))).data.length, before);
});

test('polls#deleted: a tombstone shows neither poll nor votes, and takes none', async () => {
  const { people, cid, id } = await ask();
  const [anna, ben] = people;
  await ok(vote(ben, id, 1));
  await ok(anna.api('DELETE', `/v1/messages/${id}`));
  const tombstone = await shown(ben, id);
  assert.deepEqual([tombstone.poll, tombstone.reactions], [undefined, undefined]);
  assertError(await vote(ben, id, 2), 404, 'not_found');
  assertError(await close(anna.api, id), 404, 'not_found');
  const left = () =>
    sql(`SELECT 1 FROM reactions r JOIN conversations c ON c.no = r.conv AND c.env = r.env WHERE c.id = $1`, [
      cid,
    ]);
  await until(async () => (await left()).length === 0, 'the votes are gone');
  const [row] = await sql('SELECT extras FROM messages WHERE id = $1', [id]);
  assert.equal(row!['extras'], null);
});
