import type { CloseCode, EphemeralFrames, TraceLine } from '@parley/protocol';
import type { LogEvent } from '../log/events.ts';
import type { Bus } from '../platform/bus/port.ts';
import type { MediaAnswer, MediaRequest } from './media-request.ts';

/**
 * What the nodes of one service tell each other: the kinds of messages, and on which channel each travels. Nodes of the
 * version before read and write the same, so messages only ever get additions.
 */

/** Which of a user's sockets a frame goes to, by session id. */
export interface SocketChoice {
  only?: string;
  except?: string;
  /** Asks each of the sockets to confirm that it got the frame (`onConfirmed`). A short name of what the frame is about. */
  confirm?: string;
}

/** A request to trace a user's sockets for some time (0 ends it), with the results sent to this node. */
export interface AskedTrace {
  id: string;
  env: number;
  user: number;
  node: string;
  ms: number;
}

/** What a node collected for a trace. */
interface Traced {
  id: string;
  lines: TraceLine[];
  dropped: number;
}

/** The body of each kind of message. */
export interface NodeMessages {
  event: LogEvent;
  /** A frame outside the seq stream for the members of the conversation, except this user. */
  relay: { frame: string; except: number | null };
  /** A mark that moved. Each node delays it for its own sockets as long as needed. */
  receipt: EphemeralFrames['receipt'];
  /** A frame for the sockets of the user. */
  toUser: { env: number; frame: string; where: SocketChoice };
  /** The user's sockets must close with this code. */
  userOut: CloseCode;
  /** The session with this id is ended by people who run the environment. */
  sessionOut: string;
  /** The session with this id must make room for a newer one of its user. */
  evict: string;
  /** A user blocked another, or unblocked it. */
  block: { user: number; other: number; cid: string; blocked: boolean };
  /** The user was silenced, somewhere or everywhere. */
  silence: string;
  /** A presence frame for the watchers of the user. */
  presence: string;
  /** The node with this name is alive. */
  beat: string;
  trace: AskedTrace;
  traced: Traced;
  /** A question to the media node, answered to the node `from`. */
  mediaRequest: { id: number; from: string; request: MediaRequest };
  mediaAnswer: { id: number; result: MediaAnswer };
}
export type NodeMessageKind = keyof NodeMessages;

/** A channel is named by two characters and what it is about, which handlers get. */
export const channels = {
  user: (no: number) => `u:${no}`,
  conversation: (cid: string) => `c:${cid}`,
  watchersOf: (user: number) => `w:${user}`,
  node: (name: string) => `n:${name}`,
  allNodes: 'n:all',
  mediaNode: (name: string) => `m:${name}`,
  mediaAnswers: (name: string) => `r:${name}`,
} as const;

/** The kind of a message, and the message; null if the text is neither. */
function parsed(payload: string): [kind: NodeMessageKind, message: never] | null {
  try {
    const found: unknown = JSON.parse(payload);
    return Array.isArray(found) ? (found as [NodeMessageKind, never]) : null;
  } catch {
    return null;
  }
}

/** @param about what the channel is about: the conversation's id, the user's number or the node's name. */
type Handler<M> = (message: M, about: string) => void;

/** The bus with its messages decoded: each kind has one handler. Publishes nothing where there is no other node. */
export class NodeBus {
  readonly #bus: Bus;
  readonly #handlers = new Map<NodeMessageKind, Handler<never>>();
  #restored: () => void = () => undefined;

  constructor(bus: Bus) {
    this.#bus = bus;
    bus.listen({
      message: (channel, payload) => this.#receive(channel, payload),
      restored: () => this.#restored(),
    });
  }

  get alone(): boolean {
    return this.#bus.alone;
  }

  /** Must be called before channels of this kind are subscribed. */
  on<K extends NodeMessageKind>(kind: K, handler: Handler<NodeMessages[K]>): void {
    this.#handlers.set(kind, handler);
  }

  /** The connection is back after a loss; messages sent in between are lost. */
  onRestored(handler: () => void): void {
    this.#restored = handler;
  }

  publish<K extends NodeMessageKind>(kind: K, message: NodeMessages[K], ...to: readonly string[]): void {
    if (this.#bus.alone) return;
    const payload = JSON.stringify([kind, message]);
    for (const channel of to) this.#bus.publish(channel, payload);
  }

  subscribe(channels: readonly string[]): Promise<void> {
    return this.#bus.subscribe(channels);
  }

  unsubscribe(channels: readonly string[]): void {
    this.#bus.unsubscribe(channels);
  }

  #receive(channel: string, payload: string): void {
    const [kind, message] = parsed(payload) ?? [];
    if (kind !== undefined) this.#handlers.get(kind)?.(message!, channel.slice(2));
  }
}
