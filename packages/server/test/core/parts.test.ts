import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Logger } from '../../src/platform/logging.ts';
import { createParts } from '../../src/platform/parts.ts';
import type { Part, PartList } from '../../src/platform/parts.ts';

type Role = 'api' | 'worker';

/** Writes down what is started and stopped, and what is logged as an error. */
function setup(make: (part: (name: string, more?: Partial<Part<Role>>) => Part<Role>) => PartList<Role>) {
  const done: string[] = [];
  const errors: { part: string }[] = [];
  const logger = { error: (fields: { part: string }) => errors.push(fields) } as unknown as Logger;
  const part = (name: string, more: Partial<Part<Role>> = {}): Part<Role> => ({
    name,
    start: () => done.push(`+${name}`),
    stop: () => done.push(`-${name}`),
    ...more,
  });
  return { done, errors, list: make(part), of: (...roles: Role[]) => createParts(new Set(roles), logger) };
}

test('parts start in order and stop in the reverse order, each once', async () => {
  const { done, list, of } = setup((part) => [part('a'), part('b', { start: undefined! }), part('c')]);
  const parts = of('api');
  assert.equal(parts.state, 'starting');
  await parts.start(list);
  assert.equal(parts.state, 'running');
  const first = parts.stop();
  assert.equal(parts.state, 'stopping', 'at once, so that nobody is sent here any more');
  await Promise.all([first, parts.stop()]);
  assert.deepEqual(done, ['+a', '+c', '-c', '-b', '-a']);
});

test('only parts of this process’s roles run; one without roles runs everywhere', async () => {
  const { done, list, of } = setup((part) => [
    part('all'),
    part('one', { roles: ['api'] }),
    [part('two', { roles: ['worker'] }), part('both', { roles: ['api', 'worker'] })],
  ]);
  const parts = of('worker');
  await parts.start(list);
  await parts.stop();
  assert.deepEqual(done, ['+all', '+two', '+both', '-two', '-both', '-all']);
});

test('parts of an inner list do not wait for each other; the next step waits for all of them', async () => {
  const slow = Promise.withResolvers<void>();
  const { done, list, of } = setup((part) => [
    [
      part('slow', {
        start: async () => {
          await slow.promise;
          done.push('+slow');
        },
      }),
      part('quick', { start: () => void (done.push('+quick'), slow.resolve()) }),
    ],
    part('next'),
  ]);
  const parts = of('api');
  await parts.start(list);
  assert.deepEqual(done, ['+quick', '+slow', '+next']);
});

test('a failure while starting stops what had started, its neighbours too, and nothing else', async () => {
  const failure = new Error('no');
  const { done, list, of } = setup((part) => [
    part('a'),
    [part('b'), part('broken', { start: () => Promise.reject(failure) })],
    part('never'),
  ]);
  const parts = of('api');
  await assert.rejects(parts.start(list), failure);
  assert.deepEqual(done, ['+a', '+b', '-b', '-a']);
  assert.equal(parts.state, 'stopping');
  await parts.stop();
  assert.equal(done.length, 4, 'once');
});

test('a stop while starting waits for the part under way and starts no other', async () => {
  const gate = Promise.withResolvers<void>();
  const { done, list, of } = setup((part) => [part('a', { start: () => gate.promise }), part('never')]);
  const parts = of('api');
  const starting = parts.start(list);
  const stopping = parts.stop();
  gate.resolve();
  await Promise.all([starting, stopping]);
  assert.deepEqual(done, ['-a']);
  assert.equal(parts.state, 'stopping');
});

test('a stop that fails or never ends is logged and holds nobody up', async () => {
  const { done, errors, list, of } = setup((part) => [
    part('a'),
    part('endless', { stop: () => new Promise(() => undefined), stopMs: 5 }),
    part('broken', { stop: () => Promise.reject(new Error('no')) }),
    part('thrower', {
      stop: () => {
        throw new Error('no');
      },
    }),
  ]);
  const parts = of('api');
  await parts.start(list);
  await parts.stop();
  assert.deepEqual(done.slice(4), ['-a']);
  assert.deepEqual(
    errors.map((e) => e.part),
    ['thrower', 'broken', 'endless'],
  );
});
