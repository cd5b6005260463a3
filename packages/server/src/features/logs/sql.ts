import { limits } from '@parley/protocol';
import type { ActivityStep, LogEntry } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { oneRow } from '../../platform/postgres/rows.ts';
import { conversationOf } from '../sql/lookups.ts';
import { activityNames } from './rows.ts';
import type { Counts, LogRow } from './rows.ts';

const insertion = `INSERT INTO request_log (env, at, kind, failed, request_id, method, operation, status, code, ms, caller, caller_id,
    usr, address, session, webhook, delivery)
  SELECT env, to_timestamp(at / 1000), kind, failed, "requestId", method, operation, status, code, greatest(0, floor(ms + 0.5)), caller,
    "callerId", "user", left(address, 64), session, webhook, delivery
  FROM json_to_recordset($1::json) AS r(env int, at float8, kind text, failed bool, "requestId" text, method text, operation text,
    status int, code text, ms float8, caller text, "callerId" text, "user" bigint, address text, session text, webhook text,
    delivery text)`;

export const insertRows = (db: Queryable, rows: readonly LogRow[]) =>
  db.query(insertion, [JSON.stringify(rows)]);

/** Creates the partitions of the days around `now`, and drops expired ones. */
export const keepPartitions = (db: Queryable, now: number) =>
  db.query('SELECT keep_request_log($1, $2)', [new Date(now), limits.requestLogDays]);

const sums = activityNames.map((name) => `${name} = a.${name} + excluded.${name}`).join(', ');
const arrays = activityNames.map((_, i) => `$${i + 3}::bigint[]`).join(', ');

/** Rows are written in the order of their keys, so that two processes that add to the same ones cannot deadlock. */
export async function addActivity(
  db: Queryable,
  rows: readonly { env: number; step: number; counts: Counts }[],
): Promise<void> {
  const sorted = [...rows].sort((a, b) => a.env - b.env || a.step - b.step);
  await db.query(
    `INSERT INTO activity AS a (env, at, ${activityNames.join(', ')})
     SELECT * FROM unnest($1::int[], $2::timestamptz[], ${arrays})
     ON CONFLICT (env, at) DO UPDATE SET ${sums}`,
    [
      sorted.map((r) => r.env),
      sorted.map((r) => new Date(r.step)),
      ...activityNames.map((name) => sorted.map((r) => r.counts[name])),
    ],
  );
}

export interface Place {
  at: string;
  no: number;
}

export interface Asked {
  env: number;
  /** Only rows before this one, and in this range of time. */
  before: Place | null;
  from: string | null;
  to: string | null;
  /** Conditions that an index answers. */
  failed: boolean;
  user: number | null;
  /** Looked for among rows from around the time that the id contains. */
  requestId: { id: string; at: number } | null;
  /** Conditions that are checked row by row. */
  where: [condition: string, value: unknown][];
}

/** How many rows one call looks through at most. */
const looked = 20_000;

export type Row = Omit<LogEntry, 'id'> & { no: number };

/**
 * Milliseconds before and after that time in which the row is looked for: a request is recorded when it is answered,
 * and none takes longer. Clocks may be set back meanwhile.
 */
const [beforeMs, afterMs] = [60_000, 1_200_000];

/** The rows that an index finds: those of the environment, or only its failed ones, or only those of a user. */
function base(asked: Asked): { text: string; values: unknown[] } {
  const values: unknown[] = [asked.env];
  const add = (value: unknown): string => `$${values.push(value)}`;
  let text = 'l.env = $1';
  if (asked.before) {
    const at = add(asked.before.at);
    text += ` AND l.at <= ${at} AND (l.at, l.no) < (${at}, ${add(asked.before.no)})`;
  }
  if (asked.from !== null) text += ` AND l.at >= ${add(asked.from)}`;
  if (asked.to !== null) text += ` AND l.at < ${add(asked.to)}`;
  if (asked.failed) text += ' AND l.failed';
  if (asked.user !== null) text += ` AND l.usr = ${add(asked.user)}`;
  if (asked.requestId !== null) {
    const { id, at } = asked.requestId;
    text += ` AND l.request_id = ${add(id)} AND l.at >= ${add(new Date(at - beforeMs))} AND l.at < ${add(new Date(at + afterMs))}`;
  }
  return { text, values };
}

