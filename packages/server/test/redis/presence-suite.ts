import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { PresenceRegistry, UserRef } from '../../src/platform/presence/port.ts';

export interface PresenceSubject {
  /** Registries of these nodes of one service, with a grace period of `graceMs`. */
  nodes(names: string[], graceMs: number): Promise<PresenceRegistry[]>;
  /** Lets the registries' time pass. */
  pass(ms: number): Promise<void>;
}

let users = Date.now() % 1_000_000;
export const newUser = (env = ++users): UserRef => ({ env, user: ++users });

const graceMs = 60_000;

/** What holds for one node, whatever keeps the registry. */
export function presenceSuite(name: string, subject: PresenceSubject): void {
  let open: PresenceRegistry[] = [];
  const one = async (): Promise<PresenceRegistry> => {
    open = await subject.nodes(['a'], graceMs);
    return open[0]!;
  };
  afterEach(async () => {
    await Promise.all(open.map((registry) => registry.close()));
    open = [];
  });

  test(`presence#grace: ${name}: online with a socket, and for the grace period after the last`, async () => {
    const registry = await one();
    const ref = newUser();
    assert.deepEqual(await registry.online([ref]), [false]);
    assert.deepEqual(await registry.add(ref, 's1', 10), {
      refused: false,
      evict: [],
      cameOnline: true,
      connections: 1,
    });
    assert.deepEqual(await registry.add(ref, 's2', 10), {
      refused: false,
      evict: [],
      cameOnline: false,
      connections: 2,
    });
    assert.deepEqual(await registry.remove(ref, 's1'), { last: false });
    assert.equal(await registry.endGrace(ref), false);
    assert.deepEqual(await registry.remove(ref, 's2'), { last: true });
    assert.deepEqual(await registry.online([ref, newUser()]), [true, false]);
    assert.equal(await registry.endGrace(ref), false);
    await subject.pass(graceMs + 1);
    assert.deepEqual(await registry.online([ref]), [false]);
    assert.equal(await registry.endGrace(ref), true);
    assert.equal(await registry.endGrace(ref), false);
    assert.equal((await registry.add(ref, 's3', 10)).cameOnline, true);
  });

  test(`push: ${name}: connected with a socket, and not in the grace period after it`, async () => {
    const registry = await one();
    const ref = newUser();
    assert.deepEqual(await registry.connected([ref]), [false]);
    await registry.add(ref, 's1', 10);
    await registry.add(ref, 's2', 10);
    await registry.remove(ref, 's1');
    assert.deepEqual(await registry.connected([newUser(), ref]), [false, true]);
    await registry.remove(ref, 's2');
    assert.deepEqual(await registry.connected([ref]), [false]);
    assert.deepEqual(await registry.online([ref]), [true]);
  });

  test(`presence#grace: ${name}: coming back within the grace period is no coming online`, async () => {
    const registry = await one();
    const ref = newUser();
    await registry.add(ref, 's1', 10);
    await registry.remove(ref, 's1');
    assert.equal((await registry.add(ref, 's2', 10)).cameOnline, false);
    await subject.pass(graceMs + 1);
    assert.equal(await registry.endGrace(ref), false);
    assert.deepEqual(await registry.online([ref]), [true]);
  });

  test(`presence#grace: ${name}: coming back after the grace period, before anybody settled it, is coming online`, async () => {
    const registry = await one();
    const ref = newUser();
    await registry.add(ref, 's1', 10);
    await registry.remove(ref, 's1');
    await subject.pass(graceMs + 1);
    assert.equal((await registry.add(ref, 's2', 10)).cameOnline, true);
    assert.equal(await registry.endGrace(ref), false);
  });

  test(`socket#ten-sockets: ${name}: beyond the most sockets the oldest goes, and its end means nothing more`, async () => {
    const registry = await one();
    const ref = newUser();
    for (const session of ['s1', 's2', 's3'])
      assert.deepEqual((await registry.add(ref, session, 3)).evict, []);
    assert.deepEqual((await registry.add(ref, 's4', 3)).evict, [{ node: 'a', id: 's1' }]);
    assert.equal(await registry.connections(ref.env), 3);
    assert.deepEqual(await registry.remove(ref, 's1'), { last: false });
    assert.equal(await registry.connections(ref.env), 3);
    assert.deepEqual((await registry.add(ref, 's5', 3)).evict, [{ node: 'a', id: 's2' }]);
  });

  test(`plans#connections: ${name}: connections are counted by environment`, async () => {
    const registry = await one();
    const refs = [newUser(), newUser()];
    refs.push(newUser(refs[0]!.env));
    assert.equal(await registry.connections(refs[0]!.env), 0);
    for (const [i, ref] of refs.entries()) await registry.add(ref, `s${i}`, 10);
    assert.equal(await registry.connections(refs[0]!.env), 2);
    assert.equal(await registry.connections(refs[1]!.env), 1);
    await registry.remove(refs[0]!, 's0');
    await registry.remove(refs[0]!, 's0');
    assert.equal(await registry.connections(refs[0]!.env), 1);
    await registry.remove(refs[2]!, 's2');
    assert.equal(await registry.connections(refs[0]!.env), 0);
  });

  test(`plans#connections: ${name}: of 20 sockets that come at once under a ceiling of 5, exactly 5 get in`, async () => {
    const registry = await one();
    const first = newUser();
    const refs = [first, ...Array.from({ length: 19 }, () => newUser(first.env))];
    const added = await Promise.all(refs.map((ref, i) => registry.add(ref, `c${i}`, 10, 5)));
    assert.equal(added.filter(({ refused }) => !refused).length, 5);
    assert.equal(await registry.connections(first.env), 5);
    const inside = added.findIndex(({ refused }) => !refused);
    const outside = added.findIndex(({ refused }) => refused);
    assert.deepEqual(await registry.online([refs[inside]!, refs[outside]!]), [true, false]);
    // Whoever takes the place of an own socket needs no room.
    assert.deepEqual(await registry.add(refs[inside]!, 'instead', 1, 5), {
      refused: false,
      cameOnline: false,
      connections: 5,
      evict: [{ node: 'a', id: `c${inside}` }],
    });
    assert.equal((await registry.add(refs[inside]!, 'second', 10, 5)).refused, true);
    await registry.remove(refs[inside]!, 'instead');
    assert.equal((await registry.add(refs[outside]!, 'again', 10, 5)).refused, false);
    assert.equal(await registry.connections(first.env), 5);
  });

  test(`presence#online: ${name}: many sockets opened and closed at once end with none`, async () => {
    const registry = await one();
    const refs = Array.from({ length: 50 }, () => newUser(1_000_001));
    const last = await Promise.all(
      refs.flatMap((ref) =>
        ['x', 'y'].map(async (session) => {
          const added = registry.add(ref, session, 10);
          const removed = registry.remove(ref, session);
          await added;
          return (await removed).last;
        }),
      ),
    );
    // The last one of each user; both, when the first was gone before the second came.
    assert.ok(last.filter(Boolean).length >= refs.length);
    assert.equal(await registry.connections(1_000_001), 0);
    await subject.pass(graceMs + 1);
    assert.deepEqual(new Set(await registry.online(refs)), new Set([false]));
    assert.deepEqual(new Set(await Promise.all(refs.map((ref) => registry.endGrace(ref)))), new Set([true]));
  });
}
