import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { claim, enqueue, finish, untilDue } from '../../src/platform/jobs/sql/jobs.ts';
import type { Job } from '../../src/platform/jobs/sql/jobs.ts';
import { createWorker } from '../../src/platform/jobs/worker.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { seed } from '../../../../scripts/seed.ts';
import { seeded } from '../../../client/test/chaos/random.ts';
import { outsidePostgres } from '../core/tools.ts';
import type { OutsidePostgres } from '../core/tools.ts';
import { until } from '../start/npm-start.ts';
import { StandingTime } from '../support/time.ts';

let postgres: OutsidePostgres;
let db: PgDb;
before(async () => {
  postgres = await outsidePostgres();
  db = new PgDb(postgres.connection, { max: 8, onError: () => undefined });
  await migrate(postgres.connection);
});
after(async () => {
  await db.close();
  await postgres.dispose();
});

let queues = 0;
const newQueue = (width = 3) => ({ name: `q${++queues}`, width });
const jobs = (count: number, key: number) => Array.from({ length: count }, (_, ref) => ({ key, ref }));
const lease = 60_000;
const refs = (claimed: Job[]) => claimed.map((j) => j.ref).sort((a, b) => a! - b!);
const logger = createLogger('silent');

test('a job written in a transaction that fails does not exist', async () => {
  const queue = newQueue();
  await assert.rejects(
    db.tx(async (tx) => {
      await enqueue(tx, queue, jobs(1, 1));
      throw new Error('no');
    }),
  );
  assert.deepEqual(await claim(db, queue.name, 10, lease), []);
});

test('A lane runs as many at once as it is wide, whoever claims, and in order', async () => {
  const queue = newQueue(3);
  await enqueue(db, queue, jobs(10, 1));
  const claimed = (await Promise.all([1, 2, 3, 4].map(() => claim(db, queue.name, 10, lease)))).flat();
  assert.equal(claimed.length, 3);
  assert.equal(new Set(claimed.map((j) => j.no)).size, 3);
  assert.deepEqual(await claim(db, queue.name, 10, lease), []);
  await finish(db, queue.name, [{ job: claimed[0]!, runAt: null }]);
  assert.equal((await claim(db, queue.name, 10, lease)).length, 1);
});

test('Lanes take turns: a long one does not keep a short one waiting', async () => {
  const queue = newQueue(3);
  await enqueue(db, queue, jobs(100, 1));
  await enqueue(db, queue, jobs(1, 2));
  const first = await claim(db, queue.name, 2, lease);
  assert.deepEqual(first.map((j) => j.key).sort(), [1, 2]);
});

test('A lane can be made narrower and wider', async () => {
  const queue = newQueue(3);
  await enqueue(db, queue, jobs(10, 1));
  const held = await claim(db, queue.name, 10, lease);
  await finish(
    db,
    queue.name,
    held.map((job) => ({ job, runAt: null, width: 1 })),
  );
  const [one, ...none] = await claim(db, queue.name, 10, lease);
  assert.deepEqual(none, []);
  await finish(db, queue.name, [{ job: one!, runAt: null, width: 5 }]);
  const two = await claim(db, queue.name, 10, lease);
  assert.equal(two.length, 2, 'by one for each that went well');
  await finish(
    db,
    queue.name,
    two.map((job) => ({ job, runAt: null, width: 5 })),
  );
  assert.equal((await claim(db, queue.name, 10, lease)).length, 4);
});

test('A job whose worker died comes again when its lease ends, and the dead one’s end does not count', async () => {
  const queue = newQueue(1);
  await enqueue(db, queue, jobs(1, 1));
  const [dead] = await claim(db, queue.name, 1, 1);
  let again: Job | undefined;
  while (!again) [again] = await claim(db, queue.name, 1, lease);
  assert.equal(again.no, dead!.no);
  assert.equal(again.claims, 2);
  await finish(db, queue.name, [{ job: dead!, runAt: null }]);
  assert.equal((await db.query('SELECT 1 FROM jobs WHERE no = $1', [again.no])).length, 1);
  await finish(db, queue.name, [{ job: again, runAt: null }]);
  assert.equal((await db.query('SELECT 1 FROM jobs WHERE no = $1', [again.no])).length, 0);
});

