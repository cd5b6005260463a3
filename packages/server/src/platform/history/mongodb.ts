import { isIP } from 'node:net';
import { MongoBulkWriteError, MongoClient } from 'mongodb';
import type { Db, Document } from 'mongodb';
import { commonError, HistoryError, historySchemaVersion } from './port.ts';
import type {
  History,
  HistoryErrorClass,
  HistoryRecord,
  HistoryReport,
  MessageRecord,
  Migrated,
} from './port.ts';
import {
  bounds,
  byKind,
  examine,
  hex,
  maxConnections,
  pageOf,
  passwordFor,
  readMeta,
  sentences,
  timesOf,
  writerName,
  isoOf,
} from './shared.ts';
import type { HistoryDeps } from './shared.ts';
import { urlFor } from './target.ts';
import type { HistoryTarget } from './target.ts';

const classes: [codes: number[], HistoryErrorClass][] = [
  [[18, 11], 'authentication'],
  [[13], 'permission'],
  [[50, 202, 262], 'timeout'],
  [[91, 189, 10107, 13435, 11600, 11602, 112], 'overloaded'],
  [[121, 2, 9, 10334, 17419], 'refused'],
];
const duplicateKey = 11000;

function translate(error: unknown): HistoryError {
  const common = commonError(error);
  if (common) return common;
  const { code, name = '', cause } = error as { code?: number; name?: string; cause?: unknown };
  if (error instanceof MongoBulkWriteError && error.code === undefined)
    return new HistoryError('timeout', undefined);
  if (typeof code === 'number')
    return new HistoryError(classes.find(([codes]) => codes.includes(code))?.[1] ?? 'failed', code);
  const inner = cause === undefined || cause === null ? null : commonError(cause);
  if (inner) return inner;
  if (/ServerSelection|Network|NotConnected|Closed|PoolCleared|Topology/.test(name))
    return new HistoryError(/Timeout/.test(name) ? 'timeout' : 'unreachable', undefined);
  if (/Timeout/.test(name)) return new HistoryError('timeout', undefined);
  return new HistoryError('failed', undefined);
}

/**
 * Connects to one host, and to none that the server announces. Forbidden addresses are refused before the driver sees
 * them, and the guard looks names up each time the driver connects.
 */
async function connectTo(
  target: HistoryTarget,
  deps: HistoryDeps,
  at: { host: string; port: number },
): Promise<MongoClient> {
  await deps.outbound.resolve(at.host, deps.tenant);
  const { connectMs, statementMs, idleMs } = timesOf(deps);
  const host = isIP(at.host) === 6 ? `[${at.host}]` : at.host;
  const client = new MongoClient(`mongodb://${host}:${at.port}/`, {
    directConnection: true,
    ...(target.user
      ? {
          auth: { username: target.user, password: target.password },
          authSource: target.authSource ?? target.database,
        }
      : {}),
    tls: target.tls !== 'off',
    ...(target.tls === 'unverified'
      ? { tlsAllowInvalidCertificates: true, tlsAllowInvalidHostnames: true }
      : {}),
    ...(target.ca ? { ca: target.ca } : {}),
    lookup: deps.outbound.lookup,
    maxPoolSize: maxConnections,
    maxIdleTimeMS: idleMs,
    connectTimeoutMS: connectMs,
    serverSelectionTimeoutMS: connectMs,
    socketTimeoutMS: statementMs,
    waitQueueTimeoutMS: statementMs,
    retryWrites: false,
    appName: 'parley',
  });
  client.on('error', () => undefined);
  return client;
}

/** Connects to the member of the replica set that accepts writes. */
async function connectToWritable(target: HistoryTarget, deps: HistoryDeps): Promise<MongoClient> {
  let why: unknown = new HistoryError('unreachable', undefined);
  for (const host of target.hosts) {
    let client: MongoClient | undefined;
    try {
      client = await connectTo(target, deps, host);
      await client.connect();
      const hello = await client
        .db('admin')
        .command({ hello: 1 })
        .catch(() => ({ isWritablePrimary: true }));
      if (target.hosts.length === 1 || hello['isWritablePrimary'] === true) return client;
      why = new HistoryError('overloaded', undefined, 'no member can be written to');
    } catch (error) {
      why = error;
    }
    await client?.close().catch(() => undefined);
  }
  throw translate(why);
}

const collections = {
  message: 'parley_messages',
  conversation: 'parley_conversations',
  member: 'parley_members',
} as const;

type Stored = Document & { _id: string; revision: number };
const writeTries = 6;

