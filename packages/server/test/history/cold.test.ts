import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { assertError } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { use, useService } from '../support/use.ts';
import { startCustomerPostgres } from './servers.ts';
import { eventually, inspect, openStorage } from './world.ts';

/** storage#cold, messages#cold: history in the customer's own database, behind the buffer. */

const { service, scene, server, db } = useService();
const customer = use(startCustomerPostgres, (c) => c.stop());
const it = use(
  async () => {
    const url = await customer.createDatabase();
    const storage = await openStorage(service, db);
    await storage.connect(url);
    return { url, storage, history: await inspect(url) };
  },
  ({ history }) => history.close(),
);

interface Old {
  cid: string;
  writer: Actor;
  reader: Actor;
  /** By seq. */
  messages: Map<number, any>;
}

/** Twenty messages, of which 4, 8 and 12 are tombstones, 6 was edited, 10 is gone for good, and all but the newest are cold. */
async function old(count = 20): Promise<Old> {
  const [writer, reader] = [await scene.actor(), await scene.actor()];
  const { id: cid } = await scene.group(writer, [reader]);
  const messages = new Map<number, any>();
  for (let i = 0; i < count; i++) {
    const sent = await scene.send(i % 2 ? null : writer, cid, { text: `m${i + 2}`, metadata: { n: i } });
    messages.set(sent.seq, sent);
  }
  for (const seq of [4, 8, 12])
    messages.set(seq, (await server('DELETE', `/v1/messages/${messages.get(seq).id}`)).body);
  messages.set(
    6,
    (await server('PATCH', `/v1/messages/${messages.get(6).id}`, { text: 'edited', expectedVersion: 1 }))
      .body,
  );
  await server('DELETE', `/v1/messages/${messages.get(10).id}?hard=true`);
  messages.delete(10);
  await it.storage.cool([cid]);
  return { cid, writer, reader, messages };
}

/** storage#circuit: 50 queries a second to the customer's database; beyond, one waits as one is told. */
async function patient(path: string): Promise<any> {
  for (;;) {
    const { status, body } = await server('GET', path);
    if (status === 200) return body;
    assert.equal(status, 429, JSON.stringify(body));
    await delay(body.error.retryAfterMs);
  }
}

/** Times were moved: they are compared elsewhere. */
const plain = ({ createdAt, editedAt, deletedAt, ...rest }: any) => ({
  ...rest,
  edited: Boolean(editedAt),
  deleted: Boolean(deletedAt),
});

test('every page of every size is one answer: right order, no gap, no repeat, right hasMore', async () => {
  const { cid, messages } = await old();
  const seqs = [...messages.keys()].sort((a, b) => b - a);
  const [cold] = await db.query<{ n: number }>(
    'SELECT count(*)::int AS n FROM messages m JOIN conversations c ON c.env = m.env AND c.no = m.conv WHERE c.id = $1 AND m.id IS NULL',
    [cid],
  );
  assert.equal(
    cold!.n,
    18,
    'all left our store but the newest, and the stub of the one that was deleted for good',
  );
  for (const limit of [1, 3, 7, 19, 200])
    for (const at of [1, 2, 5, 10, 13, 20, 21, 22]) {
      const below = seqs.filter((s) => s < at);
      const down = await patient(`/v1/conversations/${cid}/messages?before=${at}&limit=${limit}`);
      assert.deepEqual(
        [down.data.map((m: any) => m.seq), down.hasMore],
        [below.slice(0, limit), below.length > limit],
      );
      const above = seqs.filter((s) => s > at).reverse();
      const up = await patient(`/v1/conversations/${cid}/messages?after=${at}&limit=${limit}`);
      assert.deepEqual(
        [up.data.map((m: any) => m.seq), up.hasMore],
        [above.slice(0, limit).reverse(), above.length > limit],
      );
      for (const m of [...down.data, ...up.data])
        assert.deepEqual(plain(m), plain(messages.get(m.seq)), `seq ${m.seq}`);
    }
});

