import assert from 'node:assert/strict';
import { test } from 'node:test';
import { use, useService } from '../support/use.ts';
import { startHistoryReceiver } from './servers.ts';
import { eventually, openStorage } from './world.ts';

/** docs/storage.md, The http endpoint: one whose `ping` does not say version 2. */

const { service, scene, db } = useService();
const receiver = use(startHistoryReceiver, (r) => r.close());

test('reactions#storage, mentions#storage, polls#storage: an older http endpoint gets messages without what it does not know, which stays here', async () => {
  const storage = await openStorage(service, db);
  const { ping } = receiver.store;
  receiver.store.ping = () => ({ ok: true });
  const { body } = await storage.api('PUT', '/v1/storage/database/a', { url: receiver.url });
  receiver.secret = body.signingSecret as string;
  const report = (await storage.api('POST', '/v1/storage/database/test', {})).body;
  assert.deepEqual([report.ok, report.schemaVersion], [true, 1]);
  assert.match(report.warnings.join(), /without them/);
  const mode = { mode: 'byo_db', bufferRetention: '24h' };
  assert.equal((await storage.api('PATCH', '/v1/storage', mode)).status, 200);

  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.group(anna, [ben], { rules: { mentionEveryone: 'all' } });
  const mentions = [{ type: 'user', userId: ben.id, offset: 0, length: 4 }];
  const poll = { question: 'Which?', options: [{ text: 'a' }, { text: 'b' }] };
  const { id } = await scene.send(anna, cid, { text: 'what', mentions, poll });
  await scene.send(anna, cid, { text: 'latest' });
  for (const done of [
    await ben.api('PUT', `/v1/messages/${id}/reactions/:yes:`, {}),
    await ben.api('PUT', `/v1/messages/${id}/votes`, { options: [2] }),
  ])
    assert.equal(done.status, 200, JSON.stringify(done.body));
  const untold = `SELECT 1 FROM message_reactions r JOIN conversations c ON c.env = r.env AND c.no = r.conv WHERE c.id = $1 AND r.waiting`;
  await eventually(async () => (await db.query(untold, [cid])).length === 0, 'all reactions are told');
  const before = (await ben.api('GET', `/v1/messages/${id}`)).body;
  // As if they had happened long ago.
  await db.query(
    `UPDATE message_reactions r SET due_at = due_at - interval '10 days' FROM conversations c WHERE c.id = $1 AND c.env = r.env AND c.no = r.conv`,
    [cid],
  );
  await storage.cool([cid]);
  assert.equal((await storage.record()).sink.refused, 0);
  const kept = () => receiver.store.environments.get('env_dev')!;
  for (const records of Object.values(kept()))
    for (const record of records.values()) assert.ok(!('extras' in record), JSON.stringify(record));
  assert.equal(kept().message.get(id)!['text'], 'what');
  assert.equal(kept().conversation.get(cid)!['id'], cid);

  // What it does not know is told by our store, beside the text that only the endpoint has.
  const after = (await ben.api('GET', `/v1/messages/${id}`)).body;
  // The 10 days are those of `cool`.
  assert.deepEqual({ ...after, createdAt: before.createdAt }, before);
  assert.deepEqual([after.reactions.total, after.reactions.ownVotes, after.mentions], [1, [2], mentions]);

  // From the next change on an endpoint of version 2 gets it.
  receiver.store.ping = ping;
  assert.equal((await anna.api('PUT', `/v1/messages/${id}/reactions/:yes:`, {})).status, 200);
  await eventually(
    () => Promise.resolve((kept().message.get(id)!['extras'] as any)?.reactions?.total === 2),
    'the counts are there',
  );
  const extras = kept().message.get(id)!['extras'] as any;
  assert.deepEqual(extras.mentions, [{ type: 'user', offset: 0, length: 4 }]);
  assert.deepEqual(extras.reactions.votes, [{ option: 2, count: 1 }]);
  assert.deepEqual(extras.poll, after.poll);
});
