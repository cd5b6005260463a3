/**
 * Which sockets are open, on all nodes: who is online, the 10-socket rule and the connection count of an environment.
 *
 * A user is online with at least one socket, and for a grace period after the last one closed. A node holds a lease; when it
 * ends without being renewed, the node's sockets are gone and another node takes note of it once.
 */
export interface SessionRef {
  node: string;
  id: string;
}

export interface UserRef {
  env: number;
  user: number;
}

/** What a node that died leaves behind. */
export interface Lost {
  /** Its sessions, as far as they were still registered. */
  sessions: (UserRef & { session: string })[];
  /** Of their users, those without a socket on any node: they are to be settled now. */
  offline: UserRef[];
}

export interface Added {
  /** There was no room: the socket is not registered. */
  refused: boolean;
  /** The oldest ones beyond `maxSockets`, already taken out. */
  evict: SessionRef[];
  /** The user was offline before. */
  cameOnline: boolean;
  /** Sockets of the environment on all nodes, with this one. */
  connections: number;
}

export interface PresenceRegistry {
  /**
   * Registers a socket, unless the environment then had more than `ceiling` on all nodes together (null: no ceiling), counted
   * after the user's oldest ones beyond `maxSockets` were taken out. However many come at once, never more than the ceiling get in.
   */
  add(ref: UserRef, session: string, maxSockets: number, ceiling?: number | null): Promise<Added>;
  /** `last`: no socket is left anywhere; the grace period has begun. */
  remove(ref: UserRef, session: string): Promise<{ last: boolean }>;
  /** After the grace period: true exactly once, when the user is offline now. */
  settle(ref: UserRef): Promise<boolean>;
  online(refs: readonly UserRef[]): Promise<boolean[]>;
  /** Who has a socket at this moment: the grace period does not count. */
  connected(refs: readonly UserRef[]): Promise<boolean[]>;
  /** Sockets of an environment on all nodes. */
  connections(env: number): Promise<number>;
  /** Called when another node's lease has ended: on one of the other nodes, in portions. */
  onDeadNode(listener: (lost: Lost) => void): void;
  /** Called when this node's users stood as offline although it had their sockets all the time: it was away, or Redis forgot. */
  onBack(listener: (users: UserRef[]) => void): void;
  close(): Promise<void>;
}
