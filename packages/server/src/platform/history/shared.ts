import type { RandomBytes } from '../clock.ts';
import type { Outbound } from '../outbound/outbound.ts';
import { HistoryError, historySchemaVersion } from './port.ts';
import type {
  HistoryEngine,
  HistoryPage,
  HistoryRecord,
  HistoryReport,
  MessageRecord,
  Migrated,
  ReadRange,
} from './port.ts';
import { messageFields } from './record.ts';
import type { HistoryTarget } from './target.ts';

export interface HistoryDeps {
  outbound: Outbound;
  /** The environment's number; name look-ups take its turn. */
  tenant: number;
  /** The environment's id, because several may share a database. */
  env: string;
  random: RandomBytes;
  /** Unix seconds, for signatures. */
  seconds(): number;
  /** If unset, the usual ones. */
  times?: Times;
}

export const maxConnections = 4;

/** Milliseconds for a connection to be made, for one statement, and until an unused connection is closed. */
export interface Times {
  connectMs: number;
  statementMs: number;
  idleMs: number;
}
const usualTimes: Times = { connectMs: 5_000, statementMs: 10_000, idleMs: 30_000 };
export const timesOf = ({ times = usualTimes }: HistoryDeps): Times => times;

/** A time that no date can be stays recognisable as such. */
export const isoOf = (time: Date): string => (Number.isNaN(time.getTime()) ? 'no time' : time.toISOString());

/** Bytes of the largest message as JSON, and of an answer without any. */
export const messageBytes = 92 * 1_024;
const plainBytes = 256 * 1_024;
/** How many bytes an answer with so many messages can need. */
export const bytesOf = (messages: number): number => plainBytes + messages * messageBytes;
export const tooMuch = () => new HistoryError('failed', undefined, 'it sent more than was asked for');

export const sentences = {
  noTables: 'The tables are not there: migrate first.',
  oldSchema:
    'It is of version 1, which has no `extras`: records are written without them, and what they tell stays with this service.',
  unverified: 'The connection is encrypted, but the certificate is not verified.',
  plain: 'The connection is not encrypted.',
  noUser:
    'The tables are there, but this user may not create another. Make a user by hand, and save its URL to a slot. It needs:',
} as const;

type Kind = HistoryRecord['kind'];

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Tables of relational engines: besides these columns each has `env`, which is the first of its key. */
export const shapes: Record<Kind, { table: string; key: readonly string[]; fields: readonly string[] }> = {
  message: {
    table: 'parley_messages',
    key: ['id'],
    fields: messageFields.filter((name) => name !== 'kind').map(snake),
  },
  conversation: {
    table: 'parley_conversations',
    key: ['id'],
    fields: ['id', 'type', 'name', 'metadata', 'created_at', 'deleted_at', 'revision', 'extras'],
  },
  member: {
    table: 'parley_members',
    key: ['conversation_id', 'user_id'],
    fields: ['conversation_id', 'user_id', 'role', 'removed', 'revision', 'extras'],
  },
};

/** What PostgreSQL and MySQL answer if there is no such column. */
const noColumn: unknown[] = ['42703', 1054];
const lookAgainSeconds = 60;

export const hasExtras = (records: readonly HistoryRecord[]): boolean =>
  records.some((record) => record.extras !== null);
export const noExtras = () =>
  new HistoryError('refused', undefined, 'it has no place for extras: migrate it');

/**
 * Runs statements with the column `extras`, or without it where tables of version 1 have none. Records that need it are
 * refused there. They may be migrated at any time, so it looks again after a while.
 */
export function extrasColumn(seconds: () => number) {
  let missingUntil = 0;
  return async <T>(
    records: readonly HistoryRecord[],
    work: (fieldsOf: (kind: Kind) => readonly string[]) => Promise<T>,
  ): Promise<T> => {
    const needed = hasExtras(records);
    if (needed || seconds() >= missingUntil)
      try {
        const result = await work((kind) => shapes[kind].fields);
        missingUntil = 0;
        return result;
      } catch (error) {
        if (!(error instanceof HistoryError) || !noColumn.includes(error.code)) throw error;
        if (needed) throw noExtras();
        missingUntil = seconds() + lookAgainSeconds;
      }
    return work((kind) => shapes[kind].fields.filter((field) => field !== 'extras'));
  };
}

