import type { CallFrame, ConnectionState, SocketLike } from './connection/connection.ts';
import type { TokenProvider } from './connection/tokens.ts';
import type { WakeSource } from './connection/wake.ts';
import type { Clock } from './clock.ts';
import type { Conversations } from './conversations.ts';
import type { ErrorInfo, ParleyError } from './errors.ts';
import type { Storage } from './outbox/storage.ts';
import type { Mentions } from './features/mentions.ts';
import type { ConversationHandle } from './state/conversation.ts';
import type { MessageItem } from './state/message-item.ts';
import type { PresenceApi } from './state/presence.ts';
import type { UsersApi } from './state/users.ts';
import type { Store } from './store.ts';
import type { Followers, FollowersOptions } from './sync/followers.ts';
import type {
  AckData,
  ConversationPreview,
  EphemeralFrames,
  FrameData,
  MessageOrTombstone,
  PresenceItem,
  Report,
  ReportReason,
  SocketEvents,
} from './types.ts';
import type { CallOptions } from './http.ts';
import type { Uploads } from './features/uploads.ts';

export interface ClientOptions {
  /** The REST origin, such as `https://chat.example.com`. */
  url: string;
  /** The gateway's origin, if it differs from `url`. */
  realtimeUrl?: string;
  /** The environment id; needed with development tokens. */
  env?: string;
  /** Called for the first token and whenever a fresh one is needed. */
  token: TokenProvider;
  /** Where unsent messages and the list of conversations are stored; in memory unless given. */
  storage?: Storage;
  /**
   * For bots: `catchUpAll` of `@parley/client/bots`. With it, `event` and `message` report what was missed while
   * disconnected in every conversation, each event once and in order, as long as the service keeps events. Without
   * it, they do so only for open conversations.
   */
  catchUp?: (options: FollowersOptions) => Followers;
  /** The order of the list: by all that happens, edits, reactions and pins too (`activity`, the default), or by messages alone. */
  sort?: 'activity' | 'message';
  /** Name and version of the application, for the server's logs. */
  sdk?: string;
  WebSocket?: new (url: string, protocols: string[]) => SocketLike;
  fetch?: typeof fetch;
  /** Tells when the network is back or the app comes to the foreground; the browser's events unless given. */
  wake?: WakeSource;
  clock?: Clock;
  random?: () => number;
  newId?: () => string;
}

/** `type` determines the form of `data`. */
export type ConversationEvent = {
  [Type in keyof SocketEvents]: { conversationId: string; seq: number; type: Type; data: SocketEvents[Type] };
}[keyof SocketEvents];

type Named<T extends { cid: string }> = Omit<T, 'cid'> & { conversationId: string };

export interface ClientEvents {
  state: { state: ConnectionState; error: ParleyError | null };
  /** A new message, by anybody, in any conversation. */
  message: { conversationId: string; seq: number; message: MessageOrTombstone };
  /** A new message of somebody else that mentions this user, by name or with everybody. */
  mention: { conversationId: string; seq: number; message: MessageOrTombstone };
  /** The reactions to a message changed, or the votes for its poll, in any conversation; `data.id` is the message. */
  reaction: { conversationId: string; seq: number; data: SocketEvents['message.reactions'] };
  /** Something that belongs to this user alone changed, on any of its devices: a notification level, a block, a restriction. */
  personal: EphemeralFrames['personal'];
  /** Events as they happen, each once. `catchUp` decides about those missed while disconnected. */
  event: ConversationEvent;
  conversation: { conversationId: string; change: 'added' | 'removed'; error?: ErrorInfo };
  receipt: Named<EphemeralFrames['receipt']>;
  typing: Named<EphemeralFrames['typing']>;
  presence: PresenceItem;
  /** A message of this user was sent, or failed for good. */
  sent: MessageItem;
  failed: MessageItem;
  /** Frames that this version does not handle, those of calls among them. */
  frame: { t: string; d: unknown };
  /** For the log: each failed attempt to connect, and errors of background work. */
  error: ParleyError;
}

export interface BlocksApi extends Store<readonly string[]> {
  /** Shows at once; rejects, and is taken back, if it is refused. */
  add(userId: string): Promise<void>;
  remove(userId: string): Promise<void>;
}

/** What is reported. */
export type ReportTarget = { messageId: string } | { userId: string } | { conversationId: string };

export interface Client {
  readonly state: ConnectionState;
  readonly stateStore: Store<ConnectionState>;
  /** Known from the first token on. */
  readonly userId: string | null;
  /** What is on in the environment beyond the base, such as `reactions`; null before the first connection. */
  readonly features: readonly string[] | null;
  readonly conversations: Conversations;
  /** The messages that name this user, of all conversations. */
  readonly mentions: Mentions;
  /** The ids of the users whom this user blocks. Their messages in groups have `blocked`. */
  readonly blocks: BlocksApi;
  /** Reports a message, user or conversation to the application's team. Resolves with the same report as long as it is open. */
  report(target: ReportTarget, reason: ReportReason, note?: string): Promise<Report>;
  /** Joins the group that a link leads to, and opens it. */
  acceptInvite(token: string): Promise<ConversationHandle>;
  /** The group that a link leads to. */
  previewInvite(token: string): Promise<ConversationPreview>;
  readonly presence: PresenceApi;
  readonly users: UsersApi;
  readonly uploads: Uploads;
  readonly push: {
    /** @param voipToken only with apns: the PushKit token, to which incoming calls are pushed. */
    add(provider: string, token: string, voipToken?: string | null): Promise<unknown>;
    remove(token: string): Promise<void>;
  };
  on<K extends keyof ClientEvents>(name: K, fn: (value: ClientEvents[K]) => void): () => void;
  /**
   * Resolves when connected and synced; rejects if the connection failed for good. If `disconnect` comes first, it
   * settles as the next `connect` does.
   */
  connect(): Promise<void>;
  /** Keeps all state; a later `connect` continues from it. */
  disconnect(): void;
  /** For parts with a separate entry point, such as calls. */
  readonly wire: Wire;
}

export interface Wire {
  request<T extends CallFrame>(t: T, d: FrameData<T>, timeoutMs?: number): Promise<AckData<T>>;
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
  /** The id of the open session, or of the last one. */
  session(): string;
}
