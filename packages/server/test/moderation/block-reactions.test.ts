import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hold } from '../core/log-tools.ts';
import { until } from '../push-feature/tools.ts';
import { assertError } from '../support/api.ts';
import { useService } from '../support/use.ts';

/** blocks#race: reactions, which take no lock of the conversation. The tests lock whole tables. */

const { scene, sql, db } = useService({ own: true });

const waiting = async (n: number): Promise<boolean> => {
  const [row] = await sql('SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted');
  return row!['n'] === n;
};

test('blocks#race: a block waits for a reaction that is being committed, and none is committed after its answer', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.direct(anna, ben);
  const message = await scene.send(anna, cid);
  const react = (emoji: string) => ben.api('PUT', `/v1/messages/${message.id}/reactions/${emoji}`, {});
  assert.equal((await react('x')).status, 200);

  // A reaction writes its note last: it has seen that nobody blocks, and is not committed.
  const release = await hold(db, (tx) => tx.query('LOCK TABLE activity_notes IN EXCLUSIVE MODE'));
  const reacting = react('y');
  await until(() => waiting(1), 'the reaction is about to be committed');
  let answered = false;
  const blocking = anna.api('PUT', `/v1/blocks/${ben.id}`, {}).finally(() => (answered = true));
  await until(async () => answered || (await waiting(2)), 'the block waits');
  const early = answered;
  await release();
  assert.equal(early, false, 'the block was answered before the reaction was committed');
  // The block waits for a second at most; a slow machine may need another attempt.
  const first = await blocking;
  if (first.status === 503) assert.equal((await anna.api('PUT', `/v1/blocks/${ben.id}`, {})).status, 200);
  else assert.equal(first.status, 200);
  assert.equal((await reacting).status, 200);
  assertError(await react('z'), 403, 'blocked');
});

test('blocks#race: a reaction that comes while a block is being committed waits for it, and is refused', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.direct(anna, ben);
  const message = await scene.send(anna, cid);
  const react = (emoji: string) => ben.api('PUT', `/v1/messages/${message.id}/reactions/${emoji}`, {});
  assert.equal((await react('x')).status, 200);
  // What a block does last.
  const release = await hold(db, async (tx) => {
    const [conv] = await tx.query<{ no: number; env: number }>(
      'UPDATE conversations SET flags = flags | 256 WHERE id = $1 RETURNING no, env',
      [cid],
    );
    await tx.query('SELECT 1 FROM members WHERE conv = $1 AND env = $2 ORDER BY usr FOR UPDATE', [
      conv!.no,
      conv!.env,
    ]);
  });
  const reacting = react('y');
  await until(() => waiting(1), 'the reaction waits');
  await release();
  assertError(await reacting, 403, 'blocked');
});
