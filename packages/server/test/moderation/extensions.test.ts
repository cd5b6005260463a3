import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { assertError } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';

/** How blocks and silences bind polls, pins and mentions: restrictions.md, blocks.md. */

const { scene, server, sql } = useService();

const poll = { question: 'Which?', options: [{ text: 'a' }, { text: 'b' }] };
const block = (by: Actor, who: Actor) => by.api('PUT', `/v1/blocks/${who.id}`, {});
const unblock = (by: Actor, who: Actor) => by.api('DELETE', `/v1/blocks/${who.id}`);
const vote = (by: Actor, id: string, ...options: number[]) =>
  by.api('PUT', `/v1/messages/${id}/votes`, { options });
const pin = (by: Actor, id: string, method = 'PUT') => by.api(method, `/v1/messages/${id}/pin`);
const close = (by: Actor, id: string) => by.api('POST', `/v1/messages/${id}/poll/close`);

/** Votes, closing and pins are refused, over the socket too; taking one's vote back is not. */
async function assertBound(who: Actor, id: string, code: 'blocked' | 'restricted'): Promise<void> {
  const socket = await scene.online(who);
  for (const answer of [
    await vote(who, id, 2),
    await close(who, id),
    await pin(who, id),
    await pin(who, id, 'DELETE'),
  ])
    assertError(answer, 403, code);
  await socket.refused('poll.vote', { id, options: [2] }, code);
  const { reactions } = await socket.request('poll.vote', { id, options: [] });
  assert.equal(reactions.ownVotes, undefined);
  await socket.close();
}

test('restrictions#silence, blocks#direct: they bind votes, closing and pins, and servers not', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const [{ id: group }, { id: direct }] = await Promise.all([
    scene.group(anna, [ben]),
    scene.direct(anna, ben),
  ]);
  const asked = await scene.send(ben, group, { poll });
  assert.equal((await vote(ben, asked.id, 1)).status, 200);
  const silence = `/v1/conversations/${group}/restrictions/${ben.id}`;
  assert.equal((await anna.api('PUT', silence, { kind: 'silence' })).status, 200);
  await assertBound(ben, asked.id, 'restricted');
  assert.equal((await anna.api('DELETE', silence)).status, 204);
  assert.equal((await vote(ben, asked.id, 2)).status, 200);
  assert.equal((await pin(ben, asked.id)).status, 200);
  assert.equal((await close(ben, asked.id)).status, 200);

  const { id } = await scene.send(anna, direct, { poll });
  for (const who of [anna, ben]) assert.equal((await vote(who, id, 1)).status, 200);
  await block(ben, anna);
  for (const who of [anna, ben]) await assertBound(who, id, 'blocked');
  assert.equal((await server('PUT', `/v1/messages/${id}/pin`)).status, 200, 'a server is not bound');
  await unblock(ben, anna);
  assert.equal((await pin(ben, id, 'DELETE')).status, 204);
  assert.equal((await vote(ben, id, 2)).status, 200);
  assertError(await close(ben, id), 403, 'forbidden');
});

test('blocks#mentions, T6.2: who blocks the sender is mentioned without effect, by name and with everybody (E3, E6.1)', async () => {
  const [anna, ben, cleo] = await Promise.all(['anna', 'ben', 'cleo'].map((name) => scene.actor(name)));
  const { id: cid } = await scene.group(ben!, [anna!, cleo!]);
  const say = async (mentions: object[]) =>
    (await scene.send(ben!, cid, { text: 'hi', mentions, clientMsgId: randomUUID() })).id as string;
  const named = [anna!, cleo!].map(({ id: userId }) => ({ type: 'user', userId }));
  const count = async (who: Actor) => {
    const item = await scene.item(who, cid);
    return [item.unreadCount, item.mentionUnreadCount ?? 0];
  };
  const listed = async (who: Actor) => {
    const { body } = await who.api('GET', `/v1/mentions?conversationId=${cid}`);
    return body.data.map((m: any) => m.id) as string[];
  };
  const early = await say(named);
  assert.deepEqual([await count(anna!), await count(cleo!)], [[1, 1], [1, 1]]); // prettier-ignore
  await block(anna!, ben!);
  assert.deepEqual(await count(anna!), [1, 0], 'also what was noted before');
  const late = await say(named);
  await say([{ type: 'everyone' }]);
  const plain = await scene.send(ben!, cid, { text: 'later' });
  const edit = { mentions: named, expectedVersion: 1 };
  assert.equal((await ben!.api('PATCH', `/v1/messages/${plain.id}`, edit)).status, 200);
  assert.deepEqual([await count(anna!), await count(cleo!)], [[4, 0], [4, 4]]); // prettier-ignore
  assert.deepEqual(await listed(anna!), [early]);
  assert.deepEqual(await listed(cleo!), [plain.id, late, early]);
  const { body } = await anna!.api('POST', `/v1/conversations/${cid}/read`, { seq: 0 });
  assert.equal(body.mentionUnreadCount, 0);
  const rows = await sql(
    `SELECT 1 FROM mentions x JOIN users u ON u.no = x.usr AND u.env = x.env WHERE u.id = $1`,
    [anna!.id],
  );
  assert.equal(rows.length, 1);
  await unblock(anna!, ben!);
  assert.deepEqual(await count(anna!), [4, 2], 'the first one, and that for all');
});
