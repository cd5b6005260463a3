import type { ReportAction, ReportCase, ReportEntry, ReportStatus, ReportTarget } from '@parley/protocol';
import type { Queryable, Tx } from '../../platform/postgres/db.ts';
import { anyRow, firstRow, firstValue, oneRow } from '../../platform/postgres/rows.ts';

/**
 * Reports of one target are made and closed only while `lockTarget` holds it, so all reports with one head have the same
 * status. Rows are locked after users, conversations and messages, never before.
 */

/** What a report is about: a user's number, or a conversation's; `seq` is 0 unless it is about a message. */
export interface Target {
  kind: ReportTarget['kind'];
  target: number;
  seq: number;
  messageId: string | null;
  /** The user, or who wrote the message. */
  user: number | null;
}

/** Who reports, if it is no user. */
export const reporters = { server: 0, list: -1 } as const;

const ofTarget = 'env = $1 AND target = $2 AND seq = $3 AND kind = $4';
const place = (env: number, { target, seq, kind }: Target): unknown[] => [env, target, seq, kind];

/** Milliseconds; after that it is service_unavailable. */
const waitMs = 5_000;

/** Until the transaction ends, nobody else reports this target or decides about it. */
export async function lockTarget(tx: Tx, env: number, { kind, target, seq }: Target): Promise<void> {
  await tx.query(
    `WITH waiting AS MATERIALIZED (SELECT set_config('lock_timeout', '${waitMs}', true))
     SELECT pg_advisory_xact_lock(hashtextextended($1, 0)) FROM waiting`,
    [`report ${env} ${kind} ${target} ${seq}`],
  );
}

/** Those of the users who exist. They are not erased before the transaction ends. */
export async function holdUsers(tx: Tx, env: number, users: readonly number[]): Promise<Set<number>> {
  const rows = await tx.query<{ no: number }>(
    'SELECT no FROM users WHERE env = $1 AND no = ANY($2) AND erased_at IS NULL ORDER BY no FOR SHARE',
    [env, users],
  );
  return new Set(rows.map(({ no }) => no));
}

/** As firmly as a silence does: whoever joins holds the user, too, and then waits for the conversation. */
export async function lockUser(tx: Tx, env: number, user: number): Promise<void> {
  await tx.query('SELECT 1 FROM users WHERE env = $1 AND no = $2 FOR UPDATE', [env, user]);
}

/** Whether the message is there. It is not deleted for good before the transaction ends. */
export const holdMessage = (tx: Tx, env: number, { target, seq }: Target): Promise<boolean> =>
  anyRow(tx, 'SELECT 1 FROM messages WHERE env = $1 AND conv = $2 AND seq = $3 AND NOT hard FOR SHARE', [
    env,
    target,
    seq,
  ]);

/** The conversation's present id. */
export const conversationId = (db: Queryable, env: number, conv: number): Promise<string | undefined> =>
  firstValue(db, 'SELECT id FROM conversations WHERE no = $2 AND env = $1', [env, conv]);

/** The open report of this reporter about the target. */
export const ownReport = (tx: Tx, env: number, target: Target, reporter: number) =>
  firstValue<string>(
    tx,
    `SELECT id FROM reports WHERE ${ofTarget} AND reporter = $5 AND status = 'open' LIMIT 1`,
    [...place(env, target), reporter],
  );

/** Whether a word list reported this version of the message, at any time. */
export const listReported = (tx: Tx, env: number, target: Target, version: number): Promise<boolean> =>
  anyRow(
    tx,
    'SELECT 1 FROM reports WHERE env = $1 AND target = $2 AND seq = $3 AND kind = $4 AND reporter = $5 AND version = $6 LIMIT 1',
    [...place(env, target), reporters.list, version],
  );

interface NewReport {
  id: string;
  target: Target;
  reporter: number;
  reason: ReportEntry['reason'];
  note: string | null;
  version: number;
  snapshot: Buffer | null;
}

