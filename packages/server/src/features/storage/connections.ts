import type { Clock, RandomBytes, Timers } from '../../platform/clock.ts';
import { openHistory } from '../../platform/history/open.ts';
import type { History } from '../../platform/history/port.ts';
import type { HistoryDeps } from '../../platform/history/shared.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import type { Vault } from '../../platform/secrets.ts';
import { slotContext } from './sql.ts';
import type { SlotName, SlotRow, SlotSecret } from './sql.ts';

/** Open connections to customers' databases: one pool for each slot in use, closed after a while without use. */
export interface Connections {
  deps(env: { no: number; id: string }): HistoryDeps;
  /** `read` opens the replica, if there is one. If opening fails, the next call tries again. */
  open(env: { no: number; id: string }, slot: SlotRow, purpose?: 'write' | 'read'): Promise<History>;
  /** Called after a failure: the next use connects again, perhaps to another address. */
  drop(env: number, slot: SlotName): void;
  secretsOf(env: number, slot: SlotRow): SlotSecret[];
  close(): Promise<void>;
}

const idleMs = 60_000;
const mostOpen = 500;

interface Entry {
  key: string;
  opened: Promise<History>;
  usedAt: number;
}

export function createConnections(options: {
  vault: Vault;
  outbound: Outbound;
  clock: Clock;
  timers: Timers;
  randomBytes: RandomBytes;
}): Connections {
  const { vault, outbound, clock } = options;
  const open = new Map<string, Entry>();

  const text = (env: number, slot: SlotName, sealed: Buffer): string =>
    vault.open(sealed, slotContext(env, slot)).toString();
  const secretsOf = (env: number, slot: SlotRow): SlotSecret[] =>
    slot.secrets === null ? [] : (JSON.parse(text(env, slot.slot, slot.secrets)) as SlotSecret[]);
  const deps = (env: { no: number; id: string }): HistoryDeps => ({
    outbound,
    tenant: env.no,
    env: env.id,
    random: options.randomBytes,
    seconds: () => Math.floor(clock.now() / 1000),
  });

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
    deps,
    secretsOf,
    open(env, slot, purpose = 'write') {
      const replica = purpose === 'read' && slot.replicaUrl !== null;
      const name = `${env.no} ${slot.slot} ${replica ? 'replica' : ''}`;
      const now = new Date(clock.now()).toISOString();
      const secrets = secretsOf(env.no, slot).filter((s) => s.until === null || s.until > now);
      const key = `${slot.changedAt} ${secrets.length}`;
      let entry = open.get(name);
      if (entry?.key !== key) {
        if (entry) void end(entry);
        tidy();
        const url = text(env.no, slot.slot, replica ? slot.replicaUrl! : slot.url);
        const source = { url, type: slot.type, schema: slot.schema, secrets: secrets.map((s) => s.secret) };
        entry = { key, opened: openHistory(source, deps(env)), usedAt: 0 };
        const made = entry;
        open.set(name, made);
        made.opened.catch(() => {
          if (open.get(name) === made) open.delete(name);
        });
      }
      entry.usedAt = clock.monotonic();
      return entry.opened;
    },
    drop(env, slot) {
      for (const name of [`${env} ${slot} `, `${env} ${slot} replica`]) {
        const entry = open.get(name);
        open.delete(name);
        if (entry) void end(entry);
      }
    },
    async close() {
      stop();
      await Promise.all([...open.values()].map(end));
      open.clear();
    },
  };
}