test('Whatever happens to its jobs, a lane knows where they begin, and none is forgotten', async () => {
  const queue = newQueue(3);
  const random = seeded(seed('lanes'));
  const later = (ms: number) => new Date(Date.now() + random.int(2 * ms) - ms);
  let claimed: Job[] = [];
  for (let i = 0; i < 300; i++) {
    const what = random.next();
    if (what < 0.35) await enqueue(db, queue, jobs(1 + random.int(3), random.int(4)), later(50));
    // Some leases end before their jobs do.
    else if (what < 0.7) claimed.push(...(await claim(db, queue.name, 5, random.chance(0.3) ? 5 : lease)));
    else {
      const [ended, left] = [claimed.filter((_, n) => n % 2 === 0), claimed.filter((_, n) => n % 2 === 1)];
      claimed = left;
      const settled = ended.map((job) => ({ job, runAt: random.chance(0.5) ? null : later(100), width: 3 }));
      if (settled.length > 0) await finish(db, queue.name, settled);
    }
    const missed = await db.query(
      `SELECT 1 FROM jobs j JOIN job_lanes l USING (queue, key)
       WHERE j.queue = $1 AND (j.run_at < l.first_at OR j.leased AND j.run_at < l.first_leased_at)`,
      [queue.name],
    );
    assert.deepEqual(missed, [], `after step ${i}`);
  }
  await finish(
    db,
    queue.name,
    claimed.map((job) => ({ job, runAt: null })),
  );
  await until(async () => {
    const rest = await claim(db, queue.name, 50, lease);
    await finish(
      db,
      queue.name,
      rest.map((job) => ({ job, runAt: null })),
    );
    return (await db.query('SELECT 1 FROM jobs WHERE queue = $1', [queue.name])).length === 0;
  });
});

test('A job put off runs then and not before', async () => {
  const queue = newQueue(1);
  await enqueue(db, queue, jobs(1, 1), new Date(Date.now() + 3_600_000));
  assert.deepEqual(await claim(db, queue.name, 1, lease), []);
  assert.equal(await untilDue(db, queue.name, 1_000), 1_000);
  await db.query(`UPDATE job_lanes SET next_at = now() WHERE queue = $1`, [queue.name]);
  assert.deepEqual(await claim(db, queue.name, 1, lease), [], 'a lane that looks due without a due job');
  assert.equal(await untilDue(db, queue.name, 1_000), 1_000);
});

test('Several workers share a queue: every job is done once, its result written with its end', async () => {
  const queue = newQueue(5);
  await db.query('CREATE TABLE done (ref bigint)');
  const count = 300;
  for (let key = 0; key < 3; key++)
    await enqueue(
      db,
      queue,
      Array.from({ length: 100 }, (_, i) => ({ key, ref: key * 100 + i })),
    );
  let ended!: () => void;
  const end = new Promise<void>((resolve) => (ended = resolve));
  let finished = 0;
  let most = 0;
  let running = 0;
  const workers = [1, 2].map(() =>
    createWorker<{ runAt: null; ref: number }>({
      db,
      logger,
      queue: queue.name,
      slots: 50,
      leaseMs: lease,
      run: (claimed) =>
        Promise.resolve(
          claimed.map(async (job) => {
            most = Math.max(most, ++running);
            await new Promise(setImmediate);
            running--;
            return { runAt: null, ref: job.ref! };
          }),
        ),
      record: async (tx, outcomes) => {
        await tx.query('INSERT INTO done SELECT unnest($1::bigint[])', [outcomes.map((o) => o.ref)]);
        tx.afterCommit(() => {
          finished += outcomes.length;
          if (finished >= count) ended();
        });
      },
    }),
  );
  for (const worker of workers) worker.start();
  await end;
  await Promise.all(workers.map((w) => w.stop()));
  const rows = await db.query<{ ref: number }>('SELECT ref FROM done ORDER BY ref');
  assert.deepEqual(
    rows.map((r) => r.ref),
    Array.from({ length: count }, (_, i) => i),
  );
  assert.ok(most <= 15, `${most} at once in three lanes of five`);
  assert.deepEqual(await db.query('SELECT 1 FROM jobs WHERE queue = $1', [queue.name]), []);
});

