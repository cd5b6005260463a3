import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOutbox } from '../../src/platform/jobs/outbox.ts';
import { createWorkSignal } from '../../src/platform/jobs/wake.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { outsidePostgres } from '../core/tools.ts';

const note = `INSERT INTO outbox (id, env, type, key, seq, created_at, due_at)
  VALUES ('evt_1', 1, 'message.read', 'one member', $1, now(), now() + $2::interval)
  ON CONFLICT (env, key) WHERE key IS NOT NULL DO UPDATE SET seq = excluded.seq`;

test('receipts#read-webhook, message.read: a consumer that hangs with a row holds up nobody who notes the next change', async () => {
  const postgres = await outsidePostgres();
  const db = new PgDb(postgres.connection, {
    max: 4,
    onError: () => undefined,
    settings: { lock_timeout: '0' },
  });
  await migrate(postgres.connection);
  const logger = createLogger('silent');
  let hanging!: (seqs: unknown[]) => void;
  const taken = new Promise<unknown[]>((resolve) => (hanging = resolve));
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  const outbox = createOutbox({
    consumers: [
      {
        name: 'hanging',
        bit: 1,
        db,
        take: (_tx, rows) => {
          hanging(rows.map((r) => r.seq));
          return released;
        },
      },
    ],
    work: createWorkSignal({ db, connection: postgres.connection, logger }),
    logger,
    pollMs: 20,
  });
  try {
    await db.query(note, [1, '1 hour']);
    await db.query(note, [2, '1 hour']);
    await db.query(`UPDATE outbox SET due_at = now()`);
    outbox.start();
    assert.deepEqual(await taken, [2], 'two changes within the time are told once');
    await db.query(note, [3, '1 hour']);
    await db.query(note, [4, '1 hour']);
    const rows = await db.query('SELECT seq FROM outbox WHERE key IS NOT NULL');
    assert.deepEqual(rows, [{ seq: 4 }], 'the changes after it wait for their own time');
  } finally {
    release();
    await outbox.stop();
    await db.close();
    await postgres.dispose();
  }
});
