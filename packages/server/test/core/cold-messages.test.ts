import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertError } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { connect } from '../support/socket.ts';
import { signToken } from '../support/tokens.ts';
import { use, useService } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { addEndpoint } from '../webhooks/tools.ts';
import { times } from './tools.ts';

/** Old messages may leave the store for colder storage: everything but reading those very messages works on. */

const { service, scene, db } = useService();
const receiver = use(startReceiver, (r) => r.close());

/** As colder storage would: what stays is where a message stands, who sent it and whether it was deleted. */
async function freeze(conversation: string, below: number): Promise<void> {
  await db.query(
    `UPDATE messages m SET id = NULL, text = NULL, reply_to = NULL, metadata = NULL, attachments = NULL, version = 1, created_at = NULL,
       edited_at = NULL, hard = false
     FROM conversations c WHERE c.id = $1 AND m.env = c.env AND m.conv = c.no AND m.seq < $2`,
    [conversation, below],
  );
}

/** A conversation of three with messages 2 to 21, of which 4, 8 and 12 are deleted, and those below 15 are cold. */
async function coldScene(): Promise<{
  cid: string;
  writer: Actor;
  reader: Actor;
  idle: Actor;
  ids: string[];
}> {
  const [writer, reader, idle] = await Promise.all(times(3, () => scene.actor()));
  const { id: cid } = await scene.group(writer!, [reader!, idle!]);
  const ids: string[] = ['', ''];
  for (let i = 0; i < 20; i++)
    ids.push((await scene.send(i % 2 ? null : writer!, cid, { text: `m${i + 2}` })).id);
  for (const seq of [4, 8, 12]) await scene.server('DELETE', `/v1/messages/${ids[seq]}`);
  await freeze(cid, 15);
  return { cid, writer: writer!, reader: reader!, idle: idle!, ids };
}

const unread = async (of: Actor, cid: string): Promise<number> => (await scene.item(of, cid)).unreadCount;

test('unread counts, read marks and syncs are exact on both sides of where cold messages begin', async () => {
  const { cid, writer, reader, idle, ids } = await coldScene();
  assert.equal(await unread(reader, cid), 17);
  for (const [seq, left] of [
    [5, 14],
    [8, 12],
    [13, 8],
    [16, 5],
  ] as const) {
    const { body } = await reader.api('POST', `/v1/conversations/${cid}/read`, { seq });
    assert.equal(body.unreadCount, left, `read up to ${seq}`);
    assert.equal(await unread(reader, cid), left);
  }
  assert.equal(await unread(idle, cid), 17);
  await scene.server('DELETE', `/v1/messages/${ids[17]}`);
  await scene.send(writer, cid);
  assert.equal(await unread(idle, cid), 17);
  assert.equal(await unread(reader, cid), 5);
  assert.equal(await unread(writer, cid), 0);
  const sync = await idle.api('POST', '/v1/sync', { cursor: null });
  assert.equal(sync.body.conversations.find((c: { id: string }) => c.id === cid).unreadCount, 17);
});

test('history is whole down to where cold messages begin, and leaves out what no database has', async () => {
  const { cid, reader, ids } = await coldScene();
  const page = (query: string) => reader.api('GET', `/v1/conversations/${cid}/messages?${query}`);
  const { body } = await page('limit=7');
  assert.deepEqual(
    body.data.map((m: { seq: number }) => m.seq),
    [21, 20, 19, 18, 17, 16, 15],
  );
  assert.equal(body.hasMore, true);
  assert.equal((await page('after=14&limit=3')).status, 200);
  for (const [query, left] of [
    ['limit=8', 7],
    ['before=15', 0],
    ['after=3&limit=3', 1],
    ['after=13&limit=1', 1],
  ] as const) {
    const { status, body } = await page(query);
    assert.deepEqual([status, body.data.length], [200, left], query);
  }
  assert.equal((await reader.api('GET', `/v1/messages/${ids[15]}`)).status, 200);
});

test('sends, repeats, replies, edits, deletes, lists, members and webhooks need no cold message', async () => {
  const { cid, writer, reader, ids } = await coldScene();
  await addEndpoint(scene.server, receiver.url, ['message.created', 'message.updated', 'message.deleted']);
  const socket = await connect(service, signToken({ sub: reader.id }));
  const send = (clientMsgId: string) =>
    writer.api('POST', `/v1/conversations/${cid}/messages`, { clientMsgId, text: 'new', replyTo: ids[16] });
  const sent = await send('one');
  assert.deepEqual((await send('one')).body, sent.body);
  await socket.event('message.new', cid);
  assert.equal(
    (await receiver.next('message.created', (r) => r.data.conversationId === cid)).data.seq,
    sent.body.seq,
  );
  await scene.server('PATCH', `/v1/messages/${ids[18]}`, { text: 'edited', expectedVersion: 1 });
  assert.equal((await socket.event('message.updated', cid)).d.message.text, 'edited');
  await scene.server('DELETE', `/v1/messages/${ids[20]}?hard=true`);
  await socket.event('message.deleted', cid);
  assert.equal((await scene.item(reader, cid)).lastMessage.id, sent.body.id);
  const late = await scene.actor();
  await scene.server('POST', `/v1/conversations/${cid}/members`, { userIds: [late.id] });
  assert.equal((await scene.item(late, cid)).unreadCount, 0);
  assert.equal((await scene.server('DELETE', `/v1/users/${writer.id}`)).status, 204);
  await socket.close();
  const events = (after: number) =>
    scene.server('GET', `/v1/conversations/${cid}/events?after=${after}&limit=200`);
  const { body } = await events(24);
  assert.deepEqual(
    body.data.map((e: { type: string }) => e.type),
    ['message.new', 'message.updated', 'message.deleted', 'member.added'],
  );
  assertError(await events(21), 410, 'resync_required');
  assertError(await events(13), 410, 'resync_required');
});

test('a repeated clientMsgId whose message no database has any more is told so, and commits nothing', async () => {
  const { cid, writer } = await coldScene();
  const body = { clientMsgId: 'again', text: 'x' };
  const sent = await writer.api('POST', `/v1/conversations/${cid}/messages`, body);
  await scene.send(null, cid);
  await freeze(cid, sent.body.seq + 1);
  assertError(await writer.api('POST', `/v1/conversations/${cid}/messages`, body), 404, 'not_found');
  assert.equal((await scene.item(writer, cid)).lastSeq, sent.body.seq + 1);
});
