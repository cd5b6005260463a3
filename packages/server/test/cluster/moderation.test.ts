import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { assertError } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import type { Service } from '../support/service.ts';
import { until, useNodes } from './nodes.ts';

/** What one node decides binds the other: T6.1, T6.3 and T6.4 on two nodes, with races and a kill. */

const { cluster, scene, nodes } = useNodes([{}, {}]);
const [, b] = nodes as [Service, Service];
const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const say = (by: Actor, cid: string, clientMsgId: string = randomUUID()): Promise<Answer> =>
  by.api('POST', `/v1/conversations/${cid}/messages`, { text: 'hello', clientMsgId });
const messages = async (cid: string): Promise<string[]> =>
  (
    await cluster.sql(
      'SELECT m.id FROM messages m JOIN conversations c ON c.no = m.conv WHERE c.id = $1 ORDER BY seq',
      [cid],
    )
  ).map((row) => row['id'] as string);

/** Sends as fast as it is answered, until it is told to stop; a node may die meanwhile. */
function chatter(people: Actor[], cid: string) {
  let talking = true;
  const stored: string[] = [];
  let refused = 0;
  const runs = people.map(async (person) => {
    while (talking) {
      const answer = await say(person, cid).catch(() => null);
      if (answer?.status === 201) stored.push(answer.body.id as string);
      else if (answer?.status === 403) refused++;
    }
  });
  return {
    stored,
    refused: () => refused,
    stop: async (): Promise<void> => {
      talking = false;
      await Promise.all(runs);
    },
  };
}

test('blocks#direct, T6.1: after the answer to a block no message of either is stored, whichever node takes it', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.direct(anna, ben);
  const people = [anna, ben, cluster.at(b, anna), cluster.at(b, ben)];
  for (const round of range(4)) {
    const talk = chatter(people, cid);
    await until(() => talk.stored.length >= 10);
    const blocked = await people[round % 4]!.api('PUT', `/v1/blocks/${round % 2 ? anna.id : ben.id}`);
    assert.equal(blocked.status, 200);
    const before = await messages(cid);
    await until(() => talk.refused() >= 20);
    await talk.stop();
    assert.deepEqual(await messages(cid), before);
    for (const id of talk.stored) assert.ok(before.includes(id), 'what was acknowledged is stored');
    const open = await people[(round + 2) % 4]!.api('DELETE', `/v1/blocks/${round % 2 ? anna.id : ben.id}`);
    assert.equal(open.status, 204);
  }
});

test('restrictions#end, T6.3: a silence and a ban end on both nodes without a job, and a repetition gets its original meanwhile', async () => {
  const [owner, member] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.group(owner, [member]);
  const both = [member, cluster.at(b, member)];
  const first = await say(both[0]!, cid, 'first');
  assert.equal(first.status, 201);
  const restrict = (kind: string, ms: number) => {
    const end = new Date(Date.now() + ms).toISOString();
    const path = `/v1/conversations/${cid}/restrictions/${member.id}`;
    return owner.api('PUT', path, { kind, until: end });
  };
  // Without an end it holds for as long as this looks; then it is given one.
  const forGood = await owner.api('PUT', `/v1/conversations/${cid}/restrictions/${member.id}`, {
    kind: 'silence',
  });
  assert.equal(forGood.status, 200);
  for (const one of both) {
    assertError(await say(one, cid), 403, 'restricted');
    const again = await say(one, cid, 'first');
    assert.deepEqual([again.status, again.body.id], [201, first.body.id]);
  }
  const silence = await restrict('silence', 1_000);
  for (const one of both) {
    await until(async () => (await say(one, cid)).status === 201);
    assert.ok(Date.now() >= Date.parse(silence.body.until as string), 'not before its end');
  }
  const jobs = await cluster.sql(`SELECT queue FROM jobs WHERE queue LIKE '%restrict%'`);
  assert.deepEqual(jobs, []);

  assert.equal((await restrict('ban', 3_600_000)).status, 200);
  const add = () =>
    cluster.at(b, owner).api('POST', `/v1/conversations/${cid}/members`, { userIds: [member.id] });
  assertError(await add(), 403, 'restricted');
  const ban = await restrict('ban', 1_000);
  await until(async () => (await add()).status === 200);
  assert.ok(Date.now() >= Date.parse(ban.body.until as string), 'not before its end');
  for (const one of both) assert.equal((await say(one, cid)).status, 201);
});

test('conversations#slow-mode, T6.4: of ten messages at once over two nodes one is stored, and nine are told the rest', async () => {
  const [owner, member] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.group(owner, [member]);
  const slow = { rules: { slowModeSeconds: 3_600 } };
  assert.equal((await owner.api('PATCH', `/v1/conversations/${cid}`, slow)).status, 200);
  const both = [member, cluster.at(b, member)];
  const answers = await Promise.all(range(10).map((i) => say(both[i % 2]!, cid)));
  const stored = answers.filter(({ status }) => status === 201);
  assert.equal(stored.length, 1);
  for (const answer of answers)
    if (answer !== stored[0]) {
      assertError(answer, 429, 'rate_limited');
      const { retryAfterMs } = answer.body.error as { retryAfterMs: number };
      assert.ok(retryAfterMs > 0 && retryAfterMs <= 3_600_000, `${retryAfterMs} ms`);
    }
  assert.deepEqual(await messages(cid), [stored[0]!.body.id]);
});

test('blocks#direct, T6.1: a node that is killed while both write stores nothing after the block', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.direct(anna, ben);
  const talk = chatter([anna, ben, cluster.at(b, anna), cluster.at(b, ben)], cid);
  await until(() => talk.stored.length >= 20);
  const [blocked] = await Promise.all([anna.api('PUT', `/v1/blocks/${ben.id}`), b.kill()]);
  assert.equal(blocked.status, 200);
  const before = await messages(cid);
  await until(() => talk.refused() >= 10);
  await talk.stop();
  assert.deepEqual(await messages(cid), before);
  for (const id of talk.stored) assert.ok(before.includes(id), 'what was acknowledged is stored');
  // The attempts so far may have used up what ben may send at the moment.
  let last = await say(ben, cid);
  await until(async () => last.status !== 429 || (last = await say(ben, cid)).status !== 429);
  assertError(last, 403, 'blocked');
});
