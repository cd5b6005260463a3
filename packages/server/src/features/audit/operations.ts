import { Readable } from 'node:stream';
import { ApiError } from '@parley/protocol';
import type { AuditEntry, Input, OperationName, Output } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { accountOf, Reply } from '../context.ts';
import type { Caller, ControlContext, EnvironmentContext, ManageContext } from '../context.ts';
import { decodeCursor, isInteger, listPage } from '../pages.ts';
import { insertEntry, listEntries, manageableEnvironment } from './sql.ts';
import type { AuditRow, EntryFilter } from './sql.ts';

/**
 * dashboard#audit: every change made by people who manage environments is recorded, in the transaction of
 * the change.
 */

interface Change {
  /** The number of the environment that the change concerns, or of the organization; unset: the environment of the call. */
  where?: { env: number } | { org: number };
  action: OperationName;
  /** The id of what was changed. A tenant's user is given by number in `user` instead, because an erasure renames it. */
  target?: string;
  user?: number;
  /** Who did it, if the caller does not say so because the person is just signing in. */
  actor?: string;
  /** The changed fields as they were and as they are; null if there was, or is, nothing. They never hold a secret. */
  before?: object | null;
  after?: object | null;
}

/** Changes by servers and clients of a tenant are not recorded; all others are. */
export function record(ctx: EnvironmentContext, tx: Queryable, change: Change): Promise<void>;
export function record(
  ctx: ControlContext,
  tx: Queryable,
  change: Change & Required<Pick<Change, 'where'>>,
): Promise<void>;
export async function record(
  ctx: ControlContext & Partial<Pick<EnvironmentContext, 'env'>>,
  tx: Queryable,
  change: Change,
): Promise<void> {
  const { actor = actorOf(ctx.caller), where, action, target = null, user = null } = change;
  if (actor === null) return;
  const place: { env?: number; org?: number } = where ?? { env: ctx.env!.no };
  const id = ctx.services.ids.make('audit');
  const changes = JSON.stringify({ before: change.before ?? null, after: change.after ?? null });
  await insertEntry(tx, [
    id,
    place.env ?? null,
    place.org ?? null,
    actor,
    action,
    target,
    user,
    ctx.ip ?? null,
    ctx.requestId,
    changes,
  ]);
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

type Reader = (before: number | null, limit: number) => Promise<AuditRow[]>;

/**
 * Returns a function that reads the entries that the caller may see and the input asks for: newest first, those
 * before the given one.
 */
async function reader(ctx: ManageContext, input: Input<'audit.list'>): Promise<Reader> {
  const account = accountOf(ctx);
  const filter: EntryFilter = { account, env: ctx.env?.no, action: input.action, actor: input.actor };
  if (input.environmentId !== undefined) {
    const env = await manageableEnvironment(ctx.db, input.environmentId, account);
    if (env === undefined)
      throw new ApiError('not_found', { message: `There is no environment ${input.environmentId}.` });
    filter.listed = env;
  }
  return (before, limit) => listEntries(ctx.db, filter, before, limit);
}

const entry = ({ no: _no, ...rest }: AuditRow): AuditEntry => rest;

export async function list(
  ctx: ManageContext,
  input: Input<'audit.list'>,
): Promise<Output<'audit.list'> | Reply<Readable>> {
  const read = await reader(ctx, input);
  if (input.format !== 'csv' && input.format !== 'jsonl')
    return listPage(input, isInteger, read, ({ no }) => no, entry);
  const before = input.cursor === undefined ? null : decodeCursor(input.cursor, isInteger);
  return exported(read, before, input.format);
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
function csvCell(value: string | null): string {
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
