import type { DatabaseTest } from '@parley/protocol';
import type { Static } from 'typebox';
import type { messageSchema } from './record.ts';

/**
 * A customer's own database for history. It gets conversations, members, and messages in their present state, so that
 * the history can be read without this service. Writing is idempotent: a record that is older than the stored one
 * changes nothing.
 */

export type HistoryEngine = DatabaseTest['type'];

/**
 * The version of the tables or collections. Changes only add. Version 1 has no `extras`: a database of that version
 * works, but refuses records that have some.
 */
export const historySchemaVersion = 2;

/** What every record has. */
interface Extended {
  /**
   * JSON of an object, with rules as for metadata: what has no field of its own. Engines keep it without knowing its
   * members, so it must name no user: erasures do not look into it.
   */
  extras: string | null;
  /** Grows with every change. */
  revision: number;
}

export type MessageRecord = Static<typeof messageSchema>;

export interface ConversationRecord extends Extended {
  kind: 'conversation';
  id: string;
  type: string;
  name: string | null;
  /** JSON. */
  metadata: string | null;
  createdAt: string;
  deletedAt: string | null;
}

export interface MemberRecord extends Extended {
  kind: 'member';
  conversationId: string;
  userId: string;
  role: string;
  /** True if the user is no longer a member. */
  removed: boolean;
}

export type HistoryRecord = MessageRecord | ConversationRecord | MemberRecord;

/** The revision of a message: it grows with edits and changes of its reactions, and with deletions after them. */
export const messageRevision = (m: {
  version: number;
  deletedAt: string | null;
  hard: boolean;
  /** How often they changed. */
  reactions?: number;
}): number => (m.version + (m.reactions ?? 0)) * 4 + (m.hard ? 2 : m.deletedAt === null ? 0 : 1);

export interface ReadRange {
  conversationId: string;
  /** Only below this seq. */
  before?: number;
  /** Only above this seq; without `before`, the next messages above it. */
  after?: number;
  limit: number;
}

export interface HistoryPage {
  /** Descending seq, without hard-deleted messages. */
  data: MessageRecord[];
  hasMore: boolean;
  /** Where the next page begins, if messages that cannot be read were left out; otherwise at the last one of `data`. */
  end?: number;
}

export interface Erasure {
  userId: string;
  replacement: string;
  messages: 'anonymize' | 'delete';
}

export interface HistoryReport extends Omit<DatabaseTest, 'egressIp'> {
  /** Identifies the database, whatever user name and address are used; written when its tables are created. */
  databaseId: string | null;
}

export interface Migrated {
  /** The URL of the user that was created; null if one must be created by hand. */
  runtimeUrl: string | null;
  notes: string[];
}

/** One environment's connections to its database: at most four, closed when idle. */
export interface History {
  /** How many writes may be under way at once, if no record is in two of them. */
  readonly writesAtOnce: number;
  /** Never throws: the report says what is wrong. */
  test(): Promise<HistoryReport>;
  /** Writes all records or none. With `rewrite`, it also replaces records of the same revision. */
  write(records: readonly HistoryRecord[], options?: { rewrite?: boolean }): Promise<void>;
  read(range: ReadRange): Promise<HistoryPage>;
  get(messageId: string): Promise<MessageRecord | null>;
  erase(erasure: Erasure): Promise<void>;
  close(): Promise<void>;
}

/** Why a database did not do what it was asked. The first three classes pass by themselves, or after work on the database. */
export const historyErrorClasses = [
  'unreachable',
  'timeout',
  'overloaded',
  'tls',
  'authentication',
  'permission',
  'schema',
  'refused',
  'failed',
  'set_aside',
] as const;
export type HistoryErrorClass = (typeof historyErrorClasses)[number];

const words: Record<HistoryErrorClass, string> = {
  unreachable: 'The database cannot be reached',
  timeout: 'The database did not answer in time',
  overloaded: 'The database is too busy or shutting down',
  tls: 'No trusted TLS connection could be made',
  authentication: 'The database refused the user or the password',
  permission: 'The user may not do what is needed',
  schema: 'The tables are missing or of another form: migrate first',
  refused: 'The database refused the data',
  failed: 'The database answered with an error',
  set_aside: 'The database is set aside',
};
/** Codes may come from the database: others than these are left out. */
const plainCode = /^[A-Za-z0-9_]{1,60}$/;

/** The message contains no value, address or credential, so it may be logged, stored and shown. */
export class HistoryError extends Error {
  override name = 'HistoryError';
  readonly errorClass: HistoryErrorClass;
  readonly code: string | number | undefined;
  constructor(errorClass: HistoryErrorClass, code: string | number | undefined, detail?: string) {
    const shown = code !== undefined && plainCode.test(String(code)) ? ` (${code})` : '';
    super(`${words[errorClass]}${shown}${detail ? `: ${detail}` : ''}.`);
    this.errorClass = errorClass;
    this.code = code;
  }
}

/** Our own queue is full: the database did nothing wrong. */
export class QueueFull extends HistoryError {
  constructor() {
    super('overloaded', undefined, 'too many requests to it are under way');
  }
}

const network = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  'PROTOCOL_CONNECTION_LOST',
]);
const certificate = /CERT|SELF_SIGNED|ALTNAME|ERR_TLS|ERR_SSL|UNABLE_TO_|HANDSHAKE_SSL/;

/** Recognises errors that all engines have in common; null if the engine itself must tell. */
export function commonError(error: unknown): HistoryError | null {
  if (error instanceof HistoryError) return error;
  const { code, name, message = '' } = error as { code?: unknown; name?: string; message?: string };
  if (name === 'OutboundRefused' || name === 'OutboundUnresolved')
    return new HistoryError('unreachable', undefined, message);
  if (name === 'OutboundTimeout' || code === 'ETIMEDOUT') return new HistoryError('timeout', undefined);
  if (typeof code === 'string') {
    if (certificate.test(code)) return new HistoryError('tls', code);
    if (network.has(code)) return new HistoryError('unreachable', code);
  }
  return null;
}
