import type { Http } from './http.ts';
import type { OutboxEntry } from './outbox/storage.ts';
import type {
  Conversation,
  ConversationListItem,
  ConversationRulesChange,
  EventFrame,
  EventRecord,
  Member,
  Mention,
  Message,
  MessageOrTombstone,
  Tombstone,
  User,
} from './types.ts';

const seg = encodeURIComponent;

export interface MessagePage {
  data: MessageOrTombstone[];
  hasMore: boolean;
}
export interface NewConversation {
  type: 'direct' | 'group';
  members: string[];
  name?: string;
  metadata?: Record<string, unknown>;
  /** Of a group. */
  rules?: ConversationRulesChange;
}
export interface ConversationChange {
  name?: string | null;
  metadata?: Record<string, unknown>;
  rules?: ConversationRulesChange;
}
export interface Edit {
  text?: string;
  metadata?: Record<string, unknown>;
  /** Replaces the list. If the text changes without it, the mentioned users stay and their ranges are removed. */
  mentions?: Mention[];
  expectedVersion: number;
}

/**
 * sdk#procedure: the REST calls that the client makes. Calls of the sync machines are made without retries here, because
 * those retry themselves.
 */
export const createApi = (http: Http) => ({
  user: (id: string) => http.call<User>('GET', `/users/${seg(id)}`),
  lookUp: (userIds: string[]) => http.call<{ data: User[] }>('POST', '/users/lookup', { body: { userIds } }),
  conversations: (cursor?: string) =>
    http.call<{ data: ConversationListItem[]; nextCursor: string | null }>('GET', '/conversations', {
      query: { cursor },
    }),
  createConversation: (body: NewConversation) => http.call<Conversation>('POST', '/conversations', { body }),
  conversation: (cid: string) => http.call<Conversation>('GET', `/conversations/${seg(cid)}`),
  updateConversation: (cid: string, body: ConversationChange) =>
    http.call<Conversation>('PATCH', `/conversations/${seg(cid)}`, { body }),
  members: (cid: string, cursor?: string) =>
    http.call<{ data: Member[]; nextCursor: string | null }>('GET', `/conversations/${seg(cid)}/members`, {
      query: { limit: 200, cursor },
    }),
  addMembers: (cid: string, userIds: readonly string[]) =>
    http.call<{ data: Member[] }>('POST', `/conversations/${seg(cid)}/members`, { body: { userIds } }),
  removeMember: (cid: string, userId: string) =>
    http.call<void>('DELETE', `/conversations/${seg(cid)}/members/${seg(userId)}`),
  messages: (cid: string, query: { before?: number; after?: number; limit?: number }, retries?: number) =>
    http.call<MessagePage>('GET', `/conversations/${seg(cid)}/messages`, { query, retries }),
  sendMessage: ({ conversationId, clientMsgId, draft }: OutboxEntry) =>
    http.call<MessageOrTombstone>('POST', `/conversations/${seg(conversationId)}/messages`, {
      body: { clientMsgId, ...draft },
      retries: 0,
    }),
  editMessage: (id: string, body: Edit) => http.call<Message>('PATCH', `/messages/${seg(id)}`, { body }),
  deleteMessage: (id: string) => http.call<Tombstone>('DELETE', `/messages/${seg(id)}`),
  /** The events in the form in which the socket sends them. */
  events: async (cid: string, after: number) => {
    const { data, hasMore } = await http.call<{ data: EventRecord[]; hasMore: boolean }>(
      'GET',
      `/conversations/${seg(cid)}/events`,
      { query: { after, limit: 200 }, retries: 0 },
    );
    const frame = ({ seq, type, createdAt: _, ...d }: EventRecord) =>
      ({ t: 'event', e: type, cid, seq, d }) as EventFrame;
    return { data: data.map(frame), hasMore };
  },
  addPushDevice: (provider: string, token: string, voipToken?: string | null) =>
    http.call<unknown>('POST', '/push/devices', { body: { provider, token, voipToken } }),
  removePushDevice: (token: string) => http.call<void>('DELETE', `/push/devices/${seg(token)}`),
});
export type Api = ReturnType<typeof createApi>;
