import type { Clock } from '../clock.ts';
import { CountsByKey } from '../flow/counts-by-key.ts';
import type { PresenceRegistry, SessionRef, UserRef } from './port.ts';

interface Entry {
  /** Session ids in the order in which they were opened. */
  sessions: string[];
  graceUntil: number;
}

/** The registry of a single node, in a map. */
export function memoryPresence(options: { clock: Clock; node: string; graceMs: number }): PresenceRegistry {
  const { clock, node, graceMs } = options;
  const users = new Map<number, Entry>();
  const connections = new CountsByKey<number>();
  const isOnline = (entry: Entry | undefined): boolean =>
    entry !== undefined && (entry.sessions.length > 0 || entry.graceUntil > clock.monotonic());

  const online = (refs: readonly UserRef[]): Promise<boolean[]> =>
    Promise.resolve(refs.map((ref) => isOnline(users.get(ref.user))));
  return {
    add({ env, user }, session, maxSockets, ceiling = null) {
      let entry = users.get(user);
      const cameOnline = !isOnline(entry);
      const leaving = Math.max(0, (entry?.sessions.length ?? 0) + 1 - maxSockets);
      const open = connections.of(env) - leaving;
      if (ceiling !== null && open >= ceiling)
        return Promise.resolve({ refused: true, evict: [], cameOnline: false, connections: open });
      // Copied, because an array that was pushed to reserves room for sixteen more elements.
      if (entry) entry.sessions = [...entry.sessions, session];
      else users.set(user, (entry = { sessions: [session], graceUntil: 0 }));
      connections.add(env, 1);
      const evict: SessionRef[] = [];
      while (entry.sessions.length > maxSockets) {
        evict.push({ node, id: entry.sessions.shift()! });
        connections.add(env, -1);
      }
      return Promise.resolve({ refused: false, evict, cameOnline, connections: open + 1 });
    },
    remove({ env, user }, session) {
      const entry = users.get(user);
      const at = entry?.sessions.indexOf(session) ?? -1;
      if (!entry || at < 0) return Promise.resolve({ last: false });
      entry.sessions.splice(at, 1);
      connections.add(env, -1);
      if (entry.sessions.length > 0) return Promise.resolve({ last: false });
      entry.graceUntil = clock.monotonic() + graceMs;
      return Promise.resolve({ last: true });
    },
    endGrace({ user }) {
      const entry = users.get(user);
      if (!entry || isOnline(entry)) return Promise.resolve(false);
      users.delete(user);
      return Promise.resolve(true);
    },
    online,
    onlineEverywhere: online,
    connected: (refs) => Promise.resolve(refs.map((ref) => (users.get(ref.user)?.sessions.length ?? 0) > 0)),
    connections: (env) => Promise.resolve(connections.of(env)),
    onDeadNode: () => undefined,
    onBack: () => undefined,
    onReachable: () => undefined,
    close: () => Promise.resolve(),
  };
}
