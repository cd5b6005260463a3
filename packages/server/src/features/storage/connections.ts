import type { Clock, Timers } from '../../platform/clock.ts';
import { HistoryError, QueueFull } from '../../platform/history/port.ts';
import type { History } from '../../platform/history/port.ts';
import type { OnFault } from '../../platform/history/process.ts';
import type { RemoteHistories, Tenant } from '../../platform/history/remote.ts';
import { TargetError } from '../../platform/history/target.ts';
import type { HistorySource } from '../../platform/history/target.ts';
import type { Vault } from '../../platform/secrets.ts';
import { slotContext } from './sql.ts';
import type { SlotName, SlotRow, SlotSecret } from './sql.ts';

/** Open connections to customers' databases: one pool for each slot in use, closed after a while without use. */
export type Connections = ReturnType<typeof createConnections>;

const idleMs = 60_000;
const mostOpen = 500;

interface Entry {
  key: string;
  opened: Promise<History>;
  usedAt: number;
}

/** Whether a connection cannot be used any more after this error. */
export const isDisconnected = (error: unknown): boolean =>
  error instanceof HistoryError &&
  !(error instanceof QueueFull) &&
  ['unreachable', 'timeout', 'authentication', 'tls', 'overloaded'].includes(error.errorClass);

/**
 * Why a slot is not connected to; null if it is. It is set aside if its database stopped the process that speaks with
 * databases twice within an hour, or the operator says so. Nothing connects to it for an hour, in no process and after
 * no restart, but a test by hand does. All times are of the store's clock.
 */
export function asideOf({ aside }: Pick<SlotRow, 'aside'>) {
  if (aside === null) return null;
  const byOperator = aside === 'operator';
  const why = byOperator
    ? 'the operator of this service did so'
    : `what it sent stopped the process that reads it twice within an hour. It is tried again at ${aside}, or when it is tested`;
  return { byOperator, error: new HistoryError('set_aside', undefined, why) };
}

export function createConnections(options: {
  vault: Vault;
  histories: Pick<RemoteHistories, 'open'>;
  /** The same in a separate process, for databases that are tried by hand or did harm within the last hour. */
  trials: Pick<RemoteHistories, 'open' | 'migrate'>;
  /** A slot's database stopped the process that reads what it sends. */
  onFault(env: Tenant, slot: SlotName, fault: Parameters<OnFault>[0]): void;
  clock: Clock;
  timers: Timers;
}) {
  const { vault, trials, clock } = options;
  const open = new Map<string, Entry>();

  const text = (env: number, slot: SlotName, sealed: Buffer): string =>
    vault.open(sealed, slotContext(env, slot)).toString();
  const secretsOf = (env: number, slot: SlotRow): SlotSecret[] =>
    slot.secrets === null ? [] : (JSON.parse(text(env, slot.slot, slot.secrets)) as SlotSecret[]);
  const faultOf =
    (env: Tenant, slot: SlotName): OnFault =>
    (fault) =>
      options.onFault(env, slot, fault);
  async function opening(
    env: Tenant,
    slot: SlotRow,
    url: Buffer,
    histories: Pick<RemoteHistories, 'open'>,
  ): Promise<History> {
    const source: HistorySource = {
      url: text(env.no, slot.slot, url),
      type: slot.type,
      schema: slot.schema,
      secrets: validSecrets(env, slot).map((s) => s.secret),
    };
    try {
      return await histories.open(source, env, faultOf(env, slot.slot));
    } catch (error) {
      // It was valid when it was saved.
      if (error instanceof TargetError)
        throw new HistoryError(
          'failed',
          undefined,
          `its URL is no longer valid: ${error.message.slice(0, -1)}`,
        );
      throw error;
    }
  }
  function validSecrets(env: Tenant, slot: SlotRow): SlotSecret[] {
    const now = new Date(clock.now()).toISOString();
    return secretsOf(env.no, slot).filter((s) => s.until === null || s.until > now);
  }

  const end = (entry: Entry): Promise<void> =>
    entry.opened.then(
      (history) => history.close(),
      () => undefined,
    );

  function tidy(): void {
    const now = clock.monotonic();
    for (const [name, entry] of open)
      if (now - entry.usedAt > idleMs || open.size > mostOpen) {
        open.delete(name);
        void end(entry);
      }
  }
  // Not only when another is opened: drivers keep connections of their own as long as they are open.
  const stop = options.timers.every(idleMs, tidy);

  return {
    secretsOf,
    urlOf: (env: number, slot: SlotRow): string => text(env, slot.slot, slot.url),
    /** Makes the tables, for a slot that is or is not there yet. */
    migrate: (env: Tenant, slot: SlotName, source: HistorySource) =>
      trials.migrate(source, env, faultOf(env, slot)),
    /** `read` opens the replica, if there is one. If opening fails, the next call tries again. A slot that is set aside is not opened. */
    open(env: Tenant, slot: SlotRow, purpose: 'write' | 'read' = 'write'): Promise<History> {
      const aside = asideOf(slot);
      if (aside) return Promise.reject(aside.error);
      const replica = purpose === 'read' && slot.replicaUrl !== null;
      const name = `${env.no} ${slot.slot} ${replica ? 'replica' : ''}`;
      const key = `${slot.changedAt} ${validSecrets(env, slot).length} ${slot.suspect}`;
      let entry = open.get(name);
      if (entry?.key !== key) {
        if (entry) void end(entry);
        tidy();
        const histories = slot.suspect ? trials : options.histories;
        const url = replica ? slot.replicaUrl! : slot.url;
        entry = { key, opened: opening(env, slot, url, histories), usedAt: 0 };
        const made = entry;
        open.set(name, made);
        made.opened.catch(() => {
          if (open.get(name) === made) open.delete(name);
        });
      }
      entry.usedAt = clock.monotonic();
      return entry.opened;
    },
    /** A connection for one test by hand, also of a slot that is set aside, but not by the operator. Who asked closes it. */
    tryOut(env: Tenant, slot: SlotRow): Promise<History> {
      const aside = asideOf(slot);
      return aside?.byOperator ? Promise.reject(aside.error) : opening(env, slot, slot.url, trials);
    },
    /** Called after a failure: the next use connects again, perhaps to another address. */
    drop(env: number, slot: SlotName): void {
      for (const name of [`${env} ${slot} `, `${env} ${slot} replica`]) {
        const entry = open.get(name);
        open.delete(name);
        if (entry) void end(entry);
      }
    },
    async close(): Promise<void> {
      stop();
      await Promise.all([...open.values()].map(end));
      open.clear();
    },
  };
}
