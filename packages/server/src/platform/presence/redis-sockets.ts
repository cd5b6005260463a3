import { present, runScript } from '../redis.ts';
import type { RedisConnection } from '../redis.ts';
import type { SessionRef, UserRef } from './port.ts';
import type { RedisLease } from './redis-lease.ts';
import {
  addScript,
  keyOf,
  listKey,
  openKey,
  openScript,
  refOfKey,
  removeScript,
  userKeys,
} from './redis-scripts.ts';

/** A socket of this node. */
export interface Entry {
  key: string;
  session: string;
  /** Microseconds; '' until known. */
  openedAt: string;
  /** The lease under which the socket may be registered in Redis, and the one under which it certainly is. */
  tried: string;
  lease: string;
  closed: boolean;
  /** True if a registration got no answer: it may have happened, and nobody was told that the user came online by it. */
  isUnconfirmed: boolean;
  /** The running registration; never rejects. */
  pending: Promise<unknown>;
}

export interface Registered {
  refused: boolean;
  cameOnline: boolean;
  evicted: string[];
  connections: number;
}

const memberOf = (entry: Entry, lease: string): string => `${entry.session}|${lease}`;

/** The socket that a member of a set in Redis stands for. */
export function refOfMember(member: string): SessionRef {
  const at = member.lastIndexOf('|');
  return { id: member.slice(0, at), node: member.slice(at + 1, member.lastIndexOf('#')) };
}

/** This node's sockets as they stand in Redis. Every call fails at once while Redis is away. */
export function createRedisSockets(connection: RedisConnection, current: RedisLease, graceMs: number) {
  /** Which users have sockets (`keys` 1), or sockets or a grace period (2). */
  async function exist(refs: readonly UserRef[], keys: 1 | 2): Promise<boolean[]> {
    const client = present(connection);
    const found = await Promise.all(refs.map((ref) => client.exists(userKeys(keyOf(ref)).slice(0, keys))));
    return found.map((n) => n > 0);
  }

  /** Registers a socket under the present lease. */
  async function register(entry: Entry, maxSockets: number, ceiling: number | null): Promise<Registered> {
    const client = present(connection);
    const lease = await current.hold();
    // The user is listed first, so that everything under the lease can be found by its list.
    const [, sockets] = await Promise.all([
      client.sadd(listKey(lease), entry.key),
      client.zcard(userKeys(entry.key)[0]!),
    ]);
    const before = entry.tried === '' || entry.tried === lease ? '' : memberOf(entry, entry.tried);
    entry.tried = lease;
    const member = memberOf(entry, lease);
    // A socket that replaces an own one makes room first; all others need room before anything changes.
    const room =
      sockets < maxSockets ? await open(entry, member, ceiling, before === '' ? [] : [before]) : null;
    if (room?.refused) return { ...room, cameOnline: false, evicted: [] };
    const args = [member, entry.openedAt, maxSockets, before];
    const [came, at, evicted] = (await runScript(connection, addScript, userKeys(entry.key), args)) as [
      number,
      string,
      string[],
    ];
    entry.openedAt = at;
    entry.lease = lease;
    const out = before === '' ? evicted : [...evicted, before];
    const opened = room === null || out.length > 0 ? await open(entry, member, ceiling, out) : room;
    if (opened.refused) await runScript(connection, removeScript, userKeys(entry.key), [member, lease, 0]);
    return { ...opened, cameOnline: came === 1 && !opened.refused, evicted };
  }

  /** Adds the socket to its environment, after removing others. */
  async function open(
    entry: Entry,
    member: string,
    ceiling: number | null,
    out: readonly string[],
  ): Promise<{ refused: boolean; connections: number }> {
    const args = [member, ceiling ?? '', ...out];
    const keys = [openKey(refOfKey(entry.key).env)];
    const [added, connections] = (await runScript(connection, openScript, keys, args)) as [number, number];
    return { refused: added === 0, connections };
  }

  /** Removes a socket; returns true if it was the user's last. */
  async function takeOut(entry: Entry): Promise<boolean> {
    if (entry.tried === '') throw new Error('it was never registered');
    const client = present(connection);
    const member = memberOf(entry, entry.tried);
    const args = [member, entry.tried, graceMs];
    const [last] = await Promise.all([
      runScript(connection, removeScript, userKeys(entry.key), args),
      client.srem(openKey(refOfKey(entry.key).env), member),
    ]);
    return last === 1;
  }

  return { exist, register, takeOut };
}
