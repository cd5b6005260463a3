import assert from 'node:assert/strict';
import { test } from 'node:test';
import { awaitReactions, flagPair, insertBlock } from '../../src/features/blocks/sql.ts';
import { withMove } from '../../src/features/calls/call-state.ts';
import { lockCall, saveCall } from '../../src/features/calls/sql.ts';
import { silenceMember } from '../../src/features/conversations/sql/restrictions.ts';
import { setReactions } from '../../src/features/reactions/sql.ts';
import { setSilenced } from '../../src/features/users/sql.ts';
import { appendBatch } from '../../src/log/sql/append.ts';
import { guards } from '../../src/log/sql/guards.ts';
import type { Tx } from '../../src/platform/postgres/db.ts';
import { act, pretendNode, start, stateOf } from '../calls/tools.ts';
import { hold, messageTo } from '../core/log-tools.ts';
import { until } from '../push-feature/tools.ts';
import { assertError } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { setUp, useService } from '../support/use.ts';

/** blocks#race and restrictions#race: reactions and those who join calls take no lock of the conversation. The tests lock whole tables. */

const { scene, server, sql, db } = useService({ own: true });
setUp(() => pretendNode(db));

/** Whether a statement with this text waits for a lock. */
const waits = async (text: string): Promise<boolean> => {
  const rows = await sql(
    `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid <> pg_backend_pid() AND position($1 in query) > 0`,
    [text],
  );
  return rows.length > 0;
};

/** Waits until a statement with the text waits; an answer before that must be one of those that were not done for want of a lock. */
async function waitsFor(asked: Promise<Answer>, text: string, why: string): Promise<void> {
  let answer: Answer | undefined;
  asked.then(
    (given) => (answer = given),
    () => undefined,
  );
  await until(async () => answer !== undefined || (await waits(text)), `an answer, or a wait of ${text}`);
  if (answer) assert.equal(answer.status, 503, why);
}

/** The answer, or that to another attempt if the first one has waited too long. */
async function insisting(first: Promise<Answer>, again: () => Promise<Answer>): Promise<Answer> {
  const answer = await first;
  return answer.status === 503 ? again() : answer;
}

interface World {
  anna: Actor;
  ben: Actor;
  cid: string;
  /** The numbers of all of them, and of the message. */
  no: { env: number; conv: number; anna: number; ben: number; message: number };
  /** Ben reacts to a message of anna. */
  react(emoji: string): Promise<Answer>;
}

async function world(group: boolean): Promise<World> {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = group ? await scene.group(anna, [ben]) : await scene.direct(anna, ben);
  const message = await scene.send(anna, cid);
  const react = (emoji: string) => ben.api('PUT', `/v1/messages/${message.id}/reactions/${emoji}`, {});
  assert.equal((await react('x')).status, 200);
  const [no] = await sql(
    `SELECT c.env, c.no AS conv, a.no AS anna, b.no AS ben FROM conversations c, users a, users b
     WHERE c.id = $1 AND a.env = c.env AND a.id = $2 AND b.env = c.env AND b.id = $3`,
    [cid, anna.id, ben.id],
  );
  return { anna, ben, cid, no: { ...(no as unknown as World['no']), message: message.seq }, react };
}

interface Refusal {
  name: string;
  group: boolean;
  code: string;
  ask(world: World): Promise<Answer>;
  /** What it does in the store. */
  run(tx: Tx, no: World['no']): Promise<void>;
}

const refusals: Refusal[] = [
  {
    name: 'blocks#race: a block',
    group: false,
    code: 'blocked',
    ask: ({ anna, ben }) => anna.api('PUT', `/v1/blocks/${ben.id}`, {}),
    run: async (tx, { env, conv, anna, ben }) => {
      await insertBlock(tx, env, anna, ben, 1);
      await flagPair(tx, env, conv, anna, ben);
      await awaitReactions(tx, env, conv);
    },
  },
  {
    name: 'restrictions#race: a silence in a group',
    group: true,
    code: 'restricted',
    ask: ({ anna, ben, cid }) =>
      anna.api('PUT', `/v1/conversations/${cid}/restrictions/${ben.id}`, { kind: 'silence' }),
    run: (tx, { env, conv, ben }) => silenceMember(tx, env, conv, ben, 'infinity'),
  },
  {
    name: 'restrictions#race: a silence in the environment',
    group: false,
    code: 'restricted',
    ask: ({ ben }) => server('PUT', `/v1/users/${ben.id}/silence`, {}),
    run: (tx, { env, ben }) => setSilenced(tx, env, ben, 'infinity'),
  },
];

