import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Member } from '@parley/client';
import { act, connected, createElement, mount, provide, world } from './dom.ts';

const { useRoster } = await import('../src/hooks/roster.ts');
const { receiptOf } = await import('../src/hooks/reading.ts');

test('rows learn the members of conversations that are not open: once, two at a time, and follow what happens', async () => {
  const { clock, server, client } = world();
  const ids = [1, 2, 3, 4].map(() => server.create(['ann', 'bob', 'cem']));
  const last = server.send(ids[0]!, 'ann', { text: 'hello' });
  let most = 0;
  let running = 0;
  const slow: typeof fetch = async (input, init) => {
    if (!String(input).includes('/members')) return server.fetch(input, init);
    most = Math.max(most, ++running);
    await new Promise<void>((done) => clock.setTimeout(done, 10));
    running--;
    return server.fetch(input, init);
  };
  const ann = await connected(client('ann', { fetch: slow }), clock);
  const known = new Map<string, readonly Member[]>();
  const Row = ({ id, marks }: { id: string; marks: boolean }) => {
    known.set(id, useRoster(id, marks));
    return null;
  };
  const asked = () => server.requests.filter((line) => line.includes('/members')).length;
  const receipt = () => receiptOf(known.get(ids[0]!)!, 'ann', last.seq);
  const rows = ids.map((id, i) => createElement(Row, { key: id, id, marks: i === 0 }));
  const page = await mount(provide({ client: ann }, ...rows), false);
  await act(() => clock.advance(100));
  assert.deepEqual([asked(), most], [4, 2]);
  assert.deepEqual(
    known.get(ids[3]!)!.map(({ userId }) => userId),
    ['ann', 'bob', 'cem'],
  );
  assert.deepEqual(receipt(), { state: 'sent', readBy: 0, others: 2 });

  server.read(ids[0]!, 'bob', last.seq);
  await act(() => clock.advance(100));
  assert.deepEqual(receipt(), { state: 'read', readBy: 1, others: 2 });
  server.removeMember(ids[1]!, 'cem');
  await act(() => clock.advance(100));
  assert.equal(known.get(ids[1]!)!.length, 2);
  assert.equal(asked(), 4, 'events were enough');

  await act(async () => ann.disconnect());
  server.read(ids[0]!, 'cem', last.seq);
  await act(async () => {
    const back = ann.connect();
    await clock.advance(100);
    await back;
    await clock.advance(100);
  });
  assert.equal(asked(), 5, 'only the row with a receipt asks again');
  assert.equal(receipt().readBy, 2);
  await page.unmount();
});