test('A worker that stops aborts what does not end, and the job is there for the next', async () => {
  const queue = newQueue(1);
  await enqueue(db, queue, jobs(1, 1));
  let begun!: () => void;
  const started = new Promise<void>((resolve) => (begun = resolve));
  const worker = createWorker({
    db,
    logger,
    queue: queue.name,
    slots: 1,
    leaseMs: lease,
    graceMs: 0,
    run: (claimed, signal) =>
      Promise.resolve(
        claimed.map(async () => {
          begun();
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          return { runAt: new Date() };
        }),
      ),
  });
  worker.start();
  await started;
  await worker.stop();
  assert.deepEqual(refs(await claim(db, queue.name, 1, lease)), [0]);
});

/** A process that stood still for longer than a lease, or was cut off from the store, comes back with what it found out. */
test('The result of a job that another worker has taken since is not written, and its neighbours’ are', async () => {
  const queue = newQueue(2);
  await enqueue(db, queue, jobs(2, 1));
  const releases: (() => void)[] = [];
  const written: number[] = [];
  const worker = createWorker<{ runAt: null; ref: number }>({
    db,
    logger,
    queue: queue.name,
    slots: 2,
    leaseMs: lease,
    run: (batch) =>
      Promise.resolve(
        batch.map(async (job) => {
          await new Promise<void>((resolve) => releases.push(resolve));
          return { runAt: null, ref: job.ref! };
        }),
      ),
    record: (_, outcomes) => {
      written.push(...outcomes.map((o) => o.ref));
      return Promise.resolve();
    },
  });
  worker.start();
  try {
    await until(() => releases.length === 2);
    await db.query(`UPDATE jobs SET run_at = now() - interval '1 second' WHERE queue = $1 AND ref = 0`, [
      queue.name,
    ]);
    await db.query(
      `UPDATE job_lanes SET next_at = '-infinity', first_at = '-infinity', first_leased_at = '-infinity' WHERE queue = $1`,
      [queue.name],
    );
    const [taken] = await claim(db, queue.name, 1, lease);
    assert.equal(taken!.ref, 0);
    for (const release of releases) release();
    await until(() => worker.active === 0);
    assert.deepEqual(written, [1]);
    await finish(db, queue.name, [{ job: taken!, runAt: null }]);
    assert.deepEqual(await db.query('SELECT 1 FROM jobs WHERE queue = $1', [queue.name]), []);
  } finally {
    await worker.stop();
  }
});

test('The lease of a job that is under way is renewed; that of another worker’s claim is not', async () => {
  const queue = newQueue(1);
  await enqueue(db, queue, jobs(2, 1));
  const time = new StandingTime();
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  const worker = createWorker({
    db,
    logger,
    queue: queue.name,
    slots: 1,
    leaseMs: 9_000,
    timers: time.timers,
    run: (batch) => Promise.resolve(batch.map(() => released.then(() => ({ runAt: null })))),
  });
  const leased = async () =>
    (
      await db.query<{ left: number; claims: number }>(
        `SELECT (extract(epoch FROM run_at - clock_timestamp()) * 1000)::float8 AS left, claims FROM jobs
         WHERE queue = $1 AND leased`,
        [queue.name],
      )
    )[0];
  const shorten = () =>
    db.query(`UPDATE jobs SET run_at = run_at - interval '1 hour' WHERE queue = $1 AND leased`, [queue.name]);
  worker.start();
  try {
    await until(async () => (await leased()) !== undefined);
    await shorten();
    time.advance(9_000);
    await until(async () => (await leased())!.left > 0);
    assert.deepEqual(await claim(db, queue.name, 10, lease), [], 'the lane is full');
    // The worker was frozen for longer than its lease, and another one took the job.
    await shorten();
    await db.query(
      `UPDATE job_lanes SET next_at = '-infinity', first_at = '-infinity', first_leased_at = '-infinity' WHERE queue = $1`,
      [queue.name],
    );
    const [taken] = await claim(db, queue.name, 1, lease);
    assert.equal(taken!.claims, 2);
    time.advance(9_000);
    release();
    await until(() => worker.active === 0);
    const { left, claims } = (await leased())!;
    assert.equal(claims, 2);
    assert.ok(left > 30_000, 'it has the lease of who took it');
  } finally {
    release();
    await worker.stop();
  }
});
