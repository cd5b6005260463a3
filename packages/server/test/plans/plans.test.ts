import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { startEmbeddedPostgres } from '../../src/platform/postgres/embedded/index.ts';
import { owner } from '../accounts/dashboard.ts';
import { startInProcess } from '../cluster/in-process.ts';
import { setUp, use } from '../support/use.ts';
import { exercise } from './exercise.ts';
import { fill } from './fill.ts';
import { createJudge, explain, oneLine, plansIn, sourceStatements } from './walk.ts';

/**
 * No statement reads a large table whole, whatever the statistics say: a plan that flips is felt by every tenant. Plans are
 * generic (`force_generic_plan`), so one run of a statement shows the plan of all.
 */

const filled = 'plans';
const fresh = 'plans_fresh';
const masterKey = randomBytes(32).toString('base64');

const postgres = use(
  async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'parley-plans-'));
    const server = await startEmbeddedPostgres({
      dataDir,
      log: () => undefined,
      settings: {
        autovacuum: 'off',
        fsync: 'off',
        log_line_prefix: '',
        logging_collector: 'on',
        log_filename: 'plans.log',
        session_preload_libraries: 'auto_explain',
        'auto_explain.log_format': 'json',
        'auto_explain.log_nested_statements': 'on',
      },
    });
    const open = (database: string) =>
      new PgDb(
        { ...server.connection, database },
        { max: 4, onError: () => undefined, settings: { statement_timeout: '600000' } },
      );
    const run = async (database: string, sql: string): Promise<void> => {
      const db = open(database);
      await db.query(sql).finally(() => db.close());
    };
    return { ...server, dataDir, open, run };
  },
  async ({ dataDir, stop }) => {
    await stop();
    await rm(dataDir, { recursive: true, force: true });
  },
);
const settings = (database: string) => ({
  DATABASE_URL: `postgresql://${postgres.connection.user}@localhost/${database}?host=${encodeURIComponent(postgres.connection.host)}`,
  CHAT_DATA_DIR: postgres.dataDir,
  CHAT_MASTER_KEY: masterKey,
  CHAT_ALLOW_PRIVATE_TARGETS: 'true',
  CHAT_BOOTSTRAP_EMAIL: owner.email,
  CHAT_BOOTSTRAP_PASSWORD: owner.password,
});

const readLog = () => readFile(join(postgres.dataDir, 'postgres/log/plans.log'), 'utf8');

setUp(async () => {
  await postgres.run('postgres', `CREATE DATABASE ${filled}`);
  // The first start makes the tables and the environments.
  await (await startInProcess(settings(filled), 1))[0]!.stop();
  await postgres.run('postgres', `CREATE DATABASE ${fresh} TEMPLATE ${filled}`);
  await postgres.run(fresh, `INSERT INTO organizations (id, name) VALUES ('org_plans', 'plans')`);
  const db = postgres.open(filled);
  await fill(db);
  await db.close();
});

/** Statements that may read a large table whole. */
const allowed: [text: RegExp, why: string][] = [
  [
    /^SELECT e\.id AS "environmentId", x\.slot, x\.type/,
    'The operator lists the slots of all environments, by hand.',
  ],
  [
    /^WITH gone AS \(DELETE FROM events /,
    'Through the index on (env + 0, created_at), by both: only what is past its time, and that is removed.',
  ],
  [
    /^WITH empty AS MATERIALIZED \(\s+SELECT queue, key FROM job_lanes/,
    'Once a minute: lanes without a job go after an hour, so there are few of them beside the jobs.',
  ],
  [
    /FROM activity_notes n LIMIT p_most/,
    'A queue: the first that are found, in any order, and then they are removed.',
  ],
  [/FROM store_marks m ORDER BY m\.at DESC LIMIT 1/, 'The newest, which the index begins with.'],
  [
    /sum\(message_count\).* FROM conversations WHERE env = \$1/,
    'Once, when an environment’s storage is switched.',
  ],
  [
    /FROM call_participants p JOIN users/,
    'Both indexes hold the call; the wrong one is taken only while the statistics are of an almost empty table.',
  ],
  [/FROM audit a JOIN organizations/, 'Newest first until the page is full, of what administrators did.'],
];

/** Put together from parts, and not run by exercise.ts. */
const notRun: [text: RegExp, why: string][] = [
  [/ FROM \$\{rows\} r/, 'The rows of a commit, for one consumer of the log.'],
  [/^WITH later AS \( UPDATE outbox/, 'One row by its number, when a consumer fails.'],
  [/^WITH noted AS \( INSERT INTO outbox/, 'The row of one environment, by its number.'],
  [
    /unnest\(\$1::int\[\], \$2::text\[\]\) w\(env, id\) CROSS JOIN LATERAL/,
    'Messages one by one, by their id.',
  ],
  [/AND m\.seq = \$3 \$\{joined\} WHERE x\.env = \$1 AND x\.id = \$2/, 'One message by its place.'],
  [/^SELECT l\.at, l\.no FROM request_log l .* OFFSET/, 'As the list of the log, which runs.'],
  [/^UPDATE calls SET unhosted_since/, 'One call by its number.'],
];
/** Statements that may be missing from both until somebody lets exercise.ts run them. */
const mostUnknown = 7;

const why = (text: string): string | undefined => allowed.find(([form]) => form.test(text))?.[1];

for (const [name, template, prepare] of [
  ['misleading statistics', filled, ['ANALYZE']],
  ['no statistics', filled, []],
  // A plan that was made in the first seconds of a store is kept while that grows.
  ['empty tables', fresh, []],
] as const)
  test(`with ${name} no statement reads a large table whole`, async (t) => {
    const database = `plans_${name.split(' ')[0]}`;
    await postgres.run('postgres', `CREATE DATABASE ${database} TEMPLATE ${template}`);
    for (const sql of prepare) await postgres.run(database, sql);
    await postgres.run(database, `ALTER DATABASE ${database} SET auto_explain.log_min_duration = 0`);
    const env = settings(database);
    const before = (await readLog()).length;
    const db = postgres.open(database);
    const [node] = await startInProcess(env, 1);
    try {
      await exercise(node!, db, env);
    } finally {
      await node!.stop();
    }
    const end = `SELECT 'the end of ${database}'`;
    await db.query(end);
    let log = '';
    while (!log.includes(end)) log = (await readLog()).slice(before);
    const ran = plansIn(log);
    const texts = [...new Set(ran.map((one) => oneLine(one.text)))];
    const judge = await createJudge(db);
    const statements = await sourceStatements();
    const unknown: string[] = [];
    const client = await db.pool.connect();
    for (const { file, text, isIn } of statements) {
      if (texts.some(isIn)) continue;
      const plan = await explain(client, text);
      if (plan) ran.push({ text, plan });
      else if (!notRun.some(([form]) => form.test(text))) unknown.push(`${file}: ${text}`);
    }
    client.release();
    await db.close();
    assert.ok(ran.length > statements.length, `${ran.length} plans of ${statements.length} statements`);
    const wrong = new Map<string, string[]>();
    for (const { text, plan } of ran) {
      const found = judge(plan);
      if (found.length > 0 && !why(text)) wrong.set(text.replaceAll(/\s+/g, ' '), found);
    }
    assert.deepEqual([...wrong], []);
    for (const text of unknown) t.diagnostic(`ran nowhere here, and is no whole statement: ${text}`);
    assert.ok(unknown.length <= mostUnknown, `let exercise.ts run these:\n${unknown.join('\n')}`);
  });
