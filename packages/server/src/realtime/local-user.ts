import type { LogEvent } from '../log/events.ts';

/** The users with sockets on this node, their sockets and the routes of their conversations. */

/** Gets what goes over a user's sockets (`tracing.ts`). */
export interface FrameTrace {
  /** @param frame the whole WebSocket frame with its header. */
  sent(session: LiveSession, frame: Buffer): void;
  received(session: LiveSession, frame: object, bytes: number): void;
  closed(session: LiveSession): void;
}

/** A user with sockets on this node. */
export interface LocalUser {
  env: number;
  no: number;
  id: string;
  sessions: LiveSession[];
  routes: Route[];
  /** It is silenced somewhere, or was when it connected: the store is asked before its typing is relayed. */
  silenced: boolean;
  /** Set while memberships are being loaded: the conversations left meanwhile, and with which seq. */
  loading: { left: Map<string, number>; done: Promise<void> } | null;
  /** Set while somebody follows the user's sockets. */
  trace: FrameTrace | null;
}

/** A conversation with a connected member on this node. */
export interface Route {
  cid: string;
  lastSeq: number;
  users: LocalUser[];
  /** For each of them, the first seq that it gets. It left with an event from there on, or not at all. */
  from: number[];
  /** Not every member may type: the store is asked (presence#typing-limits). */
  limited: boolean;
  held: Map<number, LogEvent> | null;
}

export type SessionState = 'opened' | 'authenticating' | 'live' | 'closed';

/** A socket of a user, as far as events, presence and marks are concerned; the gateway has the rest of it. */
export interface LiveSession {
  readonly id: string;
  state: SessionState;
  /** The code with which either side closed it; 0 while it is open. */
  readonly closeCode: number;
  user: LocalUser | undefined;
  /** Numbers of the users whose presence it watches. */
  watching: Set<number> | undefined;
  /** `delivered` marks that wait to be written. */
  delivered: Map<string, number> | undefined;
  send(frame: Buffer): void;
  askToConfirm(about: string): void;
  close(code: number): void;
}
