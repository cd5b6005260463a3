import type { Logger } from '../../platform/logging.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { createPushProvider } from '../../platform/push/create.ts';
import type {
  PushDependencies,
  PushEndpoints,
  PushProvider,
  PushProviderName,
} from '../../platform/push/port.ts';
import type { Vault } from '../../platform/secrets.ts';
import { loadCredentials, openCredentials } from './sql/credentials.ts';
import type { SealedCredentials } from './sql/credentials.ts';

/** The providers in use by environment, each with the credentials it was made from. */
export type Providers = ReturnType<typeof createProviders>;

interface Pair {
  env: number;
  provider: PushProviderName;
}

interface Entry {
  no: number;
  envId: string;
  /** undefined if the credentials cannot be read. */
  provider: PushProvider | undefined;
  reasons: Set<string>;
}

const mostEntries = 500;
const mostReasons = 20;
const keyOf = ({ env, provider }: Pair): string => `${env} ${provider}`;

export function createProviders(options: {
  db: Queryable;
  vault: Vault;
  logger: Logger;
  /** The dependencies of an environment's providers. */
  dependencies: (env: number) => PushDependencies;
  endpoints?: PushEndpoints | undefined;
}) {
  const { db, vault, logger } = options;
  const entries = new Map<string, Entry>();

  /** Logs that a provider refused the credentials: once per reason, until they change. */
  function rejected(pair: Pair, reason: string): void {
    const entry = entries.get(keyOf(pair));
    if (!entry || entry.reasons.has(reason) || entry.reasons.size >= mostReasons) return;
    entry.reasons.add(reason);
    logger.warn(
      { env: entry.envId, provider: pair.provider, reason },
      reason === 'BadDeviceToken'
        ? 'APNs does not know a device: the credentials may be set to the wrong environment (sandbox or production)'
        : 'the push provider rejects what is sent with these credentials',
    );
  }

  function drop(key: string): void {
    entries.get(key)?.provider?.close();
    entries.delete(key);
  }

  function entryOf(row: SealedCredentials): Entry {
    const key = keyOf(row);
    const known = entries.get(key);
    if (known?.no === row.no) {
      // Moved to the end, so that the first entry is the one unused for the longest time.
      entries.delete(key);
      entries.set(key, known);
      return known;
    }
    drop(key);
    if (entries.size >= mostEntries) drop(entries.keys().next().value!);
    const entry: Entry = { no: row.no, envId: row.envId, provider: undefined, reasons: new Set() };
    entries.set(key, entry);
    try {
      entry.provider = createPushProvider(
        openCredentials(vault, row),
        options.dependencies(row.env),
        options.endpoints,
      );
    } catch {
      rejected(row, 'credentials_unreadable');
    }
    return entry;
  }

  return {
    load: async (pairs: readonly Pair[]): Promise<(PushProvider | undefined)[]> => {
      const rows = new Map((await loadCredentials(db, pairs)).map((row) => [keyOf(row), row]));
      return pairs.map((pair) => {
        const row = rows.get(keyOf(pair));
        return row && entryOf(row).provider;
      });
    },
    rejected,
    close: () => {
      for (const key of [...entries.keys()]) drop(key);
    },
  };
}