const camel = (column: string) => column.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
const names = new Map(Object.values(shapes).flatMap(({ fields }) => fields.map((c) => [c, camel(c)])));
/** What a record has in a column. */
export const valueOf = (record: HistoryRecord, column: string): unknown =>
  (record as unknown as Record<string, unknown>)[names.get(column)!];

export const byKind = (records: readonly HistoryRecord[]): [Kind, HistoryRecord[]][] =>
  (['conversation', 'member', 'message'] as const)
    .map((kind): [Kind, HistoryRecord[]] => [kind, records.filter((r) => r.kind === kind)])
    .filter(([, rows]) => rows.length > 0);

/**
 * `after` alone gives the page just above it; otherwise the page is just below `before`, down to `after` if that is
 * given.
 */
export const bounds = ({ before, after, limit }: ReadRange) => ({
  before: before ?? Number.MAX_SAFE_INTEGER,
  after: after ?? 0,
  up: after !== undefined && before === undefined,
  limit,
});

/** A page of rows that were read in the order of `range`, one more than its limit if there are more. */
export function pageOf<R>(
  range: ReadRange,
  rows: readonly R[],
  record: (row: R) => MessageRecord,
): HistoryPage {
  const { up, limit } = bounds(range);
  const data = rows.slice(0, limit).map(record);
  return { data: up ? data.reverse() : data, hasMore: rows.length > limit };
}

export const emptyReport = (type: HistoryEngine): HistoryReport => ({
  ok: false,
  type,
  version: null,
  role: null,
  tls: null,
  schemaVersion: null,
  grants: [],
  errors: [],
  warnings: [],
  rttMs: null,
  databaseId: null,
});

/**
 * Tests a database. `look` fills in what it finds, and makes its first request with `first`; what it throws becomes an
 * error of the report.
 */
export async function examine(
  target: HistoryTarget,
  translate: (error: unknown) => HistoryError,
  look: (report: HistoryReport, first: <T>(ask: () => Promise<T>) => Promise<T>) => Promise<void>,
): Promise<HistoryReport> {
  const { engine, tls } = target;
  const report = emptyReport(engine);
  try {
    await look(report, async (ask) => {
      const started = performance.now();
      const answer = await ask();
      report.rttMs = Math.round((performance.now() - started) * 10) / 10;
      report.tls = { enabled: tls !== 'off', verified: tls === 'verified' };
      return answer;
    });
    if (tls === 'unverified') report.warnings.push(sentences.unverified);
    if (tls === 'off') report.warnings.push(sentences.plain);
  } catch (error) {
    report.errors.push(translate(error).message);
  }
  report.ok = report.errors.length === 0;
  return report;
}

export const hex = (deps: HistoryDeps, bytes: number): string =>
  Buffer.from(deps.random(bytes)).toString('hex');

export const writerName = (deps: HistoryDeps): string => `parley_writer_${hex(deps, 4)}`;

/**
 * Only letters and digits, so that it needs no quoting anywhere; both cases and a digit, because some servers demand
 * them.
 */
export const passwordFor = (deps: HistoryDeps): string => `P${hex(deps, 24)}x7`;

/** What a migration answers if its user may not make another: what that needs. */
export const withoutUser = (grants: readonly string[], name: string): Migrated => ({
  runtimeUrl: null,
  notes: [sentences.noUser, ...grants.map((sql) => sql.replaceAll(name, 'parley_writer'))],
});

export function readMeta(report: HistoryReport, rows: readonly { key: string; value: string }[]): void {
  const meta = new Map(rows.map((r) => [r.key, r.value]));
  report.schemaVersion = Number(meta.get('schema_version') ?? 0);
  report.databaseId = meta.get('database_id') ?? null;
  if (report.schemaVersion < 1) report.errors.push(sentences.noTables);
  // MongoDB takes any field.
  else if (report.schemaVersion < historySchemaVersion && report.type !== 'mongodb')
    report.warnings.push(sentences.oldSchema);
}
