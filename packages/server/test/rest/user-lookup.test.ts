import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertError } from '../support/api.ts';
import { useService } from '../support/use.ts';
import { picture, ready } from '../uploads/files.ts';

const { scene, server } = useService();

const ids = (body: { data: { id: string }[] }) => body.data.map((user) => user.id).sort();

test('several users in one request: who may not be read is left out', async () => {
  const [me, friend, stranger] = await Promise.all([
    scene.actor('me'),
    scene.actor('friend'),
    scene.actor('strange'),
  ]);
  await scene.group(me, [friend]);
  const userIds = [me.id, friend.id, stranger.id, 'never-was', friend.id];
  const seen = await me.api('POST', '/v1/users/lookup', { userIds });
  assert.equal(seen.status, 200);
  assert.deepEqual(ids(seen.body), [friend.id, me.id].sort());
  assert.deepEqual(
    seen.body.data.find((u: any) => u.id === friend.id),
    (await me.api('GET', `/v1/users/${friend.id}`)).body,
  );
  assert.deepEqual(
    ids((await server('POST', '/v1/users/lookup', { userIds })).body),
    [friend.id, me.id, stranger.id].sort(),
  );
  assertError(await me.api('POST', '/v1/users/lookup', { userIds: [] }), 400, 'invalid_request', 'userIds');
  const many = Array.from({ length: 201 }, (_, i) => `u${i}`);
  assertError(await me.api('POST', '/v1/users/lookup', { userIds: many }), 400, 'invalid_request', 'userIds');
});

test('user.updated reaches those who share a conversation, when something changed', async () => {
  const [ann, bob, eve] = await Promise.all([scene.person(), scene.person(), scene.person()]);
  await scene.group(ann.actor, [bob.actor]);
  const set = (fields: object) => server('PUT', `/v1/users/${ann.actor.id}`, fields);
  const { body } = await set({ name: 'Ann' });
  for (const { socket } of [ann, bob])
    assert.deepEqual((await socket.ephemeral('user.updated')).d, { user: body });
  await set({ name: 'Ann' });
  await set({ name: 'Anna', metadata: { a: 1 } });
  const next = await bob.socket.ephemeral('user.updated');
  assert.deepEqual(
    [next.d.user.name, next.d.user.metadata],
    ['Anna', { a: 1 }],
    'not the one that changed nothing',
  );
  await eve.socket.barrier();
  assert.ok(!eve.socket.frames.some((f) => f.t === 'user.updated'), 'strangers are not told');
});

test('lastMessage hints at attachments, and only where there are some', async () => {
  const [ann, bob] = await Promise.all([scene.actor(), scene.actor()]);
  const { id } = await scene.group(ann, [bob]);
  await scene.send(ann, id, { text: 'words' });
  assert.ok(!('attachments' in (await scene.item(bob, id)).lastMessage));
  const attachments = [await ready(ann.api, id), await ready(ann.api, id)];
  await scene.send(ann, id, { attachments });
  const { lastMessage } = await scene.item(bob, id);
  assert.deepEqual(lastMessage.attachments, { count: 2, mimeType: 'image/png', name: picture.filename });
});
