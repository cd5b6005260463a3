import { join } from 'node:path';
import type { Config } from '../../config.ts';
import type { Db } from '../../platform/postgres/db.ts';
import {
  createVault,
  fingerprintOf,
  keyFile,
  loadMasterKey,
  loadPreviousKey,
  macKeyOf,
  parseMasterKey,
} from '../../platform/secrets.ts';
import type { MasterKeys, Vault } from '../../platform/secrets.ts';
import { keepMasterKeyCheck, masterKeyCheck, replaceMasterKeyCheck } from './sql/master-key.ts';

/**
 * The master keys of a process, and the row of the store that says which keys it needs (docs/operations/master-key.md).
 *
 * The row `master_key_check` is sealed with the key that the store belongs to, and holds a KeyRecord: the keys with which values
 * may be sealed, and the key of keyed hashes. A process whose keys do not include all of them does not start, and one that seals
 * with a key of its own adds it first. In a store whose key was never rotated the row holds the word `parley`.
 */
interface KeyRecord {
  /** Fingerprints. */
  keys: string[];
  mac: Uint8Array;
}

type KeySettings = Pick<Config, 'masterKey' | 'masterKeyPrevious' | 'masterKeyNext' | 'dataDir'>;

export interface OpenedStore {
  keys: MasterKeys;
  vault: Vault;
  /** Of the key that seals. */
  fingerprint: string;
  record: KeyRecord;
  /** The row as it is stored. */
  row: Buffer;
}

const context = 'master key check';
const neverRotated = 'parley';
/** How often the row is read again because another process has changed it. */
const maxTries = 10;

/** The row that says so, sealed with the first of these keys. */
export const sealRecord = (keys: MasterKeys, { keys: named, mac }: KeyRecord): Buffer =>
  createVault(() => keys).seal(
    JSON.stringify({ keys: named, mac: Buffer.from(mac).toString('base64') }),
    context,
  );

interface Given {
  current: Buffer;
  previous: Buffer | undefined;
  next: Buffer | undefined;
}

async function loadKeys(settings: KeySettings, storeIsNew: boolean): Promise<Given> {
  const { masterKey, masterKeyPrevious: previous, masterKeyNext: next, dataDir } = settings;
  return {
    current: await loadMasterKey(masterKey, dataDir, storeIsNew),
    previous: previous
      ? parseMasterKey(previous, 'CHAT_MASTER_KEY_PREVIOUS')
      : masterKey
        ? undefined
        : await loadPreviousKey(dataDir),
    next: next ? parseMasterKey(next, 'CHAT_MASTER_KEY_NEXT') : undefined,
  };
}

function read(row: Buffer, key: Uint8Array): KeyRecord | undefined {
  let text: string;
  try {
    text = createVault(key).open(row, context).toString();
  } catch {
    return undefined;
  }
  if (text === neverRotated) return { keys: [fingerprintOf(key)], mac: macKeyOf(key) };
  const { keys, mac } = JSON.parse(text) as { keys: string[]; mac: string };
  return { keys, mac: Buffer.from(mac, 'base64') };
}

/**
 * Reads the master keys, or makes one for a new database. Keys that cannot open all that is sealed in this database are refused.
 * @param announce tells other processes with which key this one seals, before the row is read: a rotation changes the row first
 * and then looks at the processes, so that one of the two notices the other.
 */
export async function openVault(
  db: Db,
  settings: KeySettings,
  announce: (fingerprint: string) => Promise<void>,
): Promise<OpenedStore> {
  const given = await loadKeys(settings, (await masterKeyCheck(db)) === undefined);
  const fingerprint = fingerprintOf(given.current);
  await announce(fingerprint);
  await keepMasterKeyCheck(db, createVault(given.current).seal(neverRotated, context));
  for (let attempt = 0; attempt < maxTries; attempt++) {
    const opened = await openRow(db, settings, given);
    const { keys, record, row } = opened;
    if (record.keys.includes(fingerprint)) return opened;
    const added = { ...record, keys: [...record.keys, fingerprint] };
    // The store still belongs to the key that opened the row.
    const owner = { ...keys, current: opened.owner };
    if (await replaceMasterKeyCheck(db, row, sealRecord(owner, added))) continue;
  }
  throw new Error('The row of the master key changes all the time. Try again.');
}

/** As openVault, but changes nothing and needs a store that has started once. */
export async function readVault(db: Db, settings: KeySettings): Promise<OpenedStore & { owner: Uint8Array }> {
  return openRow(db, settings, await loadKeys(settings, false));
}

async function openRow(
  db: Db,
  settings: KeySettings,
  { current, previous, next }: Given,
): Promise<OpenedStore & { owner: Uint8Array }> {
  const row = (await masterKeyCheck(db))!;
  const known = [current, previous, next].flatMap((key) => key ?? []);
  const owner = known.find((key) => read(row, key) !== undefined);
  const here = settings.masterKey ? 'CHAT_MASTER_KEY' : `that in ${join(settings.dataDir, keyFile)}`;
  if (!owner)
    throw new Error(
      settings.masterKey
        ? 'This store was sealed with another master key than CHAT_MASTER_KEY. Set it to the key that the store was created with, or that it was moved to.'
        : `This store was sealed with another master key than ${here}. Put the store's own file there, from your backup, or set CHAT_MASTER_KEY.`,
    );
  if (owner === next && !owner.equals(current) && !(previous && owner.equals(previous)))
    throw new Error(
      `This store was moved to the key of CHAT_MASTER_KEY_NEXT. Make it CHAT_MASTER_KEY, and the older one CHAT_MASTER_KEY_PREVIOUS.`,
    );
  const record = read(row, owner)!;
  const have = known.map(fingerprintOf);
  const missing = record.keys.filter((name) => !have.includes(name));
  if (missing.length > 0)
    throw new Error(
      `The rotation of the master key is not finished: values in this store may be sealed with the key ${missing.join(' and ')}, which is none of those given ` +
        `(${have.join(', ')}). Set CHAT_MASTER_KEY_PREVIOUS, or CHAT_MASTER_KEY_NEXT, to it, and run parley master-key rotate. Nothing was changed.`,
    );
  const keys: MasterKeys = {
    current,
    others: known.filter((key) => !key.equals(current)),
    mac: record.mac,
  };
  return { keys, vault: createVault(() => keys), fingerprint: fingerprintOf(current), record, row, owner };
}
