import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { nullable, open, Timestamp } from './common.ts';

/** storage#record. */

export const databaseTypes = ['postgres', 'mysql', 'mongodb', 'http'] as const;
export const mediaProviders = ['cloudinary', 's3', 'azure'] as const;
/** Names of buffer retentions, with their hours. */
export const bufferRetentions = { '24h': 24, '72h': 72, '7d': 168, '30d': 720 } as const;
export type BufferRetentionName = keyof typeof bufferRetentions;

const oneOf = <const V extends readonly string[]>(values: V, description?: string) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: [...values], ...(description ? { description } : {}) });

export const DatabaseType = oneOf(databaseTypes, 'Found from the URL when left out');
export const SlotParam = oneOf(['a', 'b']);
export const BufferRetention = oneOf(
  Object.keys(bufferRetentions) as BufferRetentionName[],
  'How long messages and events stay with this service at least',
);

const tested = {
  ok: Type.Boolean(),
  version: nullable(Type.String()),
  rttMs: nullable(Type.Number()),
  errors: Type.Array(Type.String()),
  warnings: Type.Array(Type.String()),
};

const slot = {
  type: DatabaseType,
  url: Type.String({ description: 'Without the password and other secrets' }),
  schema: nullable(Type.String()),
  replicaUrl: nullable(Type.String()),
  schemaVersion: nullable(Type.Integer()),
  lastTest: nullable(open({ ...tested, at: Timestamp })),
  createdAt: Timestamp,
};
export const DatabaseSlot = open(slot, 'DatabaseSlot');
export type DatabaseSlot = Static<typeof DatabaseSlot>;
export const DatabaseSlotWithSecret = open(
  {
    ...slot,
    signingSecret: Type.Optional(Type.String({ description: 'Of an http endpoint, shown this once' })),
  },
  'DatabaseSlotWithSecret',
);

export const DatabaseTest = open(
  {
    ...tested,
    type: DatabaseType,
    role: nullable(Type.String({ description: 'The user that the database knows us as' })),
    tls: nullable(open({ enabled: Type.Boolean(), verified: Type.Boolean() })),
    schemaVersion: nullable(Type.Integer()),
    grants: Type.Array(Type.String()),
    egressIp: nullable(Type.String()),
  },
  'DatabaseTest',
);
export type DatabaseTest = Static<typeof DatabaseTest>;

const MediaTest = open(
  {
    ok: Type.Boolean(),
    error: nullable(Type.String()),
    checks: Type.Array(
      open({
        name: oneOf(['upload', 'read', 'delete', 'cors']),
        ok: Type.Boolean(),
        detail: Type.Optional(Type.String()),
      }),
    ),
    provider: Type.String(),
    at: Timestamp,
  },
  'MediaTest',
);
export { MediaTest };
export type MediaTest = Static<typeof MediaTest>;

export const StorageRecord = open(
  {
    mode: oneOf(['managed', 'byo_db']),
    bufferRetention: BufferRetention,
    database: open({
      active: nullable(SlotParam),
      slots: open({ a: nullable(DatabaseSlot), b: nullable(DatabaseSlot) }),
    }),
    sink: open({
      status: oneOf(['idle', 'healthy', 'degraded', 'failing']),
      lagSeconds: Type.Number(),
      backlog: Type.Integer({
        description: 'Changes that are not in the database yet; counted up to a million',
      }),
      refused: Type.Integer({
        description: 'Records that the database refuses: they stay with this service',
      }),
      erasures: Type.Integer({ description: 'Erasures that have not reached the database yet' }),
      lastSuccessAt: nullable(Timestamp),
      error: nullable(Type.String()),
      copy: nullable(
        open({
          kind: oneOf(['fill', 'rewrite', 'move', 'return']),
          done: Type.Integer(),
          total: Type.Integer(),
          percent: Type.Number(),
          rowsPerSecond: Type.Number(),
          secondsLeft: nullable(Type.Number()),
          startedAt: Timestamp,
        }),
      ),
    }),
    media: open({ provider: Type.String(), lastTest: nullable(MediaTest) }),
    egressIp: nullable(Type.String()),
    supported: open({
      databases: Type.Array(Type.String()),
      media: Type.Array(Type.String()),
      retentions: Type.Array(Type.String()),
    }),
  },
  'StorageRecord',
);
export type StorageRecord = Static<typeof StorageRecord>;
