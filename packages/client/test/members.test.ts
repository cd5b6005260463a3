import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refusal } from './fake-server.ts';
import { connected, world } from './harness.ts';

/** sdk#procedure: members that somebody asked for once follow the stream, also when the first answer was a refusal. */

test('sdk#procedure: members asked for before the user was added are there once it is', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['bob']);
  const ann = await connected(client('ann'), clock);
  const conversation = ann.conversations.open(cid);
  const refused = assert.rejects(conversation.loadMembers(), { code: 'not_member' });
  await clock.advance(0);
  await refused;
  assert.deepEqual(conversation.members.get(), []);
  server.addMember(cid, 'ann');
  await clock.advance(1_000);
  assert.deepEqual(
    conversation.members.get().map((member) => member.userId),
    ['bob', 'ann'],
  );
});

test('sdk#procedure: members that could not be loaded are loaded with the next event', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  const conversation = ann.conversations.open(cid);
  await clock.advance(0);
  server.onRest = (_method, path) => {
    if (path.endsWith('/members')) throw new Refusal('internal', 500);
  };
  const failed = assert.rejects(conversation.loadMembers());
  await clock.advance(60_000);
  await failed;
  server.onRest = () => undefined;
  server.send(cid, 'bob', { text: 'hello' });
  await clock.advance(1_000);
  assert.deepEqual(
    conversation.members.get().map((member) => member.userId),
    ['ann', 'bob'],
  );
});
