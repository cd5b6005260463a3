import type {
  Call,
  Conversation,
  EventName,
  Message,
  MessageOrTombstone,
  ReactionChange,
  Reactions,
  Role,
  SocketEvents,
  WebhookEventName,
  WebhookEvents,
} from '@parley/protocol';

/**
 * Every event, described once: what an operation passes in, how it looks on the socket and over REST, whose routes it
 * changes, and what webhooks get.
 *
 * To add an event of a conversation: declare its `d` in the protocol package, add a line to `Told` and an entry to
 * `described`.
 * To add one for webhooks only: declare its `data` in the protocol package, then add to `ToldToWebhooks` and
 * `webhookOnly`.
 * The compiler demands whatever is missing, and `test/core/catalogue.test.ts` demands a way to make it happen.
 */

export interface Person {
  no: number;
  id: string;
}

/**
 * What an event of each type contains besides its place, time and actor. `message` and `users` are stored as numbers
 * and `data` as JSON; `conversation` is not stored, but shown as it is when the event is read.
 */
export interface Told {
  'message.new': { message: MessageOrTombstone; clientMsgId?: string | null | undefined };
  'message.updated': { message: MessageOrTombstone };
  'message.deleted': { message: MessageOrTombstone; data: { hard: boolean } };
  /** Read later it has the reactions as they are then, and no changes; for a client also its own. */
  'message.reactions': {
    message: Pick<MessageOrTombstone, 'id' | 'seq'>;
    reactions?: Reactions | undefined;
    changes?: ReactionChange[];
    more?: boolean;
  };
  'message.pinned': {
    message: Pick<MessageOrTombstone, 'id' | 'seq'>;
    data: { pinned: boolean; at: string };
  };
  /** Something was added to a message that is no edit. */
  'message.enriched': { message: MessageOrTombstone };
  /** Without `via` somebody added them. */
  'member.added': { users: Person[]; data?: { via?: 'join' | 'link' } };
  'member.removed': { users: Person[]; data: { reason: 'removed' | 'left'; banned?: true } };
  'member.updated': { users: Person[]; data: { role: Role } };
  'conversation.created': { users: Person[]; conversation: Conversation };
  'conversation.updated': {
    conversation: Conversation;
    data: SocketEvents['conversation.updated']['changes'];
  };
  'conversation.deleted': object;
}

/** The same for webhook events that are no events of a conversation. */
export interface ToldToWebhooks {
  'message.read': { users: Person[] };
  /** `mentioned` are numbers of those users whom the message mentions. */
  'notification.needed': {
    message: MessageOrTombstone;
    users: Person[];
    data: { mentioned?: number[] };
  };
  /** Who is restricted, and who did it, if that was a user. */
  'member.restricted': {
    users: Person[];
    data: Omit<WebhookEvents['member.restricted'], 'userId' | 'by'>;
  };
  /** Who blocks, and who is blocked. */
  'user.blocked': { users: Person[]; data: { blocked: boolean } };
  /** Whom it is about, if there is a user, and who reported it, if that was one. */
  'report.created': {
    users: Person[];
    data: Omit<WebhookEvents['report.created'], 'userId' | 'reporterId'> & {
      aboutUser: boolean;
      byUser: boolean;
    };
  };
  'report.resolved': { users: Person[]; data: Omit<WebhookEvents['report.resolved'], 'userId'> };
  /** `secret` is the id that was erased; it is stored sealed. */
  'user.deleted': { secret: string; data: { messages: 'anonymize' | 'delete' } };
  'sink.degraded': { data: WebhookEvents['sink.degraded'] };
  'sink.failing': { data: WebhookEvents['sink.failing'] };
  'sink.recovered': { data: WebhookEvents['sink.recovered'] };
  'hook.failing': { data: WebhookEvents['hook.failing'] };
  'hook.recovered': { data: WebhookEvents['hook.recovered'] };
  /** The call as it was at that moment, stored with the event. */
  'call.started': { call: Call };
  'call.ended': { call: Call };
}

interface Place {
  /** The conversation's id. */
  cid: string;
  seq: number;
  /** null if a server did it. */
  actorId: string | null;
}

/**
 * `kept` means that the data shows something that can change, so it is stored with the event. Other data is rendered
 * from the event's row when it is sent.
 */
type Webhook<E> = {
  [N in WebhookEventName]: { name: N; data(event: E): WebhookEvents[N]; kept?: true };
}[WebhookEventName];

interface Description<K extends EventName> {
  /** `d` on the socket; over REST the same fields beside seq, type and createdAt. */
  d(event: Place & Told[K]): SocketEvents[K];
  /** Whether the users of the event join or leave the conversation. */
  routes?: 'join' | 'leave';
  /** null if webhooks do not get the event. */
  webhook: Webhook<Place & Told[K]> | null;
}

const place = ({ cid, seq }: Place) => ({ conversationId: cid, seq });
const idOf = ({ users }: { users: Person[] }): string => users[0]!.id;
const idsOf = ({ users }: { users: Person[] }): string[] => users.map((u) => u.id);
const viaOf = ({ data }: Told['member.added']) => data?.via ?? 'added';
/** The conversation as of the event: when it is read later, there may be newer events. */
const asOf = (event: Place & { conversation: Conversation }): Conversation => ({
  ...event.conversation,
  lastSeq: event.seq,
});

const reactionsOf = ({ reactions, changes = [], more = false }: Told['message.reactions']) => ({
  revision: reactions?.revision ?? 0,
  total: reactions?.total ?? 0,
  counts: reactions?.counts ?? [],
  ...(reactions?.votes ? { votes: reactions.votes } : {}),
  changes,
  more,
});

