import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReportService } from '../../src/features/reports/service.ts';

/** reports#lists: what word lists report waits by environment. */

test('reports#lists: an environment whose reports are not made loses its own, and no other waits for them', async () => {
  const hangs = Promise.withResolvers<void>();
  let made = 0;
  const lost: unknown[] = [];
  const service = createReportService({
    db: { tx: () => (made++ === 0 ? hangs.promise : Promise.resolve()) },
    logger: { error: (fields: object) => lost.push(fields) },
  } as unknown as Parameters<typeof createReportService>[0]);
  const found = (no: number): void =>
    service.found({ no, settings: { disabledFeatures: [] } } as never, {} as never);
  // One is being made, 500 wait.
  for (let i = 0; i < 503; i++) found(1);
  assert.deepEqual(lost, [{ env: 1 }, { env: 1 }]);
  found(2);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(made, 2, 'that of the other environment');
  hangs.resolve();
  await service.idle();
  assert.equal(made, 502);
});
