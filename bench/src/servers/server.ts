import type { Account, WireName } from '../load/messages.ts';

/** A server under test: how it is started, given users and rooms, and stopped. */

export const serverNames = [
  'parley',
  'ws',
  'raw',
  'socketio-group',
  'socketio-row',
  'ejabberd',
  'prosody',
  'centrifugo',
  'centrifugo-redis',
] as const;
export type ServerName = (typeof serverNames)[number];

export interface Running {
  wire: WireName;
  port: number;
  /** The processes whose trees are the server with its database. */
  roots: number[];
  /** The process that holds the sockets. */
  gateway: number;
  /** Makes the plan's users and rooms, unless they are there from before. */
  accounts(plan: Plan): Promise<Account[]>;
  /** Messages in the store, where there is one. */
  stored?(): Promise<number>;
  stop(): Promise<void>;
}

export interface Server {
  name: ServerName;
  label: string;
  /** True: confirmed means committed to disk. */
  durable: boolean;
  start(): Promise<Running>;
}

/** Who is in which room, by number. */
export interface Plan {
  /** Names the plan's users and rooms, so that plans do not meet. */
  name: string;
  users: number;
  rooms: number[][];
  direct: boolean;
  /** For every user the room it sends to, or null. */
  speaks: (number | null)[];
}

const chunks = (users: number, size: number): number[][] =>
  Array.from({ length: Math.floor(users / size) }, (_, room) =>
    Array.from({ length: size }, (_, i) => room * size + i),
  );

export const groups = (name: string, users: number, size: number, direct = false): Plan => ({
  name,
  users,
  rooms: chunks(users, size),
  direct,
  speaks: Array.from({ length: users }, (_, user) =>
    user < Math.floor(users / size) * size ? Math.floor(user / size) : null,
  ),
});

/** Everybody in every room, one sender in each. */
export const bigRooms = (name: string, members: number, rooms: number): Plan => ({
  name,
  users: members,
  rooms: Array.from({ length: rooms }, () => Array.from({ length: members }, (_, i) => i)),
  direct: false,
  speaks: Array.from({ length: members }, (_, user) => (user < rooms ? user : null)),
});

export const loners = (name: string, users: number): Plan => ({
  name,
  users,
  rooms: [],
  direct: false,
  speaks: new Array<null>(users).fill(null),
});

/** The plan as accounts; `room` and `secret` say how the server calls them. */
export function accountsOf(
  plan: Plan,
  room: (index: number) => string,
  secret: (user: string, index: number) => string,
): Account[] {
  const rooms = Array.from({ length: plan.users }, () => [] as string[]);
  plan.rooms.forEach((members, index) => {
    for (const user of members) rooms[user]!.push(room(index));
  });
  return rooms.map((own, index) => {
    const name = userName(plan, index);
    const speaks = plan.speaks[index] ?? null;
    return { name, secret: secret(name, index), rooms: own, speaks: speaks === null ? null : room(speaks) };
  });
}

export const userName = (plan: Plan, index: number): string => `${plan.name}-u${index}`;