test('pages are whole while messages leave the buffer', async () => {
  const writer = await scene.actor();
  const { id: cid } = await scene.group(writer, []);
  const texts: string[] = [];
  for (let i = 0; i < 30; i++) texts.unshift((await scene.send(null, cid, { text: `n${i}` })).text);
  let cooling = true;
  const cooled = it.storage.cool([cid]).finally(() => (cooling = false));
  let read = 0;
  for (; cooling || read < 5; read++) {
    const { data, hasMore } = await patient(`/v1/conversations/${cid}/messages?limit=${read % 2 ? 20 : 50}`);
    assert.deepEqual(
      [data.map((m: any) => m.text), hasMore],
      [read % 2 ? texts.slice(0, 20) : texts, read % 2 === 1],
    );
  }
  await cooled;
});

test('a cold message is read, edited, deleted, deleted for good and replied to like any other', async () => {
  const { cid, reader, writer, messages } = await old();
  const id = (seq: number): string => messages.get(seq).id;
  assert.deepEqual(plain((await reader.api('GET', `/v1/messages/${id(5)}`)).body), plain(messages.get(5)));
  assert.equal((await reader.api('GET', `/v1/messages/${id(4)}`)).body.text, null);
  const stranger = await scene.actor();
  assertError(await stranger.api('GET', `/v1/messages/${id(5)}`), 403, 'not_member');
  assertError(await reader.api('GET', '/v1/messages/msg_00000000000000000000000000'), 404, 'not_found');

  assertError(
    await server('PATCH', `/v1/messages/${id(6)}`, { text: 'x', expectedVersion: 1 }),
    409,
    'version_conflict',
  );
  const edited = await server('PATCH', `/v1/messages/${id(6)}`, { text: 'again', expectedVersion: 2 });
  assert.deepEqual(
    [edited.status, edited.body.text, edited.body.version, edited.body.seq],
    [200, 'again', 3, 6],
  );
  assertError(
    await server('PATCH', `/v1/messages/${id(8)}`, { text: 'x', expectedVersion: 1 }),
    404,
    'not_found',
  );
  const gone = await writer.api('DELETE', `/v1/messages/${id(14)}`);
  assert.deepEqual([gone.status, gone.body.text], [200, null]);
  assert.equal((await server('DELETE', `/v1/messages/${id(16)}?hard=true`)).status, 204);
  assertError(await reader.api('GET', `/v1/messages/${id(16)}`), 404, 'not_found');
  const reply = await scene.send(reader, cid, { text: 'yes', replyTo: id(3) });
  assert.equal(reply.replyTo, id(3));
  await it.storage.settled();
  assert.equal((await it.history.get(id(6)))?.text, 'again');
  assert.equal((await it.history.get(id(14)))?.text, null);
  assert.equal(await it.history.get(id(16)), null);
  const { body } = await reader.api('GET', `/v1/conversations/${cid}/messages?limit=200`);
  assert.deepEqual(
    body.data.map((m: any) => m.seq).filter((s: number) => s < 22),
    [21, 20, 19, 18, 17, 15, 14, 13, 12, 11, 9, 8, 7, 6, 5, 4, 3, 2],
  );
  assert.deepEqual(body.data.find((m: any) => m.seq === 6).text, 'again');
});

test('reactions#storage: a cold message comes back before it is reacted to, and the customer database gets the counts', async () => {
  const { cid, reader, writer, messages } = await old();
  const id: string = messages.get(5).id;
  const path = `/v1/messages/${id}/reactions/:yes:`;
  const socket = await scene.online(writer);
  const stranger = await scene.actor();
  assertError(await stranger.api('PUT', path, {}), 403, 'not_member');
  const nothing = await reader.api('DELETE', path);
  assert.deepEqual([nothing.status, nothing.body.reactions.total], [200, 0]);
  const set = await reader.api('PUT', path, {});
  assert.deepEqual([set.status, set.body.reactions.own], [200, [':yes:']]);
  const told = await socket.event('message.reactions', cid);
  assert.deepEqual([told.d.id, told.d.total], [id, 1]);
  const { body } = await reader.api('GET', `/v1/conversations/${cid}/messages?limit=200`);
  const shown = body.data.find((m: any) => m.id === id);
  assert.deepEqual([shown.text, shown.reactions], ['m5', set.body.reactions]);
  assert.ok(body.data.every((m: any) => m.id === id || m.reactions === undefined));
  await it.storage.settled();
  assert.deepEqual(JSON.parse((await it.history.get(id))!.extras!), {
    reactions: { total: 1, counts: [{ emoji: ':yes:', count: 1 }] },
  });
});

