import { bufferRetentions, databaseTypes, mediaProviders } from '@parley/protocol';
import type { BufferRetentionName, DatabaseSlot, StorageRecord } from '@parley/protocol';
import type { Context } from '../context.ts';
import { asideOf } from './connections.ts';
import { backlogOf, slotsOf, storageOf } from './sql.ts';
import type { Copy, SlotRow } from './sql.ts';
import { lagSeconds } from './state.ts';
import { mediaOf } from './sql/media.ts';

/** storage#record. */

const hourMs = 3_600_000;

export const viewSlot = (row: SlotRow): DatabaseSlot => ({
  type: row.type,
  url: row.shownUrl,
  schema: row.schema,
  replicaUrl: row.shownReplicaUrl,
  schemaVersion: row.schemaVersion,
  lastTest: row.lastTest,
  createdAt: row.createdAt,
});

export async function storageRecord(ctx: Context): Promise<StorageRecord> {
  const { db, env, services } = ctx;
  const storage = await storageOf(db, env.no);
  const slots = await slotsOf(db, env.no);
  const { now, backlog, oldest, refused, erasures } = await backlogOf(db, env.no);
  const retentionHours = (await services.storage.retentionMs(env.no)) / hourMs;
  const retention = Object.entries(bufferRetentions).find(([, hours]) => hours === retentionHours);
  const slotAt = (name: 'a' | 'b') => {
    const found = slots.find((s) => s.slot === name);
    return found ? viewSlot(found) : null;
  };
  const idle = storage.mode === 'managed';
  const active = slots.find((s) => s.slot === storage.active);
  const error = (active && asideOf(active)?.error.message) ?? storage.error;
  const reasons = slots.flatMap((s) => (s.eraseError === null ? [] : [` Slot ${s.slot}: ${s.eraseError}`]));
  const errors = [
    ...(idle || error === null ? [] : [error]),
    ...(erasures > 0
      ? [`Erasures that have not reached every database: ${erasures}.${reasons.join('')}`]
      : []),
    ...(storage.missing > 0
      ? [`Messages that were no longer in the database, and that history leaves out: ${storage.missing}.`]
      : []),
  ];
  return {
    mode: idle ? 'managed' : 'byo_db',
    bufferRetention: (retention?.[0] ?? '7d') as BufferRetentionName,
    database: { active: storage.active, slots: { a: slotAt('a'), b: slotAt('b') } },
    sink: {
      status: idle ? 'idle' : storage.status,
      lagSeconds: idle ? 0 : lagSeconds(oldest, now),
      // A change that was under way when the environment left its database may have left a row that no sink will write.
      backlog: idle ? 0 : backlog,
      refused,
      erasures,
      lastSuccessAt: storage.lastSuccessAt,
      error: errors.join(' ') || null,
      copy: storage.copy && viewCopy(storage.copy, Date.parse(now)),
    },
    media: await viewMedia(ctx),
    egressIp: services.storage.egressIp,
    supported: {
      databases: [...databaseTypes],
      media: [...mediaProviders],
      retentions: Object.keys(bufferRetentions),
    },
  };
}

async function viewMedia({ db, env }: Context): Promise<StorageRecord['media']> {
  const media = await mediaOf(db, env.no);
  return { ...media?.shown, provider: media?.provider ?? 'managed', lastTest: media?.test ?? null };
}

function viewCopy({ kind, done, total, startedAt }: Copy, now: number): StorageRecord['sink']['copy'] {
  const seconds = Math.max(0.001, (now - Date.parse(startedAt)) / 1_000);
  const rowsPerSecond = Math.round((done / seconds) * 10) / 10;
  return {
    kind,
    done,
    total,
    startedAt,
    rowsPerSecond,
    percent: total === 0 ? 100 : Math.min(100, Math.round((done / total) * 1_000) / 10),
    secondsLeft: rowsPerSecond === 0 ? null : Math.round((total - done) / rowsPerSecond),
  };
}
