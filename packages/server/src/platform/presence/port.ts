/**
 * Which sockets are open, on all nodes: who is online, the limit of 10 sockets per user, and the connection count of
 * an environment.
 *
 * A user is online with at least one socket, and for a grace period after the last one closed. A node holds a lease.
 * If it ends without being renewed, the node's sockets are gone and another node reports that once.
 */
export interface SessionRef {
  node: string;
  id: string;
}

export interface UserRef {
  env: number;
  user: number;
}

/** A socket whose client was found gone: it neither answered nor said that it closes. */
export interface LostSocket extends UserRef {
  /** Milliseconds since the client was last heard, at most. */
  silentMs: number;
}

/** What a dead node leaves behind. */
export interface Lost {
  /** The node's sessions that were still registered. */
  sessions: (UserRef & { session: string })[];
  /** Those of their users who have no socket on any node; `endGrace` must be called for them now. */
  offline: UserRef[];
}

export interface Added {
  /** True if there was no room, so that the socket is not registered. */
  refused: boolean;
  /** The user's oldest sessions beyond `maxSockets`, already removed from the registry. */
  evict: SessionRef[];
  /** True if the user was offline before. */
  cameOnline: boolean;
  /** How many sockets the environment has on all nodes, including this one. */
  connections: number;
}

export interface PresenceRegistry {
  /**
   * Registers a socket, unless the environment would then have more than `ceiling` sockets on all nodes together
   * (null means no ceiling). The user's oldest sockets beyond `maxSockets` are removed before counting. However many
   * arrive at once, never more than the ceiling are admitted.
   */
  add(ref: UserRef, session: string, maxSockets: number, ceiling?: number | null): Promise<Added>;
  /** `last` is true if no socket is left on any node; the grace period has then begun. */
  remove(ref: UserRef, session: string): Promise<{ last: boolean }>;
  /** Called after the grace period. Returns true exactly once, if the user is now offline. */
  endGrace(ref: UserRef): Promise<boolean>;
  /** Where the registry cannot be asked, by this node's own sockets alone. */
  online(refs: readonly UserRef[]): Promise<boolean[]>;
  /** The same, but null where the registry cannot be asked. */
  onlineEverywhere(refs: readonly UserRef[]): Promise<boolean[] | null>;
  /** Whether each user has a socket at this moment; the grace period does not count. */
  connected(refs: readonly UserRef[]): Promise<boolean[]>;
  /** How many sockets the environment has on all nodes. */
  connections(env: number): Promise<number>;
  /** The listeners are called on one of the other nodes when a node's lease has ended, in portions. */
  onDeadNode(listener: (lost: Lost) => void): void;
  /**
   * The listener is called if this node's users were registered as offline although it had their sockets all the
   * time, because the node or Redis was away.
   */
  onBack(listener: (users: UserRef[]) => void): void;
  /**
   * The listener is called when the registry can be asked again: what it said before came from this node's own
   * sockets alone.
   */
  onReachable(listener: () => void): void;
  close(): Promise<void>;
}
