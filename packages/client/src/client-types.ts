import type { CallFrame, ConnectionState, SocketLike } from './connection/connection.ts';
import type { TokenProvider } from './connection/tokens.ts';
import type { WakeSource } from './connection/wake.ts';
import type { Clock } from './clock.ts';
import type { Conversations } from './conversations.ts';
import type { ErrorInfo, ParleyError } from './errors.ts';
import type { Storage } from './outbox/storage.ts';
import type { MessageItem } from './state/message-item.ts';
import type { PresenceApi } from './state/presence.ts';
import type { UsersApi } from './state/users.ts';
import type { Store } from './store.ts';
import type { Followers, FollowersOptions } from './sync/followers.ts';
import type {
  AckData,
  EphemeralFrames,
  FrameData,
  MessageOrTombstone,
  PresenceItem,
  SocketEvents,
} from './types.ts';
import type { CallOptions } from './http.ts';
import type { Uploads } from './uploads.ts';

export interface ClientOptions {
  /** The REST origin, such as `https://chat.example.com`. */
  url: string;
  /** The gateway's origin, when it is another one. */
  realtimeUrl?: string;
  /** The environment id; needed with development tokens. */
  env?: string;
  /** Called for the first token and whenever a fresh one is needed. */
  token: TokenProvider;
  /** Where unsent messages and the list of conversations are kept; in memory unless given. */
  storage?: Storage;
  /**
   * For bots, `catchUpAll` of `@parley/client/bots`: `event` and `message` bring what was missed while disconnected in every
   * conversation, each event once and in order, as long as the service keeps events. Otherwise they do so for conversations that are open.
   */
  catchUp?: (options: FollowersOptions) => Followers;
  /** Name and version of the application, for the server's logs. */
  sdk?: string;
  WebSocket?: new (url: string, protocols: string[]) => SocketLike;
  fetch?: typeof fetch;
  /** Network-online and foreground; the browser's events unless given. */
  wake?: WakeSource;
  clock?: Clock;
  random?: () => number;
  newId?: () => string;
}

/** `type` tells which `data` it is. */
export type ConversationEvent = {
  [Type in keyof SocketEvents]: { conversationId: string; seq: number; type: Type; data: SocketEvents[Type] };
}[keyof SocketEvents];

type Named<T extends { cid: string }> = Omit<T, 'cid'> & { conversationId: string };

export interface ClientEvents {
  state: { state: ConnectionState; error: ParleyError | null };
  /** A new message, by anybody, in any conversation. */
  message: { conversationId: string; seq: number; message: MessageOrTombstone };
  /** Events as they happen, each once; what was missed while disconnected according to `catchUp`. */
  event: ConversationEvent;
  conversation: { conversationId: string; change: 'added' | 'removed'; error?: ErrorInfo };
  receipt: Named<EphemeralFrames['receipt']>;
  typing: Named<EphemeralFrames['typing']>;
  presence: PresenceItem;
  /** A message of ours was sent, or failed for good. */
  sent: MessageItem;
  failed: MessageItem;
  /** Frames that this version does not know, calls among them. */
  frame: { t: string; d: unknown };
  /** For the log: each failed attempt to connect with what is known of it, and whatever went wrong in the background. */
  error: ParleyError;
}

export interface Client {
  readonly state: ConnectionState;
  readonly stateStore: Store<ConnectionState>;
  /** Known from the first token on. */
  readonly userId: string | null;
  readonly conversations: Conversations;
  readonly presence: PresenceApi;
  readonly users: UsersApi;
  readonly uploads: Uploads;
  readonly push: {
    add(provider: string, token: string): Promise<unknown>;
    remove(token: string): Promise<void>;
  };
  on<K extends keyof ClientEvents>(name: K, fn: (value: ClientEvents[K]) => void): () => void;
  /** Resolves when connected and synced; rejects when the connection failed for good. */
  connect(): Promise<void>;
  /** Keeps all state; `connect` goes on from there. */
  disconnect(): void;
  /** For parts with an entry point of their own: calls. */
  readonly wire: Wire;
}

export interface Wire {
  request<T extends CallFrame>(t: T, d: FrameData<T>, timeoutMs?: number): Promise<AckData<T>>;
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
  /** Of the socket that is open, or was last. */
  session(): string;
}
