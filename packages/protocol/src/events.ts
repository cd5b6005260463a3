import { Type } from './type.ts';
import type { Static } from 'typebox';
import { nullable, open, optional, Seq, Timestamp } from './schemas/common.ts';
import { ownVotes, Poll } from './schemas/polls.ts';
import { reactionChanges, reactionCounts } from './schemas/reactions.ts';
import { Conversation, MessageOrTombstone, Role } from './schemas/resources.ts';
import { ConversationRules, Via } from './schemas/rules.ts';

const userId = Type.String({ minLength: 1 });
const actorId = nullable(userId);
const reason = Type.Union([Type.Literal('removed'), Type.Literal('left')]);

export const banned = Type.Literal(true, { description: 'The user was banned; otherwise missing' });

/** `changes` of conversation.updated: only the changed fields, with their new values. */
export const Changes = open({
  name: optional(nullable(Type.String())),
  metadata: optional(Type.Unsafe<Record<string, unknown>>({ type: 'object' })),
  rules: optional(ConversationRules),
});

/** events#types: the per-conversation seq stream. `d` by event name. */
export const socketEvents = {
  'message.new': open({
    message: MessageOrTombstone,
    clientMsgId: optional(
      nullable(
        Type.String({
          description:
            'That of the send, or null for a server’s without one. Events that are read later lack it',
        }),
      ),
    ),
  }),
  'message.updated': open({ message: MessageOrTombstone }),
  'message.deleted': open({ id: Type.String(), deletedAt: Timestamp, hard: Type.Boolean() }),
  'message.reactions': open({
    id: Type.String(),
    ...reactionCounts,
    ...reactionChanges,
    own: optional(
      Type.Array(Type.String(), {
        description: 'The caller’s own; only where a client reads the event over REST',
      }),
    ),
    ownVotes,
  }),
  'message.pinned': open({ id: Type.String(), pinned: Type.Boolean(), actorId, at: Timestamp }),
  'message.enriched': open({ id: Type.String(), poll: optional(Poll) }),
  'member.added': open({ userIds: Type.Array(userId), userId, actorId, via: Via }),
  'member.removed': open({ userId, actorId, reason, banned: optional(banned) }),
  'member.updated': open({ userId, role: Role, actorId }),
  'conversation.created': open({ conversation: Conversation }),
  'conversation.updated': open({ changes: Changes, actorId }),
  'conversation.deleted': open({}),
} as const;
export type SocketEvents = { [K in keyof typeof socketEvents]: Static<(typeof socketEvents)[K]> };
export type EventName = keyof SocketEvents;
export const eventNames = Object.keys(socketEvents) as EventName[];

/** `message.new` becomes `MessageNewEvent`. */
const recordTitle = (name: EventName): string =>
  `${name.replaceAll(/(?:^|\.)(\w)/g, (_, letter: string) => letter.toUpperCase())}Event`;

/** An event over REST: the `d` of the socket, with seq and type beside it. */
export const EventRecord = Type.Unsafe<EventRecord>(
  Type.Union(
    eventNames.map((name) =>
      open(
        { seq: Seq, type: Type.Literal(name), createdAt: Timestamp, ...socketEvents[name].properties },
        recordTitle(name),
      ),
    ),
    {
      title: 'EventRecord',
      discriminator: {
        propertyName: 'type',
        mapping: Object.fromEntries(
          eventNames.map((name) => [name, `#/components/schemas/${recordTitle(name)}`]),
        ),
      },
    },
  ),
);
export type EventRecord = {
  [K in EventName]: { seq: number; type: K; createdAt: string } & SocketEvents[K];
}[EventName];