const shown = `l.no, l.at, l.kind, l.request_id AS "requestId", l.method, l.operation, l.status, l.code, l.ms AS "durationMs",
       l.caller, l.caller_id AS "callerId", nullif(k.name, '') AS "keyName", u.id AS "userId", l.address, l.session AS "sessionId", l.webhook AS "webhookId",
       l.delivery AS "deliveryId"`;
const newestFirst = 'ORDER BY l.at DESC, l.no DESC';

export async function listRows(db: Queryable, asked: Asked, limit: number): Promise<Row[]> {
  const { text, values } = base(asked);
  const conditions = asked.where.map(([condition, value]) =>
    condition.replace('$', `$${values.push(value)}`),
  );
  const size = `$${values.push(limit)}`;
  return db.query<Row>(
    `SELECT ${shown}
     FROM (SELECT * FROM (SELECT * FROM request_log l WHERE ${text} ${newestFirst} LIMIT ${looked}) l
       ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`} ${newestFirst} LIMIT ${size}) l
     LEFT JOIN users u ON u.env = l.env AND u.no = l.usr
     LEFT JOIN secret_keys k ON k.env = l.env AND k.id = l.caller_id ${newestFirst}`,
    values,
  );
}

/** The last row that the call above looked at, if it did not look at all of them. */
export async function lastLooked(db: Queryable, asked: Asked): Promise<Place | undefined> {
  const { text, values } = base(asked);
  const [row] = await db.query<Place>(
    `SELECT l.at, l.no FROM request_log l WHERE ${text} ${newestFirst} OFFSET ${looked - 1} LIMIT 1`,
    values,
  );
  return row;
}

/** Counts per minute, from the given minute on; minutes without activity are missing. */
export const activityByMinute = (db: Queryable, env: number, from: Date): Promise<ActivityStep[]> =>
  db.query<ActivityStep>(
    `SELECT date_trunc('minute', at) AS t, sum(messages)::bigint AS messages, sum(requests)::bigint AS requests,
       sum(errors)::bigint AS errors, sum(server_errors)::bigint AS "serverErrors", sum(socket_errors)::bigint AS "socketErrors",
       sum(webhooks_ok)::bigint AS "webhooksSucceeded", sum(webhooks_failed)::bigint AS "webhooksFailed"
     FROM activity WHERE env = $1 AND at >= $2 GROUP BY 1 ORDER BY 1`,
    [env, from],
  );

export const activityBetween = (db: Queryable, env: number, from: Date, to: Date) =>
  oneRow<{ messages: number; requests: number; errors: number }>(
    db,
    `SELECT coalesce(sum(messages), 0)::bigint AS messages, coalesce(sum(requests), 0)::bigint AS requests,
       coalesce(sum(errors + socket_errors), 0)::bigint AS errors
     FROM activity WHERE env = $1 AND at >= $2 AND at < $3`,
    [env, from, to],
  );

/** Pending deliveries are counted up to this many. */
const mostPending = 10_000;

export const webhookHealth = (db: Queryable, env: number) =>
  oneRow<{ endpoints: number; disabled: number; failing: number; pending: number }>(
    db,
    `SELECT count(*) AS endpoints, count(*) FILTER (WHERE w.status = 'disabled') AS disabled,
       count(*) FILTER (WHERE w.status = 'enabled' AND w.failing_since IS NOT NULL) AS failing,
       least(coalesce(sum(j.n), 0), ${mostPending})::bigint AS pending
     FROM webhook_endpoints w CROSS JOIN LATERAL (
       SELECT count(*) AS n FROM (SELECT 1 FROM jobs WHERE queue = 'webhook' AND key = w.no LIMIT ${mostPending}) x) j
     WHERE w.env = $1`,
    [env],
  );

/**
 * What exists already, for people who are just beginning. It is looked for around the first users, which is cheap
 * however many follow.
 */
export const beginnings = (db: Queryable, env: number) =>
  oneRow<{ users: boolean; conversations: boolean; messages: boolean }>(
    db,
    `SELECT count(*) > 0 AS users, count(c.no) > 0 AS conversations, count(*) FILTER (WHERE c.message_count > 0) > 0 AS messages
     FROM (SELECT no FROM users WHERE env = $1 ORDER BY id LIMIT 50) u
     LEFT JOIN LATERAL (SELECT conv FROM members WHERE env + 0 = $1 AND usr = u.no LIMIT 5) m ON true
     LEFT JOIN ${conversationOf('$1', 'm.conv')} c ON true`,
    [env],
  );
