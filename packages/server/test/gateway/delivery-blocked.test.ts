import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../src/platform/logging.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';
import { Delivery } from '../../src/realtime/delivery.ts';
import type { Session } from '../../src/transport/gateway/session.ts';

test('a delivery mark whose conversation somebody holds is written a second later, unless a later one is there', async () => {
  let now = 0;
  let held = true;
  const written: [string, number][] = [];
  const asked: [string, number][][] = [];
  const db = {
    query: (_sql: string, [, cids, , seqs]: [number[], string[], number[], number[]]) => {
      const marks = cids.map((cid, i): [string, number] => [cid, seqs[i]!]);
      asked.push(marks);
      return Promise.resolve(
        marks.map(([cid, seq], i) => ({ ord: i + 1, seq: cid === 'held' && held ? null : seq })),
      );
    },
  } as unknown as Queryable;
  const delivery = new Delivery({
    db,
    receipt: ({ cid, lastDeliveredSeq }) => written.push([cid, lastDeliveredSeq!]),
    now: () => now,
    logger: createLogger('silent'),
  });
  const session = { user: { env: 1, no: 1, id: 'ann' }, delivered: undefined } as unknown as Session;
  const second = async (): Promise<void> => {
    delivery.tick();
    await new Promise((resolve) => setImmediate(resolve));
    now += 1_000;
  };
  delivery.add(session, [
    { cid: 'held', seq: 5 },
    { cid: 'free', seq: 7 },
  ]);
  await second();
  assert.deepEqual(written, [['free', 7]]);
  await second();
  delivery.add(session, [{ cid: 'held', seq: 6 }]);
  held = false;
  await second();
  await second();
  assert.deepEqual(written, [
    ['free', 7],
    ['held', 6],
  ]);
  assert.deepEqual(asked.slice(1), [[['held', 5]], [['held', 6]]]);
});