/** Joins the reports of the target that are open, or begins anew. */
export async function insertReport(tx: Tx, env: number, report: NewReport): Promise<void> {
  const { id, target, reporter, reason, note, version, snapshot } = report;
  await tx.query(
    `INSERT INTO reports (env, target, seq, kind, id, head, reporter, message_id, version, usr, reason, note, snapshot, status, at)
     SELECT $1, $2, $3, $4, $5, coalesce((SELECT head FROM reports WHERE ${ofTarget} AND status = 'open' LIMIT 1), $5),
       $6, $7, $8, $9, $10, $11, $12, 'open', clock_timestamp()`,
    [...place(env, target), id, reporter, target.messageId, version, target.user, reason, note, snapshot],
  );
}

/** Reports that are, or were, open together. */
export interface Case extends Target {
  head: string;
  status: ReportStatus;
  /** The id of the conversation, and of the user, as they are now. */
  conversationId: string | null;
  conversationType: 'direct' | 'group' | null;
  userId: string | null;
}

const caseColumns = `r.head, r.kind, r.target, r.seq, r.message_id AS "messageId", r.usr AS "user", r.status,
  c.id AS "conversationId", c.type AS "conversationType", u.id AS "userId"`;
const caseSource = `LEFT JOIN LATERAL (
    SELECT id, type FROM conversations WHERE env = r.env AND no = r.target AND r.kind <> 'user' LIMIT 1) c ON true
  LEFT JOIN LATERAL (SELECT id FROM users WHERE env = r.env AND no = r.usr LIMIT 1) u ON true`;

/** By the id of any of the reports; that of the first stands for all, also when its reporter was erased. */
export const findCase = (db: Queryable, env: number, id: string): Promise<Case | undefined> =>
  firstRow(
    db,
    `SELECT ${caseColumns} FROM (
       SELECT * FROM reports WHERE env = $1 AND head = coalesce((SELECT head FROM reports WHERE env = $1 AND id = $2), $2) LIMIT 1
     ) r ${caseSource}`,
    [env, id],
  );

export interface Decision {
  status: ReportStatus;
  actions: readonly ReportAction[];
  note: string | null;
  by: string | null;
}

/** Closes the open reports with this head. */
export const closeCase = (tx: Tx, env: number, head: string, { status, actions, note, by }: Decision) =>
  oneRow<{ reports: number; at: string | null }>(
    tx,
    `WITH closed AS (
       UPDATE reports SET status = $3, actions = $4, resolution = $5, resolver = $6, resolved_at = clock_timestamp()
       WHERE env = $1 AND head = $2 AND status = 'open' RETURNING resolved_at
     ) SELECT count(*)::int AS reports, max(resolved_at) AS at FROM closed`,
    [env, head, status, JSON.stringify(actions), note, by],
  );

export interface Filter {
  status?: ReportStatus | undefined;
  user?: number | undefined;
  conv?: number | undefined;
}

type Shown =
  'reports' | 'reasons' | 'firstAt' | 'lastAt' | 'latest' | 'resolvedAt' | 'resolvedBy' | 'resolution';

export interface CaseRow extends Case, Pick<ReportCase, Shown> {
  actions: string | null;
}

/** How many reports with one head are counted, and shown. */
const mostCounted = 1_000;
const mostShown = 10;

