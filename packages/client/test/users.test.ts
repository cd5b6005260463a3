import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connected, world } from './harness.ts';

test('users that are drawn are fetched together, once, and kept fresh', async () => {
  const { clock, server, client } = world();
  const ann = await connected(client('ann'), clock);
  const asked = () => server.requests.filter((r) => r.includes('/users/lookup')).length;
  const draw = () => ['bob', 'cem', 'nobody', 'bob'].map((id) => ann.users.find(id)?.name);
  let changes = 0;
  ann.users.store.subscribe(() => changes++);
  assert.deepEqual(draw(), [undefined, undefined, undefined, undefined]);
  await clock.advance(0);
  assert.deepEqual(draw(), ['Bob', 'Cem', undefined, 'Bob']);
  assert.deepEqual([asked(), changes], [1, 1]);
  await clock.advance(0);
  assert.equal(asked(), 1, 'also who is not there is asked for once');

  const [socket] = server.sockets;
  socket!.push({ t: 'user.updated', d: { user: { ...ann.users.store.get().get('bob')!, name: 'Robert' } } });
  await clock.advance(0);
  assert.equal(ann.users.find('bob')?.name, 'Robert');
  assert.deepEqual([asked(), changes], [1, 2]);

  socket!.end(1006, '');
  await clock.advance(60_000);
  assert.equal(ann.state, 'connected');
  assert.equal(ann.users.find('bob')?.name, 'Robert', 'what is known shows');
  await clock.advance(0);
  assert.equal(asked(), 2, 'and is looked up again after a gap');
});

test('names that are drawn are fetched again after a gap, also those that could not be fetched before', async () => {
  const { clock, server, client } = world();
  const ann = await connected(client('ann'), clock);
  // As a page does it: it looks again whenever the store changes.
  let drawn: string | null | undefined;
  const draw = () => void (drawn = ann.users.find('bob')?.name);
  ann.users.store.subscribe(draw);
  server.onRest = (_method, path) => {
    if (path.includes('/users/lookup')) throw new Error('cut');
  };
  draw();
  await clock.advance(120_000);
  server.onRest = () => {};
  assert.equal(drawn, undefined);
  const asked = () => server.requests.filter((r) => r.includes('/users/lookup')).length;
  const before = asked();
  const [socket] = server.sockets;
  socket!.end(1006, '');
  await clock.advance(60_000);
  assert.deepEqual([drawn, asked() - before], ['Bob', 1]);
});

test('a look-up that fails is tried again with the next look', async () => {
  const { clock, server, client } = world();
  const ann = await connected(client('ann'), clock);
  server.onRest = (_method, path) => {
    if (path.includes('/users/lookup')) throw new Error('cut');
  };
  ann.users.find('bob');
  await clock.advance(120_000);
  server.onRest = () => {};
  assert.equal(ann.users.find('bob'), undefined);
  await clock.advance(0);
  assert.equal(ann.users.find('bob')?.name, 'Bob');
});