/** Two cold messages to which both people reacted, the reader's erasure being about to begin. */
async function reactedTo() {
  const { cid, reader, writer, messages } = await old();
  const ids: string[] = [5, 7].map((seq) => messages.get(seq).id);
  for (const id of ids)
    for (const who of [reader, writer])
      assert.equal((await who.api('PUT', `/v1/messages/${id}/reactions/:yes:`, {})).status, 200);
  const [conv] = await db.query<{ no: number }>('SELECT no FROM conversations WHERE id = $1', [cid]);
  const stored = async (total: number) =>
    (await Promise.all(ids.map((id) => it.history.get(id)))).every(
      (m) => JSON.parse(m!.extras ?? '{}').reactions?.total === total,
    );
  await eventually(
    async () =>
      (await stored(2)) &&
      (await db.query('SELECT 1 FROM message_reactions WHERE conv = $1 AND waiting', [conv!.no])).length ===
        0,
    'all was told, and the database has both',
  );
  // As if they had happened long ago.
  await db.query(`UPDATE message_reactions SET due_at = due_at - interval '10 days' WHERE conv = $1`, [
    conv!.no,
  ]);
  await it.storage.cool([cid]);
  const socket = await scene.online(writer);
  return {
    conv: conv!.no,
    stored,
    erase: async () =>
      assert.equal((await server('DELETE', `/v1/users/${reader.id}?messages=delete`)).status, 204),
    told: async () => {
      const both = [
        await socket.event('message.reactions', cid),
        await socket.event('message.reactions', cid),
      ];
      assert.deepEqual(both.map(({ d }) => [d.id, d.total]).sort(), ids.map((id) => [id, 1]).sort());
    },
  };
}

test('reactions#erasure: an erasure lowers the counts of cold messages too, with an event, here and in the customer database', async () => {
  const { erase, told, stored } = await reactedTo();
  await erase();
  await told();
  await eventually(() => stored(1), 'the database has the lower counts');
});

test('reactions#erasure: while the database is away the reactions go; the events and the counts there follow when it is back', async () => {
  const { conv, erase, told, stored } = await reactedTo();
  const rows = (more: string, values: unknown[] = []) =>
    db.query(`SELECT 1 FROM message_reactions WHERE conv = $1 AND ${more}`, [conv, ...values]);
  await customer.kill();
  await erase();
  await eventually(
    async () =>
      (await rows(`total = 1 AND waiting AND due_at > clock_timestamp() + interval '1 minute'`)).length === 2,
    'both are counted here, and wait for the database',
  );
  await customer.start();
  await eventually(
    async () =>
      (await db.query('SELECT 1 FROM messages WHERE conv = $1 AND seq IN (5, 7) AND id IS NOT NULL', [conv]))
        .length === 2,
    'the sink has brought both back',
  );
  assert.equal((await rows('waiting')).length, 2);
  // As if those minutes had passed.
  await db.query('UPDATE message_reactions SET due_at = clock_timestamp() WHERE conv = $1 AND waiting', [
    conv,
  ]);
  await told();
  await eventually(() => stored(1), 'the database has the lower counts');
});

test('pins#storage: a pinned message may leave the buffer and is listed from there; one that was unpinned stays as long as its event', async () => {
  const [writer, reader] = [await scene.actor(), await scene.actor()];
  const { id: cid } = await scene.group(writer, [reader]);
  const { id, seq } = await scene.send(writer, cid, { text: 'pinned' });
  await scene.send(writer, cid, { text: 'newest' });
  const change = async (method: string) => (await reader.api(method, `/v1/messages/${id}/pin`)).status;
  assert.equal(await change('PUT'), 200);
  const [conv] = await db.query<{ env: number; no: number }>(
    'SELECT env, no FROM conversations WHERE id = $1',
    [cid],
  );
  await db.query(`UPDATE events SET created_at = created_at - interval '10 days' WHERE conv = $1`, [
    conv!.no,
  ]);
  await it.storage.cool([cid]);
  const { data } = await patient(`/v1/conversations/${cid}/pins`);
  assert.deepEqual(
    data.map((m: any) => [m.id, m.text, m.pinnedBy]),
    [[id, 'pinned', reader.id]],
  );
  assert.equal(await change('DELETE'), 204);
  await it.storage.settled();
  await db.query(
    `UPDATE messages SET created_at = created_at - interval '10 days' WHERE conv = $1 AND seq = $2`,
    [conv!.no, seq],
  );
  await db.query(`SELECT cool_messages($1, $2, now() - interval '24 hours', 100)`, [conv!.env, conv!.no]);
  const last = (await server('GET', `/v1/conversations/${cid}/events?before=1000&limit=1`)).body.data.at(-1);
  assert.deepEqual([last.type, last.id, last.pinned], ['message.pinned', id, false]);
  const here = await db.query('SELECT 1 FROM messages WHERE conv = $1 AND seq = $2 AND id IS NOT NULL', [
    conv!.no,
    seq,
  ]);
  assert.equal(here.length, 1);
});