for (const { name, group, code, ask, run } of refusals) {
  test(`${name} waits for a reaction that is being committed, and none is committed after its answer`, async () => {
    const made = await world(group);
    const { cid, no, react } = made;
    // It has seen that nothing hinders it, and is not committed.
    const release = await hold(db, async (tx) => {
      const item = { env: no.env, conversationId: cid, conv: no.conv, message: no.message, user: no.ben };
      const reaction = { ...item, own: true, emoji: 'y', on: true, replace: false };
      // It waits for the event of the first one.
      const [done] = await setReactions(tx, [reaction], 60_000);
      assert.partialDeepStrictEqual(done, { status: 'ok', changed: true });
    });
    const asking = ask(made);
    await waitsFor(asking, 'FOR UPDATE', 'it was answered before the reaction was committed').finally(
      release,
    );
    assert.equal((await insisting(asking, () => ask(made))).status, 200);
    assertError(await react('z'), 403, code);
  });

  test(`${name} that is being committed is waited for by a reaction, which is refused`, async () => {
    const { no, react } = await world(group);
    const release = await hold(db, (tx) => run(tx, no));
    const reacting = react('y');
    await waitsFor(reacting, 'set_reactions', 'the reaction did not wait').finally(release);
    assertError(await insisting(reacting, () => react('y')), 403, code);
  });
}

for (const [name, refuse] of [
  [
    'restrictions#environment: a silence in the environment',
    ({ ben }) => server('PUT', `/v1/users/${ben.id}/silence`, {}),
  ],
  ['users#deactivate: a deactivation', ({ ben }) => server('POST', `/v1/users/${ben.id}/deactivate`)],
  [
    'users#deactivate-until: a deactivation with an end',
    ({ ben }) =>
      server('POST', `/v1/users/${ben.id}/deactivate`, {
        until: new Date(Date.now() + 3_600_000).toISOString(),
      }),
  ],
] as [string, (world: World) => Promise<Answer>][])
  test(`${name} also refuses what a node had let in before, and appends after it`, async () => {
    const made = await world(true);
    const { ben, cid } = made;
    const late = await messageTo(db, cid, ben.id);
    assert.equal((await refuse(made)).status, 200);
    const [verdict] = await appendBatch(db, [late], 60_000);
    assert.equal((verdict as { code?: string }).code, 'restricted');
    const { body } = await server('GET', `/v1/conversations/${cid}/messages`);
    assert.deepEqual(
      body.data.filter((m: any) => m.senderId === ben.id),
      [],
    );
  });

test('blocks#race: a reaction sees whether one blocks the other only once it has locked its member', async () => {
  const { cid, react } = await world(false);
  // All that a reaction reads of members waits. If it had read the flag before, it would not see the block.
  const release = await hold(db, async (tx) => {
    await tx.query('LOCK TABLE members IN ACCESS EXCLUSIVE MODE');
    await tx.query('UPDATE conversations SET flags = flags | $2 WHERE id = $1', [cid, guards.blockedPair]);
  });
  const reacting = react('y');
  await waitsFor(reacting, 'set_reactions', 'the reaction did not wait for its member').finally(release);
  assertError(await insisting(reacting, () => react('y')), 403, 'blocked');
});

test('restrictions#race: who joins a call while it is silenced in the group is in no call afterwards', async () => {
  const { anna, ben, cid, no } = await world(true);
  const { id } = await start(anna, cid);
  for (const move of ['join', 'leave']) assert.equal((await act(ben, id, move)).status, 200);
  // What joining does last: nothing hindered it.
  const release = await hold(db, async (tx) => {
    const { call, at } = (await lockCall(tx, no.env, id))!;
    await saveCall(tx, call, withMove(call, no.ben, 'join', at));
  });
  const silence = () =>
    anna.api('PUT', `/v1/conversations/${cid}/restrictions/${ben.id}`, { kind: 'silence' });
  const silencing = silence();
  await waitsFor(silencing, 'FROM calls k', 'it was answered before the call was joined').finally(release);
  assert.equal((await insisting(silencing, silence)).status, 200);
  assert.equal(stateOf((await server('GET', `/v1/calls/${id}`)).body, ben), 'left');
  assertError(await act(ben, id, 'join'), 403, 'restricted');
});
