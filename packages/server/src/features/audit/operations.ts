import { Readable } from 'node:stream';
import { ApiError } from '@parley/protocol';
import type { AuditEntry, Input, OperationName, Output } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { accountOf, Reply } from '../context.ts';
import type { Caller, ControlContext, ManageContext } from '../context.ts';
import { decodeCursor, isInteger, keyPage, pageLimit } from '../pages.ts';

/**
 * dashboard#audit: every change made by people who manage environments is recorded, in the transaction of
 * the change.
 */

interface Change {
  /** The number of the environment that the change concerns, or of the organization if it concerns no environment. */
  where: { env: number } | { org: number };
  action: OperationName;
  /** The id of what was changed. A tenant's user is given by number in `user` instead, because an erasure renames it. */
  target?: string;
  user?: number;
  /** Who did it, if the caller does not say so because the person is just signing in. */
  actor?: string;
  /** The changed fields as they were and as they are; null if there was, or is, nothing. They never hold a secret. */
  before: object | null;
  after: object | null;
}

/** Changes by servers and clients of a tenant are not recorded; all others are. */
export async function record(ctx: ControlContext, tx: Queryable, change: Change): Promise<void> {
  const actor = change.actor ?? actorOf(ctx.caller);
  if (actor === null) return;
  const { where, action, target = null, user = null, before, after } = change;
  await tx.query(
    `INSERT INTO audit (id, env, org, actor, action, target, usr, ip, request_id, changes)
     VALUES ($1, $2, coalesce($3, (SELECT org FROM environments WHERE no = $2)), $4, $5, $6, $7, $8, $9, $10)`,
    [
      ctx.services.ids.make('audit'),
      'env' in where ? where.env : null,
      'org' in where ? where.org : null,
      actor,
      action,
      target,
      user,
      ctx.ip ?? null,
      ctx.requestId,
      JSON.stringify({ before, after }),
    ],
  );
}

function actorOf(caller: Caller): string | null {
  return caller.operator === null ? (caller.person?.account.email ?? null) : `operator:${caller.operator}`;
}

/** Returns only the fields that differ. A change without a difference is not recorded. */
export function difference<T extends object>(
  before: T,
  after: T,
): { before: Partial<T>; after: Partial<T> } | null {
  const changed = (Object.keys(after) as (keyof T)[]).filter(
    (key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]),
  );
  const pick = (of: T) => Object.fromEntries(changed.map((key) => [key, of[key]])) as Partial<T>;
  return changed.length === 0 ? null : { before: pick(before), after: pick(after) };
}

type Row = AuditEntry & { no: number };
type Reader = (before: number | null, limit: number) => Promise<Row[]>;

/**
 * Returns a function that reads the entries that the caller may see and the input asks for: newest first, those
 * before the given one.
 */
async function reader(ctx: ManageContext, input: Input<'audit.list'>): Promise<Reader> {
  const account = accountOf(ctx);
  const fixed: [string, unknown][] = [];
  if (account !== null)
    fixed.push(['a.org IN (SELECT org FROM organization_accounts WHERE account = $)', account]);
  if (ctx.env) fixed.push(['a.env = $', ctx.env.no]);
  if (input.environmentId !== undefined)
    fixed.push(['a.env = $', await manageableEnvironment(ctx, input.environmentId)]);
  if (input.action !== undefined) fixed.push(['a.action = $', input.action]);
  if (input.actor !== undefined) fixed.push(['a.actor = $', input.actor]);
  return (before, limit) => {
    const conditions = before === null ? fixed : [...fixed, ['a.no < $', before] as [string, unknown]];
    const text = conditions.map(([condition], i) => condition.replace('$', `$${i + 2}`)).join(' AND ');
    return ctx.db.query<Row>(
      `SELECT a.no, a.id, a.created_at AS at, o.id AS "organizationId", e.id AS "environmentId", a.actor, a.action,
         coalesce(u.id, a.target) AS target, a.ip, a.request_id AS "requestId", a.changes
       FROM audit a JOIN organizations o ON o.no = a.org LEFT JOIN environments e ON e.no = a.env
       LEFT JOIN users u ON u.env = a.env AND u.no = a.usr
       ${text && `WHERE ${text}`} ORDER BY a.no DESC LIMIT $1`,
      [limit, ...conditions.map(([, value]) => value)],
    );
  };
}

/** The number of the environment that a list is restricted to. */
async function manageableEnvironment(ctx: ManageContext, id: string): Promise<number> {
  const [row] = await ctx.db.query<{ no: number }>(
    `SELECT no FROM environments e WHERE id = $1 AND ($2::int IS NULL
       OR EXISTS (SELECT 1 FROM organization_accounts m WHERE m.org = e.org AND m.account = $2))`,
    [id, accountOf(ctx)],
  );
  if (!row) throw new ApiError('not_found', { message: `There is no environment ${id}.` });
  return row.no;
}

const entry = ({ no: _no, ...rest }: Row): AuditEntry => rest;

export async function list(
  ctx: ManageContext,
  input: Input<'audit.list'>,
): Promise<Output<'audit.list'> | Reply<Readable>> {
  const read = await reader(ctx, input);
  const before = input.cursor === undefined ? null : decodeCursor(input.cursor, isInteger);
  if (input.format === 'csv' || input.format === 'jsonl') return exported(read, before, input.format);
  const limit = pageLimit(input.limit);
  return keyPage(await read(before, limit + 1), limit, (row) => row.no, entry);
}

const exportPage = 1_000;
/** Entries in one export at most; it is far above what people do in a year. */
const maxExported = 1_000_000;

const formats = {
  csv: {
    type: 'text/csv; charset=utf-8',
    head: 'at,actor,action,target,organizationId,environmentId,ip,requestId,changes\r\n',
    line: (e: AuditEntry) =>
      `${[
        e.at,
        e.actor,
        e.action,
        e.target,
        e.organizationId,
        e.environmentId,
        e.ip,
        e.requestId,
        JSON.stringify(e.changes),
      ]
        .map(csvCell)
        .join(',')}\r\n`,
  },
  jsonl: {
    type: 'application/jsonl; charset=utf-8',
    head: '',
    line: (e: AuditEntry) => `${JSON.stringify(e)}\n`,
  },
};

/**
 * Quotes a cell by RFC 4180. A spreadsheet would run a cell that begins like a formula, so such a cell gets a '
 * before it.
 */
export function csvCell(value: string | null): string {
  const text = value === null ? '' : /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Streams all entries, reading them page by page as the caller takes them. */
function exported(read: Reader, from: number | null, format: keyof typeof formats): Reply<Readable> {
  const { type, head, line } = formats[format];
  async function* lines(): AsyncGenerator<string> {
    if (head) yield head;
    let before = from;
    for (let count = 0; count < maxExported; count += exportPage) {
      const rows = await read(before, exportPage);
      if (rows.length > 0) yield rows.map((row) => line(entry(row))).join('');
      if (rows.length < exportPage) return;
      before = rows.at(-1)!.no;
    }
  }
  return new Reply(200, Readable.from(lines()), {
    'Content-Type': type,
    'Content-Disposition': `attachment; filename="audit.${format}"`,
  });
}