/** One document per record. Times are dates, so that the history can be read without this service. */
function document(env: string, record: HistoryRecord): Stored {
  const { kind: _kind, ...rest } = record;
  const own = record.kind === 'member' ? `${record.conversationId}:${record.userId}` : record.id;
  const times = Object.entries(rest).map(([name, value]) => [
    name,
    name.endsWith('At') && value !== null ? new Date(value as string) : value,
  ]);
  return { _id: `${env}:${own}`, env, revision: record.revision, ...(Object.fromEntries(times) as object) };
}

const iso = (value: unknown): string | null => (value instanceof Date ? isoOf(value) : null);
function record(found: Document): MessageRecord {
  const { _id, env: _env, ...rest } = found;
  return {
    ...(rest as MessageRecord),
    kind: 'message',
    extras: (found['extras'] as string | undefined) ?? null,
    createdAt: iso(found['createdAt'])!,
    editedAt: iso(found['editedAt']),
    deletedAt: iso(found['deletedAt']),
  };
}

const eraseBatch = 500;

export async function openMongodb(target: HistoryTarget, deps: HistoryDeps): Promise<History> {
  const client = await connectToWritable(target, deps);
  const db = client.db(target.schema ?? target.database);
  const { env } = deps;
  /** The server is told too, so that it does not go on. */
  const bounded = { maxTimeMS: timesOf(deps).statementMs };
  const messages = db.collection<Document & { _id: string }>(collections.message);
  const members = db.collection<Document & { _id: string }>(collections.member);
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw translate(error);
    }
  };

  /**
   * Writes those records that are newer than what is stored. Most are new, so at first all are taken to be. A duplicate
   * key means that some were there, or that another process wrote in between, so it reads and tries again. A server
   * that stops at the first error, although it was asked to continue, leaves the rest for the next try.
   */
  async function upsert(kind: HistoryRecord['kind'], documents: Stored[], rewrite: boolean): Promise<void> {
    const collection = db.collection<Stored>(collections[kind]);
    let left = documents;
    for (let tries = 0; tries < writeTries; tries++) {
      const there =
        tries === 0 && !rewrite
          ? []
          : await collection
              .find({ _id: { $in: left.map((d) => d._id) } }, { projection: { revision: 1 }, ...bounded })
              .toArray();
      const known = new Map(there.map((d) => [d._id, d.revision]));
      left = left.filter(({ _id, revision }) => {
        const found = known.get(_id);
        return found === undefined || (rewrite ? found <= revision : found < revision);
      });
      if (left.length === 0) return;
      try {
        await collection.bulkWrite(
          left.map((whole) => {
            const { _id, ...fields } = whole;
            const older = rewrite ? { $lte: fields.revision } : { $lt: fields.revision };
            return known.has(_id)
              ? { updateOne: { filter: { _id, revision: older }, update: { $set: fields } } }
              : { insertOne: { document: whole } };
          }),
          { ordered: false, ...bounded },
        );
        return;
      } catch (error) {
        if (!(error instanceof MongoBulkWriteError)) throw error;
        const refused = [error.writeErrors].flat();
        // No refused record means that the answer was lost.
        if (refused.length === 0) throw error;
        const others = refused.filter((e) => e.code !== duplicateKey);
        if (others.length > 0) throw new HistoryError('refused', others[0]!.code);
      }
    }
    throw new HistoryError('overloaded', undefined, 'somebody else writes the same messages');
  }

  return {
    writesAtOnce: 1,
    test: () => test(client, db, target),
    write: (records, { rewrite = false } = {}) =>
      guarded(async () => {
        for (const [kind, rows] of byKind(records))
          await upsert(
            kind,
            rows.map((row) => document(env, row)),
            rewrite,
          );
      }),
    read: (range) =>
      guarded(async () => {
        const { before, after, up, limit } = bounds(range);
        const rows = await messages
          .find(
            { env, conversationId: range.conversationId, seq: { $lt: before, $gt: after }, hard: false },
            bounded,
          )
          .sort({ seq: up ? 1 : -1 })
          .limit(limit + 1)
          .toArray();
        return pageOf(range, rows, record);
      }),
    get: (id) =>
      guarded(async () => {
        const found = await messages.findOne({ _id: `${env}:${id}`, hard: false }, bounded);
        return found ? record(found) : null;
      }),
    erase: (erasure) =>
      guarded(async () => {
        for (;;) {
          const found = await messages
            .find(
              { env, senderId: erasure.userId },
              { projection: { revision: 1, deletedAt: 1 }, ...bounded },
            )
            .limit(eraseBatch)
            .toArray();
          if (found.length === 0) break;
          const gone = {
            text: null,
            replyTo: null,
            attachments: null,
            metadata: null,
            extras: null,
            hard: true,
          };
          await messages.bulkWrite(
            found.map((m) => ({
              updateOne: {
                filter: { _id: m._id },
                update: {
                  $set: {
                    senderId: erasure.replacement,
                    ...(erasure.messages === 'delete'
                      ? {
                          ...gone,
                          deletedAt: (m['deletedAt'] as Date | null) ?? new Date(),
                          revision: (m['revision'] as number) - ((m['revision'] as number) % 4) + 2,
                        }
                      : {}),
                  },
                },
              },
            })),
            { ordered: false, ...bounded },
          );
        }
        // The user is part of a member's key, so the document is written again under a new one.
        for (;;) {
          const found = await members
            .find({ env, userId: erasure.userId }, bounded)
            .limit(eraseBatch)
            .toArray();
          if (found.length === 0) break;
          for (const member of found) {
            const renamed = {
              ...member,
              _id: `${env}:${member['conversationId']}:${erasure.replacement}`,
              userId: erasure.replacement,
            };
            if (erasure.messages === 'delete') Object.assign(renamed, { removed: true });
            // A change since may have written the member under the new name already.
            await members.updateOne({ _id: renamed._id }, { $setOnInsert: renamed }, { upsert: true });
            await members.deleteOne({ _id: member._id });
          }
        }
      }),
    close: () => client.close().catch(() => undefined),
  };
}

