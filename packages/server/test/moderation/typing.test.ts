import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Actor } from '../support/scene.ts';
import type { TestSocket } from '../support/socket.ts';
import { useService } from '../support/use.ts';

/** presence#typing-limits: nobody is seen typing who may not write. */

const { scene, server } = useService();

const path = (cid: string): string => `/v1/conversations/${cid}`;
const people = (...names: string[]) => Promise.all(names.map((name) => scene.person(name)));

interface Person {
  actor: Actor;
  socket: TestSocket;
}

/** Lets all of them type, one after the other, and returns whom the watcher saw. The last one may type, which ends the wait. */
async function seen(cid: string, watcher: Person, typists: readonly Person[]): Promise<string[]> {
  const from = watcher.socket.frames.length;
  for (const { socket } of typists) socket.send('typing', { cid, state: 'start' });
  // What the store was asked together is answered together.
  await Promise.all(typists.map(({ socket }) => socket.barrier()));
  const last = typists.at(-1)!;
  await watcher.socket.ephemeral('typing', (d) => d.cid === cid && d.userId === last.actor.id);
  return watcher.socket.frames
    .slice(from)
    .filter((f) => f.t === 'typing')
    .map((f) => (f.d as { userId: string }).userId);
}
const rule = async (cid: string, posting: string): Promise<void> => {
  assert.equal((await server('PATCH', path(cid), { rules: { posting } })).status, 200);
};
const restrict = async (cid: string, who: Person): Promise<void> => {
  const set = await server('PUT', `${path(cid)}/restrictions/${who.actor.id}`, { kind: 'silence' });
  assert.equal(set.status, 200, JSON.stringify(set.body));
};

test('presence#typing-limits: where posting is for moderators, only they are seen typing, also in a group that came later', async () => {
  const [owner, ann, watcher] = (await people('owner', 'ann', 'watcher')) as [Person, Person, Person];
  // The sockets are open already: the group comes with its rule.
  const members = [ann.actor, watcher.actor];
  const { id: later } = await scene.group(owner.actor, members, { rules: { posting: 'moderators' } });
  assert.deepEqual(await seen(later, watcher, [ann, owner]), [owner.actor.id]);

  const { id: cid } = await scene.group(owner.actor, members);
  await rule(cid, 'moderators');
  await watcher.socket.event('conversation.updated', cid);
  assert.deepEqual(await seen(cid, watcher, [ann, owner]), [owner.actor.id]);
  // Who comes back later finds the rule, too.
  const phones: Person[] = [];
  for (const { actor } of [ann, owner]) phones.push({ actor, socket: await scene.online(actor) });
  const { id: third } = await scene.group(owner.actor, members, { rules: { posting: 'moderators' } });
  await server('PATCH', `${path(third)}/members/${ann.actor.id}`, { role: 'moderator' });
  assert.deepEqual((await seen(third, watcher, phones)).sort(), [ann.actor.id, owner.actor.id].sort());
  const { id: open } = await scene.group(owner.actor, members, { rules: { posting: 'moderators' } });
  await rule(open, 'all');
  await watcher.socket.event('conversation.updated', open);
  assert.deepEqual(await seen(open, watcher, [ann, owner]), [ann.actor.id, owner.actor.id]);
});

test('presence#typing-limits: who is silenced is not seen typing, in the group, in the environment, and after connecting anew', async () => {
  const [owner, ann, ben, watcher] = (await people('owner', 'ann', 'ben', 'watcher')) as Person[];
  const members = [ann!.actor, ben!.actor, watcher!.actor];
  const groups = await Promise.all(Array.from({ length: 3 }, () => scene.group(owner!.actor, members)));
  const [one, two, three] = groups.map(({ id }) => id) as [string, string, string];
  await restrict(one, ann!);
  assert.deepEqual(await seen(one, watcher!, [ann!, ben!]), [ben!.actor.id]);
  assert.deepEqual(await seen(two, watcher!, [ann!]), [ann!.actor.id], 'only there');
  assert.equal((await server('PUT', `/v1/users/${ben!.actor.id}/silence`, {})).status, 200);
  assert.deepEqual(await seen(three, watcher!, [ben!, owner!]), [owner!.actor.id]);

  const { id: cid } = await scene.group(owner!.actor, members);
  await restrict(cid, ann!);
  for (const person of [ann!, ben!, owner!, watcher!]) {
    await person.socket.close();
    person.socket = await scene.online(person.actor);
  }
  assert.deepEqual(await seen(cid, watcher!, [ann!, ben!, owner!]), [owner!.actor.id]);
  assert.equal((await server('DELETE', `/v1/users/${ben!.actor.id}/silence`)).status, 204);
  const { id: after } = await scene.group(owner!.actor, members);
  assert.deepEqual(await seen(after, watcher!, [ben!]), [ben!.actor.id]);
});
