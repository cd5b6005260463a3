/**
 * Bits of `conversations.flags` that an append looks at: where one is set, a client's message may be refused
 * (append_rules.sql.ts). They are read with the row that an append locks anyway.
 */
export const guards = {
  /** A direct conversation of two users of whom one blocks the other. */
  blockedPair: 256,
  /** Only owners and moderators send. */
  posting: 512,
  /** Members send at most one message in some time. */
  slowMode: 1024,
} as const;

/** All of them. */
export const guarded: number = Object.values(guards).reduce((all, bit) => all | bit, 0);

/** Where one of these is set, not every member may type (presence#typing-limits). */
export const typingLimits: number = guards.blockedPair | guards.posting;
