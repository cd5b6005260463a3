import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/platform/clock.ts';
import { routeSources } from '../../src/realtime/route-sources.ts';
import { useService } from '../support/use.ts';

const { scene, server, db } = useService();

test('members#remove: events read from the store change routes as those from the bus: who left gets nothing more', async () => {
  const [owner, guest] = [await scene.actor(), await scene.actor()];
  const { id, lastSeq } = await scene.group(owner, []);
  const path = `/v1/conversations/${id}/members`;
  assert.equal((await server('POST', path, { userIds: [guest.id] })).status, 200);
  assert.equal((await server('DELETE', `${path}/${guest.id}`)).status, 204);
  await scene.send(null, id);
  const [user] = await db.query<{ env: number; no: number }>('SELECT env, no FROM users WHERE id = $1', [
    guest.id,
  ]);
  const missed = await routeSources(db, () => Promise.resolve(3_600_000), systemClock).missed(
    user!.env,
    id,
    lastSeq,
  );
  assert.deepEqual(
    missed?.map(({ e, join, leave }) => ({ e, join, leave })),
    [
      { e: 'member.added', join: [user!.no], leave: undefined },
      { e: 'member.removed', join: undefined, leave: [user!.no] },
      { e: 'message.new', join: undefined, leave: undefined },
    ],
  );
});
