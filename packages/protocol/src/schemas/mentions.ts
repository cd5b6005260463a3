import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { limits } from '../limits.ts';
import { closed, nullable, open, optional, UserId } from './common.ts';

/** The mentions of a message (mentions.md). The service never reads the text for names. */

const mentionType = Type.Unsafe<'user' | 'everyone' | 'here'>({
  type: 'string',
  enum: ['user', 'everyone', 'here'],
  description: 'A user, all members, or the members who are there',
});
const range = {
  offset: optional(
    Type.Integer({
      minimum: 0,
      description: 'Where the name stands in `text`, in UTF-16 code units; with `length`, or neither',
    }),
  ),
  length: optional(Type.Integer({ minimum: 1, description: 'In UTF-16 code units' })),
};

export const Mention = open(
  {
    type: mentionType,
    userId: optional(Type.String({ minLength: 1, description: 'With the type `user`' })),
    ...range,
  },
  'Mention',
);
export type Mention = Static<typeof Mention>;

/** The same as callers send it. */
export const NewMentions = Type.Array(
  closed({
    type: mentionType,
    userId: optional(Type.Unsafe<string>({ ...UserId, description: 'With the type `user`' })),
    ...range,
  }),
  {
    maxItems: limits.mentionsPerMessage,
    description: 'Whom the message is for; ranges ascend and do not overlap, and a user is named once',
  },
);
export type NewMention = Static<typeof NewMentions>[number];

const levels = ['all', 'mentions', 'none'] as const;
export const NotificationLevel = Type.Unsafe<(typeof levels)[number]>({
  type: 'string',
  enum: [...levels],
  description: 'Which messages one is pushed: all, those that name one or everyone, or none (muted)',
});
export type NotificationLevel = Static<typeof NotificationLevel>;

export const Notifications = open(
  {
    conversationId: Type.String(),
    level: NotificationLevel,
    until: nullable(
      Type.String({ format: 'date-time', description: 'When `none` ends; null: it has no end' }),
    ),
    muted: Type.Boolean({ description: 'The level is `none`' }),
  },
  'Notifications',
);
export type Notifications = Static<typeof Notifications>;
