import { sealRecord } from '../features/accounts/master-key.ts';
import type { OpenedStore } from '../features/accounts/master-key.ts';
import { replaceMasterKeyCheck } from '../features/accounts/sql/master-key.ts';
import type { Db } from '../platform/postgres/db.ts';
import type { Vault } from '../platform/secrets.ts';
import { sealedTables } from './columns.ts';
import type { SealedTable } from './columns.ts';
import { portion, programs, replace } from './sql.ts';

/**
 * Seals every value in the store with the current master key, while the service runs. All processes seal with that key by then
 * and can open both, so the order in which rows change does not matter. A rotation that was interrupted is repeated: what is
 * sealed with the current key stays as it is.
 *
 * 1. No process may seal with another key. 2. The store is moved to the current key: no process with another one can start.
 * 3. Again no process, because one may have started meanwhile. 4. Passes over all tables until one finds nothing to do. 5. The
 * older keys are no longer needed, and the store says so.
 */

export class RotationRefused extends Error {}

export interface Rotated {
  /** The fingerprint of the key that everything is sealed with. */
  key: string;
  resealed: number;
  checked: number;
}

const portionRows = 500;
/** A value that moves from one table to another during a pass is found by the next. */
const maxPasses = 5;
const maxNamed = 5;

export async function rotate(
  db: Db,
  opened: OpenedStore,
  progress: (text: string) => void = () => undefined,
): Promise<Rotated> {
  const { keys, record, fingerprint, vault } = opened;
  await requireOneKey(db, fingerprint);
  const under = { ...record, keys: [...new Set([...record.keys, fingerprint])] };
  const row = sealRecord(keys, under);
  await swap(db, opened.row, row);
  try {
    await requireOneKey(db, fingerprint);
  } catch (error) {
    await swap(db, row, opened.row);
    throw error;
  }
  let resealed = 0;
  for (let pass = 1; ; pass++) {
    const { changed, checked } = await walk(db, vault, progress);
    resealed += changed;
    if (changed === 0) {
      await swap(db, row, sealRecord(keys, { ...record, keys: [fingerprint] }));
      return { key: fingerprint, resealed, checked };
    }
    if (pass === maxPasses)
      throw new Error(`After ${pass} passes there are still values to seal. Repeat the command.`);
  }
}

async function swap(db: Db, from: Buffer, to: Buffer): Promise<void> {
  if (!(await replaceMasterKeyCheck(db, from, to)))
    throw new RotationRefused('Another process changed the keys of the store meanwhile. Repeat the command.');
}

async function requireOneKey(db: Db, fingerprint: string): Promise<void> {
  const others = (await programs(db)).filter(({ name }) => !name.endsWith(` key ${fingerprint}`));
  if (others.length === 0) return;
  const shown = others.map(({ name, count }) => `${name} (connections: ${count})`).join(', ');
  throw new RotationRefused(
    `Processes that seal with another key than ${fingerprint}, or do not say with which, use this store: ${shown}. ` +
      'Restart them with the new key as CHAT_MASTER_KEY and the older one as CHAT_MASTER_KEY_PREVIOUS. Nothing was changed.',
  );
}

async function walk(
  db: Db,
  vault: Vault,
  progress: (text: string) => void,
): Promise<{ changed: number; checked: number }> {
  const total = { changed: 0, checked: 0 };
  const lost: string[] = [];
  let lostCount = 0;
  for (const table of sealedTables) {
    const count = { changed: 0, checked: 0 };
    let after: unknown[] | undefined;
    for (;;) {
      const rows = await portion(db, table, after, portionRows);
      if (rows.length === 0) break;
      await resealRows(db, vault, table, rows, count, (place) => {
        lostCount++;
        if (lost.length < maxNamed) lost.push(place);
      });
      after = Object.keys(table.key).map((column) => rows.at(-1)![column]);
      if (rows.length < portionRows) break;
    }
    if (count.changed > 0)
      progress(`${table.table}: ${count.changed} of ${count.checked} values sealed again`);
    total.changed += count.changed;
    total.checked += count.checked;
  }
  if (lostCount > 0)
    throw new Error(
      `${lostCount} values open with none of the keys: ${lost.join(', ')}${lostCount > lost.length ? ' and others' : ''}. ` +
        'All others are sealed with the current key. Give the missing key as CHAT_MASTER_KEY_PREVIOUS and repeat the command.',
    );
  return total;
}

async function resealRows(
  db: Db,
  vault: Vault,
  table: SealedTable,
  rows: readonly Record<string, unknown>[],
  count: { changed: number; checked: number },
  onLost: (place: string) => void,
): Promise<void> {
  const changes: { row: Record<string, unknown>; column: string; values: readonly [unknown, unknown] }[] = [];
  for (const row of rows)
    for (const column of table.columns) {
      const value = row[column] as Buffer | string | null;
      if (value === null) continue;
      count.checked++;
      const bytes = typeof value === 'string' ? Buffer.from(value, 'base64') : value;
      try {
        const fresh = vault.reseal(bytes, table.context(row));
        if (fresh === null) continue;
        const stored = typeof value === 'string' ? fresh.toString('base64') : fresh;
        changes.push({ row, column, values: [value, stored] });
      } catch {
        const place = Object.keys(table.key)
          .map((name) => shownKey(row[name]))
          .join(' ');
        onLost(`${table.table}.${column} ${place}`);
      }
    }
  if (changes.length === 0) return;
  count.changed += await db.tx(async (tx) => {
    let changed = 0;
    for (const { row, column, values } of changes)
      if (await replace(tx, table, { row, column }, values)) changed++;
    return changed;
  });
}

const shownKey = (value: unknown): string =>
  Buffer.isBuffer(value) ? value.toString('hex').slice(0, 12) : String(value as string | number);