/** The cases below `before`, newest first. */
export function listCases(
  db: Queryable,
  env: number,
  { status, user, conv }: Filter,
  before: string | null,
  limit: number,
): Promise<CaseRow[]> {
  const conditions = (
    [
      ['status = $', status],
      ['usr = $', user],
      [`kind <> 'user' AND target = $`, conv],
      ['head < $', before],
    ] as const
  ).filter(([, value]) => value !== undefined && value !== null);
  const where = conditions.map(([text], i) => ` AND ${text.replace('$', `$${i + 3}`)}`).join('');
  return db.query<CaseRow>(
    `WITH page AS MATERIALIZED (
       SELECT head FROM reports WHERE env = $1${where} GROUP BY head ORDER BY head DESC LIMIT $2
     )
     SELECT ${caseColumns}, n.reports, n.first_at AS "firstAt", n.last_at AS "lastAt", w.reasons, e.latest, r.actions,
       r.resolved_at AS "resolvedAt", r.resolver AS "resolvedBy", r.resolution
     FROM page p
     CROSS JOIN LATERAL (SELECT * FROM reports WHERE env = $1 AND head = p.head LIMIT 1) r ${caseSource}
     CROSS JOIN LATERAL (
       SELECT count(*)::int AS reports, min(x.at) AS first_at, max(x.at) AS last_at
       FROM (SELECT at FROM reports WHERE env = $1 AND head = p.head LIMIT ${mostCounted}) x
     ) n
     CROSS JOIN LATERAL (
       SELECT json_agg(json_build_object('reason', y.reason, 'count', y.n) ORDER BY y.n DESC, y.reason) AS reasons FROM (
         SELECT x.reason, count(*)::int AS n
         FROM (SELECT reason FROM reports WHERE env = $1 AND head = p.head LIMIT ${mostCounted}) x GROUP BY x.reason
       ) y
     ) w
     CROSS JOIN LATERAL (
       SELECT json_agg(json_build_object('id', x.id, 'reason', x.reason, 'note', x.note, 'reporterId', b.id,
           'at', to_char(x.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY x.id DESC) AS latest
       FROM (SELECT * FROM reports WHERE env = $1 AND head = p.head ORDER BY id DESC LIMIT ${mostShown}) x
       LEFT JOIN LATERAL (SELECT id FROM users WHERE env = $1 AND no = x.reporter LIMIT 1) b ON true
     ) e
     ORDER BY p.head DESC`,
    [env, limit, ...conditions.map(([, value]) => value)],
  );
}

export interface SnapshotRow {
  head: string;
  /** The report that it is bound to. */
  id: string;
  version: number;
  snapshot: Buffer;
}

/** Of each version that was reported, what it said; oldest first. */
export const snapshotsOf = (db: Queryable, env: number, heads: readonly string[]): Promise<SnapshotRow[]> =>
  db.query<SnapshotRow>(
    `SELECT h.head, x.id, x.version, x.snapshot FROM unnest($2::text[]) h(head) CROSS JOIN LATERAL (
       SELECT DISTINCT ON (version) id, version, snapshot FROM reports
       WHERE env = $1 AND head = h.head AND snapshot IS NOT NULL ORDER BY version, id LIMIT ${mostShown}
     ) x ORDER BY h.head, x.version`,
    [env, heads],
  );

/** The mentions of each of these extras, with the present ids of users. */
export async function shownMentions(
  db: Queryable,
  env: number,
  extras: readonly string[],
): Promise<unknown[]> {
  if (extras.length === 0) return [];
  const rows = await db.query<{ mentions: unknown }>(
    `SELECT shown_mentions($1, e.extras) AS mentions FROM unnest($2::text[]) WITH ORDINALITY e(extras, ord) ORDER BY e.ord`,
    [env, extras],
  );
  return rows.map(({ mentions }) => mentions);
}

/** After messages were deleted for good. Their conversation is locked. */
export async function emptySnapshots(
  tx: Tx,
  env: number,
  conv: number,
  seqs: readonly number[],
): Promise<void> {
  await tx.query(
    `UPDATE reports SET snapshot = NULL WHERE env = $1 AND target = $2 AND seq = ANY($3) AND kind = 'message' AND snapshot IS NOT NULL`,
    [env, conv, seqs],
  );
}

/** Reports by an erased user and about it go; of those about its messages, what these said. */
export async function forgetReports(tx: Tx, env: number, user: number): Promise<void> {
  await tx.query('DELETE FROM reports WHERE env = $1 AND reporter = $2', [env, user]);
  await tx.query(`DELETE FROM reports WHERE env = $1 AND usr = $2 AND kind = 'user'`, [env, user]);
  await tx.query('UPDATE reports SET snapshot = NULL WHERE env = $1 AND usr = $2 AND snapshot IS NOT NULL', [
    env,
    user,
  ]);
}