test('polls#storage: a cold message shows its poll, takes votes and is closed; the customer database gets poll and counts', async () => {
  const [writer, reader] = [await scene.actor(), await scene.actor()];
  const { id: cid } = await scene.group(writer, [reader]);
  const options = [{ text: 'a' }, { text: 'b' }];
  const sent = await scene.send(writer, cid, { text: 'vote', poll: { question: 'Which?', options } });
  await scene.send(writer, cid);
  await it.storage.cool([cid]);
  const stored = async () => JSON.parse((await it.history.get(sent.id))!.extras!) as unknown;
  assert.deepEqual(await stored(), { poll: sent.poll });
  const shown = async () => (await reader.api('GET', `/v1/messages/${sent.id}`)).body;
  assert.deepEqual((await shown()).poll, sent.poll);
  const voted = await reader.api('PUT', `/v1/messages/${sent.id}/votes`, { options: [2] });
  assert.deepEqual([voted.status, voted.body.reactions.ownVotes], [200, [2]]);
  const closed = await writer.api('POST', `/v1/messages/${sent.id}/poll/close`);
  assert.equal(closed.status, 200);
  const expected = {
    poll: closed.body.poll,
    reactions: { total: 0, counts: [], votes: [{ option: 2, count: 1 }] },
  };
  await eventually(async () => isDeepStrictEqual(await stored(), expected), 'the database has the results');
  assert.deepEqual([(await shown()).text, (await shown()).poll], ['vote', closed.body.poll]);
});

test('unread counts, read marks, lists and syncs need no customer database', async () => {
  const { cid, reader } = await old();
  const unread = async () => (await scene.item(reader, cid)).unreadCount;
  assert.equal(await unread(), 16);
  assert.equal((await reader.api('POST', `/v1/conversations/${cid}/read`, { seq: 9 })).body.unreadCount, 10);
  assert.equal(await unread(), 10);
  assert.equal((await scene.item(reader, cid)).lastMessage.seq, 21);
});

test('when the newest message is deleted, the list shows the one before, which was cold', async () => {
  const { cid, reader, messages } = await old();
  await server('DELETE', `/v1/messages/${messages.get(21).id}`);
  const item = await eventually(async () => {
    const found = await scene.item(reader, cid);
    return found.lastMessage ? found : null;
  }, 'the latest message came back');
  assert.deepEqual([item.lastMessage.seq, item.lastMessage.text], [20, 'm20']);
});

test('messages#dedup: a repeated clientMsgId finds its message in the customer database', async () => {
  const writer = await scene.actor();
  const { id: cid } = await scene.group(writer, []);
  const body = { clientMsgId: 'again', text: 'once' };
  const sent = await writer.api('POST', `/v1/conversations/${cid}/messages`, body);
  await scene.send(null, cid);
  await it.storage.cool([cid]);
  const again = await writer.api('POST', `/v1/conversations/${cid}/messages`, body);
  assert.deepEqual([again.status, plain(again.body)], [201, plain(sent.body)]);
});