const test = (client: MongoClient, db: Db, target: HistoryTarget): Promise<HistoryReport> =>
  examine(target, translate, async (report, first) => {
    const info = await first(() => client.db('admin').command({ buildInfo: 1 }));
    report.version = String(info['version']);
    report.role = target.user || null;
    const status = await db.command({ connectionStatus: 1, showPrivileges: true }).catch(() => null);
    const auth = status?.['authInfo'] as
      { authenticatedUserRoles?: { role: string; db: string }[] } | undefined;
    report.grants = (auth?.authenticatedUserRoles ?? []).map((r) => `${r.role} on ${r.db}`);
    if ((auth?.authenticatedUserRoles ?? []).some((r) => /root|dbOwner|dbAdmin/i.test(r.role)))
      report.warnings.push('The user can drop the collections.');
    const meta = await db.collection<Document & { _id: string }>('parley_meta').find().toArray();
    if (meta.length === 0) report.errors.push(sentences.noTables);
    else
      readMeta(
        report,
        meta.map((m) => ({ key: m._id, value: String(m['value']) })),
      );
  });

/** Runs as the admin: creates collections with their indexes, and a user that may only write and read them. */
export async function migrateMongodb(
  target: HistoryTarget,
  deps: HistoryDeps,
  adminUrl: string,
): Promise<Migrated> {
  const client = await connectToWritable(target, deps);
  try {
    const database = target.schema ?? target.database;
    const db = client.db(database);
    const [messages, members] = [db.collection(collections.message), db.collection(collections.member)];
    await messages.createIndex({ env: 1, conversationId: 1, seq: 1 }, { name: 'parley_messages_place' });
    await messages.createIndex({ env: 1, senderId: 1 }, { name: 'parley_messages_sender' });
    await members.createIndex({ env: 1, userId: 1 }, { name: 'parley_members_user' });
    const meta = db.collection<Document & { _id: string }>('parley_meta');
    const value = String(historySchemaVersion);
    await meta.updateOne({ _id: 'schema_version' }, { $set: { value } }, { upsert: true });
    await meta.updateOne(
      { _id: 'database_id' },
      { $setOnInsert: { value: hex(deps, 16) } },
      { upsert: true },
    );
    const name = writerName(deps);
    const password = passwordFor(deps);
    const actions = ['find', 'insert', 'update', 'remove'];
    const privileges = ['parley_meta', ...Object.values(collections)].map((collection) => ({
      resource: { db: database, collection },
      actions,
    }));
    try {
      await db.command({ createRole: name, privileges, roles: [] });
      await db.command({ createUser: name, pwd: password, roles: [{ role: name, db: database }] });
      const url = urlFor(adminUrl, name, password).replace(/([?&])authSource=[^&]*&?/i, '$1');
      return {
        runtimeUrl: `${url}${url.includes('?') ? '&' : '?'}authSource=${database}`,
        notes: [`The user ${name} was made.`],
      };
    } catch (error) {
      if (translate(error).errorClass === 'unreachable') throw error;
      return {
        runtimeUrl: null,
        notes: [
          sentences.noUser,
          `${actions.join(', ')} on ${privileges.map((p) => `${database}.${p.resource.collection}`).join(', ')}`,
        ],
      };
    }
  } catch (error) {
    throw translate(error);
  } finally {
    await client.close().catch(() => undefined);
  }
}
