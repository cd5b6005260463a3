import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createRecorder } from '../../src/features/logs/recorder.ts';
import type { LogRow } from '../../src/features/logs/rows.ts';
import { createLogger } from '../../src/platform/logging.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';

/** The request log is bounded: what it leaves out it still counts, and it survives a store that is away. */

function start() {
  const clock = { at: 1_700_000_000_000, now: () => clock.at, monotonic: () => clock.at };
  const store = {
    away: false,
    rows: [] as { env: number; failed: boolean }[],
    requests: new Map<number, number>(),
  };
  const db = {
    query: (text: string, values: unknown[][]) => {
      if (store.away) return Promise.reject(new Error('away'));
      if (text.includes('INTO request_log'))
        store.rows.push(...(JSON.parse(String(values[0])) as { env: number; failed: boolean }[]));
      if (text.includes('INTO activity'))
        values[0]!.forEach((env, i) => {
          const sum = (store.requests.get(env as number) ?? 0) + (values[3]![i] as number);
          store.requests.set(env as number, sum);
        });
      return Promise.resolve([]);
    },
  } as unknown as Queryable;
  const recorder = createRecorder({ db, clock, logger: createLogger('silent') });
  const add = (env: number, failed: boolean, times: number): void => {
    const row: LogRow = { env, at: clock.at, kind: 'request', failed, ms: 1, status: failed ? 400 : 200 };
    for (let i = 0; i < times; i++) recorder.add(row);
  };
  const kept = (env: number, failed: boolean): number =>
    store.rows.filter((r) => r.env === env && r.failed === failed).length;
  return { clock, store, recorder, add, kept };
}

describe('the bounds of the request log', () => {
  it('keeps 200 successes and 500 failures of an environment and second, and counts all', async () => {
    const { clock, store, recorder, add, kept } = start();
    add(1, false, 1_000);
    add(1, true, 1_000);
    add(2, false, 3);
    await recorder.flush();
    assert.deepEqual([kept(1, false), kept(1, true), kept(2, false)], [200, 500, 3]);
    clock.at += 1_000;
    add(1, false, 250);
    await recorder.flush();
    assert.equal(kept(1, false), 400);
    assert.equal(store.requests.get(1), 2_250);
  });

  it('keeps 500 successes of all environments in a second, an even share of each, and every failure', async () => {
    const { clock, store, recorder, add, kept } = start();
    const second = async (): Promise<number[]> => {
      store.rows.length = 0;
      for (const env of [1, 2, 3, 4]) add(env, false, 500);
      add(5, false, 10);
      add(1, true, 400);
      await recorder.flush();
      clock.at += 1_000;
      assert.equal(kept(1, true), 400);
      return [1, 2, 3, 4, 5].map((env) => kept(env, false));
    };
    assert.deepEqual(await second(), [200, 200, 200, 200, 10], 'it is not known yet how many there are');
    assert.deepEqual(await second(), [200, 200, 100, 100, 10], 'whoever comes late has its share');
    assert.equal(store.requests.get(1), 1_800);
  });

  it('while the store is away rows wait up to a bound, of one environment and of all, and counts are not lost', async () => {
    const { clock, store, recorder, add, kept } = start();
    store.away = true;
    const seconds = async (times: number, envs: readonly number[], failures: number): Promise<void> => {
      for (let i = 0; i < times; i++) {
        for (const env of envs) add(env, true, failures);
        clock.at += 1_000;
        await assert.rejects(recorder.flush());
      }
    };
    await seconds(12, [1], 500);
    await seconds(12, [2, 3, 4, 5], 400);
    store.away = false;
    await recorder.flush();
    assert.equal(kept(1, true), 5_000);
    const others = [2, 3, 4, 5].reduce((sum, env) => sum + kept(env, true), 0);
    assert.equal(others, 15_000, 'the others have what is left');
    assert.deepEqual([...store.requests].sort(), [
      [1, 6_000],
      [2, 4_800],
      [3, 4_800],
      [4, 4_800],
      [5, 4_800],
    ]);
  });
});