test('an erasure reaches the customer database, and cold messages show nobody', async () => {
  const { cid, reader, writer, messages } = await old();
  assert.equal((await server('DELETE', `/v1/users/${writer.id}?messages=anonymize`)).status, 204);
  const { body } = await reader.api('GET', `/v1/conversations/${cid}/messages?limit=200`);
  assert.ok(!JSON.stringify(body).includes(writer.id), 'at once, whatever the customer database says');
  await it.storage.settled();
  assert.match((await it.history.get(messages.get(2).id))!.senderId!, /^deleted:/);

  const other = await old();
  assert.equal((await server('DELETE', `/v1/users/${other.writer.id}?messages=delete`)).status, 204);
  const left = (await other.reader.api('GET', `/v1/conversations/${other.cid}/messages?limit=200`)).body;
  assert.ok(
    left.data.every((m: any) => m.senderId === null),
    JSON.stringify(left.data),
  );
  await it.storage.settled();
  assert.equal(await it.history.get(other.messages.get(2).id), null);
  assert.equal((await it.history.get(other.messages.get(3).id))?.text, 'm3');
  assert.equal(
    (await scene.item(other.reader, other.cid)).unreadCount,
    left.data.filter((m: any) => !m.deletedAt).length,
  );
});

test('attachments of cold messages keep their URLs', async () => {
  const [a, b] = [await scene.actor(), await scene.actor()];
  const { id: cid } = await scene.group(a, [b]);
  const bytes = Buffer.from('hello');
  const ticket = (
    await a.api('POST', '/v1/uploads', {
      conversationId: cid,
      filename: 'a.txt',
      size: bytes.length,
      contentType: 'text/plain',
    })
  ).body;
  await fetch(ticket.upload.url, {
    method: ticket.upload.method,
    headers: ticket.upload.headers,
    body: bytes,
  });
  await a.api('POST', `/v1/uploads/${ticket.attachmentId}/complete`);
  await scene.send(a, cid, { attachments: [ticket.attachmentId] });
  await scene.send(null, cid);
  await it.storage.cool([cid]);
  const [, shown] = (await b.api('GET', `/v1/conversations/${cid}/messages`)).body.data;
  assert.equal(shown.attachments[0].id, ticket.attachmentId);
  const { body } = await b.api('GET', `/v1/attachments/${ticket.attachmentId}/url`);
  assert.equal(await (await fetch(body.url)).text(), 'hello');
});

test('messages#cold: while the customer database is down only cold history is unavailable, and it recovers by itself', async () => {
  const { cid, reader, writer, messages } = await old();
  await customer.kill();
  const page = (query: string) => reader.api('GET', `/v1/conversations/${cid}/messages?${query}`);
  const error = assertError(await page('limit=5'), 503, 'history_unavailable');
  assert.ok(error.retryAfterMs! > 0);
  const many = await Promise.all(Array.from({ length: 10 }, () => page('before=10')));
  for (const one of many) assertError(one, 503, 'history_unavailable');
  assertError(await reader.api('GET', `/v1/messages/${messages.get(3).id}`), 503, 'history_unavailable');
  assert.equal((await page('limit=1')).status, 200);
  const sent = await scene.send(writer, cid, { text: 'meanwhile' });
  assert.equal(
    (await reader.api('PATCH', `/v1/messages/${sent.id}`, { text: 'x', expectedVersion: 1 })).status,
    403,
  );
  assert.equal((await scene.item(reader, cid)).lastMessage.text, 'meanwhile');
  await eventually(async () => (await it.storage.record()).sink.error, 'the record says so');
  await customer.start();
  await eventually(async () => (await page('limit=50')).status === 200, 'history is there again');
  await it.storage.settled();
  assert.equal((await it.history.get(sent.id).catch(() => it.history.get(sent.id)))?.text, 'meanwhile');
});

test('back to managed: everything comes home, and nothing needs the customer database any more', async () => {
  const { cid, reader, messages } = await old();
  const { status, body } = await it.storage.api('PATCH', '/v1/storage', { mode: 'managed' });
  assert.equal(status, 200, JSON.stringify(body));
  await eventually(async () => (await it.storage.record()).mode === 'managed', 'the mode is managed');
  await customer.kill();
  const page = (await reader.api('GET', `/v1/conversations/${cid}/messages?limit=200`)).body;
  assert.deepEqual(
    page.data.map((m: any) => m.seq),
    [...messages.keys()].sort((a, b) => b - a),
  );
  for (const m of page.data) assert.deepEqual(plain(m), plain(messages.get(m.seq)));
  assert.equal((await it.storage.record()).sink.status, 'idle');
});