const described = {
  'message.new': {
    // Events that are read later have no clientMsgId.
    d: ({ message, clientMsgId }) => (clientMsgId === undefined ? { message } : { message, clientMsgId }),
    // Nearly every message stays as it was; features/webhooks/sql/payloads.ts stores this data when one first changes.
    webhook: { name: 'message.created', data: (e) => ({ ...place(e), message: e.message as Message }) },
  },
  'message.updated': {
    d: ({ message }) => ({ message }),
    webhook: {
      name: 'message.updated',
      data: (e) => ({ ...place(e), message: e.message as Message }),
      kept: true,
    },
  },
  'message.deleted': {
    d: ({ message, data }) => ({ id: message.id, deletedAt: message.deletedAt!, hard: data.hard }),
    webhook: {
      name: 'message.deleted',
      data: (e) => ({ ...place(e), messageId: e.message.id, hard: e.data.hard }),
    },
  },
  'message.reactions': {
    d: (e) => ({
      id: e.message.id,
      ...reactionsOf(e),
      ...(e.reactions?.own ? { own: e.reactions.own } : {}),
      ...(e.reactions?.ownVotes ? { ownVotes: e.reactions.ownVotes } : {}),
    }),
    webhook: {
      name: 'message.reactions',
      data: (e) => {
        const { revision: _, ...told } = reactionsOf(e);
        return { ...place(e), messageId: e.message.id, ...told };
      },
      kept: true,
    },
  },
  'message.pinned': {
    d: ({ message, data, actorId }) => ({ id: message.id, pinned: data.pinned, actorId, at: data.at }),
    webhook: {
      name: 'message.pinned',
      data: (e) => ({
        ...place(e),
        messageId: e.message.id,
        pinned: e.data.pinned,
        actorId: e.actorId,
      }),
    },
  },
  'message.enriched': {
    d: ({ message: { id, poll } }) => ({ id, ...(poll ? { poll } : {}) }),
    webhook: null,
  },
  'member.added': {
    d: (e) => ({ userIds: idsOf(e), userId: idOf(e), actorId: e.actorId, via: viaOf(e) }),
    routes: 'join',
    webhook: {
      name: 'member.added',
      data: (e) => ({ ...place(e), userIds: idsOf(e), actorId: e.actorId, via: viaOf(e) }),
    },
  },
  'member.removed': {
    d: (e) => ({ userId: idOf(e), actorId: e.actorId, ...e.data }),
    routes: 'leave',
    webhook: {
      name: 'member.removed',
      data: (e) => ({ ...place(e), userId: idOf(e), actorId: e.actorId, ...e.data }),
    },
  },
  'member.updated': {
    d: (e) => ({ userId: idOf(e), role: e.data.role, actorId: e.actorId }),
    webhook: null,
  },
  'conversation.created': {
    d: (e) => ({ conversation: asOf(e) }),
    routes: 'join',
    webhook: { name: 'conversation.created', data: (e) => ({ conversation: asOf(e) }), kept: true },
  },
  'conversation.updated': {
    d: (e) => ({ changes: e.data, actorId: e.actorId }),
    webhook: {
      name: 'conversation.updated',
      data: (e) => ({ conversation: asOf(e), changes: e.data }),
      kept: true,
    },
  },
  'conversation.deleted': {
    d: () => ({}),
    webhook: { name: 'conversation.deleted', data: ({ cid }) => ({ conversationId: cid }) },
  },
} satisfies { [K in EventName]: Description<K> };

export const catalogue: { readonly [K in EventName]: Description<K> } = described;

type OfConversations = NonNullable<(typeof described)[EventName]['webhook']>['name'];
export type WebhookOnlyName = Exclude<WebhookEventName, OfConversations>;

export const webhookOnly: {
  readonly [N in WebhookOnlyName]: { data(event: Place & ToldToWebhooks[N]): WebhookEvents[N]; kept?: true };
} = {
  'message.read': {
    data: (e) => ({ conversationId: e.cid, userId: idOf(e), lastReadSeq: e.seq }),
  },
  'notification.needed': {
    data: (e) => ({
      conversationId: e.cid,
      messageId: e.message.id,
      recipientIds: idsOf(e),
      mentionedIds: idsOf({ users: e.users.filter(({ no }) => e.data.mentioned?.includes(no)) }),
    }),
  },
  'member.restricted': {
    data: (e) => ({ ...e.data, userId: idOf(e), by: e.users[1]?.id ?? null }),
  },
  'user.blocked': {
    data: (e) => ({ userId: idOf(e), blockedId: e.users[1]!.id, blocked: e.data.blocked }),
  },
  'report.created': {
    data: ({ users, data: { aboutUser, byUser, ...data } }) => ({
      ...data,
      userId: aboutUser ? idOf({ users }) : null,
      reporterId: byUser ? users.at(-1)!.id : null,
    }),
  },
  'report.resolved': { data: (e) => ({ ...e.data, userId: e.users[0]?.id ?? null }) },
  'user.deleted': {
    data: ({ secret, data }) => ({ userId: secret, messages: data.messages }),
  },
  'sink.degraded': { data: ({ data }) => data },
  'sink.failing': { data: ({ data }) => data },
  'sink.recovered': { data: ({ data }) => data },
  'hook.failing': { data: ({ data }) => data },
  'hook.recovered': { data: ({ data }) => data },
  'call.started': { data: ({ call }) => ({ call }), kept: true },
  'call.ended': { data: ({ call }) => ({ call }), kept: true },
};
