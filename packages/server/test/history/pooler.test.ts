import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checks } from '../../src/platform/history/conformance.ts';
import { migrateHistory, openHistory } from '../../src/platform/history/open.ts';
import { use } from '../support/use.ts';
import { startCustomerPostgres, startPgbouncer } from './servers.ts';
import { depsOf } from './world.ts';

/** docs/storage.md, PgBouncer: a customer's PostgreSQL behind a pooler. */

let made = 0;

for (const mode of ['transaction', 'session'] as const)
  describe(`docs/storage.md: PostgreSQL behind PgBouncer, pool_mode ${mode}`, () => {
    const postgres = use(startCustomerPostgres, (it) => it.stop());
    const pooler = use(
      async () => startPgbouncer(await postgres.createDatabase(), mode),
      (it) => it.stop(),
    );

    test('tables are made and everything works with a user that the pooler knows', async () => {
      const { runtimeUrl } = await migrateHistory({ url: pooler.url }, depsOf('env_a'));
      assert.ok(runtimeUrl);
      const history = await openHistory({ url: pooler.url }, depsOf('env_a'));
      try {
        const report = await history.test();
        assert.equal(report.ok, true, report.errors.join(' '));
        for (const check of checks) await check.run(history, (what) => `${what}_${++made}`);
      } finally {
        await history.close();
      }
    });

    test('a user that the pooler does not know is told as such', async () => {
      const { runtimeUrl } = await migrateHistory({ url: pooler.url }, depsOf('env_a'));
      const history = await openHistory({ url: runtimeUrl! }, depsOf('env_a'));
      try {
        const { ok, errors } = await history.test();
        assert.equal(ok, false);
        assert.match(
          errors[0]!,
          /refused the user or the password.*: a pooler \(PgBouncer\) stands before it and does not know them/,
        );
      } finally {
        await history.close();
      }
    });
  });
