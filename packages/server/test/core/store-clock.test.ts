import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '@parley/protocol';
import { createStoreClock } from '../../src/log/store-clock.ts';
import type { Logger } from '../../src/platform/logging.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';

const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
const silent = { warn: () => undefined, error: () => undefined } as unknown as Logger;

/** A store whose first answers are these errors. */
function clockOf(...errors: Error[]) {
  const query = (): Promise<unknown> => {
    const error = errors.shift();
    return error ? Promise.reject(error) : Promise.resolve([{ mark: '1', epoch: 'first' }]);
  };
  return createStoreClock({
    db: { query } as unknown as Queryable,
    logger: silent,
    onRestored: () => assert.fail('nothing was restored'),
  });
}

test('a store that goes away while the service starts is waited for', async () => {
  const clock = clockOf(refused, new ApiError('service_unavailable'));
  await clock.start();
  assert.equal(clock.epoch(), 'first');
  await clock.stop();
});

test('a store that answers with another error ends the start', async () => {
  await assert.rejects(clockOf(new Error('no such function')).start(), /no such function/);
});
