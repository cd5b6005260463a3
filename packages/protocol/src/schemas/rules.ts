import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { limits } from '../limits.ts';
import { closed, nullable, open, optional, Timestamp } from './common.ts';

/** conversations#rules: what the owner of a group decides about it. */

const oneOf = <const V extends readonly string[]>(values: V, description: string) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: [...values], description });

const rules = {
  posting: optional(
    oneOf(['all', 'moderators'], 'Who may write; `moderators` is for announcements, and includes owners'),
  ),
  joining: optional(
    oneOf(
      ['closed', 'link', 'open'],
      'How users come in by themselves: not at all, by a link, or as they like',
    ),
  ),
  listed: optional(Type.Boolean({ description: 'Whether everybody finds the group; needs `joining: open`' })),
  slowModeSeconds: optional(
    Type.Integer({
      minimum: 0,
      maximum: limits.slowModeSeconds,
      description: 'A member sends at most one message in this time; 0: as many as it likes',
    }),
  ),
  pinning: optional(oneOf(['all', 'moderators'], 'Who may pin messages')),
  mentionEveryone: optional(oneOf(['all', 'moderators'], 'Who may mention `everyone` and `here`')),
  reacting: optional(oneOf(['all', 'none'], 'Whether messages can be reacted to')),
};
const levels = ['all', 'mentions'] as const;
const byDefault = 'Which messages members are pushed who chose no level';

/** Only those that differ from the default. */
export const ConversationRules = open(
  { ...rules, defaultLevel: optional(oneOf(levels, byDefault)) },
  'ConversationRules',
);
export type ConversationRules = Static<typeof ConversationRules>;

/** Only what changes. */
export const ConversationRulesChange = closed({
  ...rules,
  defaultLevel: optional(nullable(oneOf(levels, `${byDefault}; null: as in the environment`))),
});
export type ConversationRulesChange = Static<typeof ConversationRulesChange>;

/** What a group does unless it has another rule; `defaultLevel` is then the environment's. */
export const defaultRules: Required<Omit<ConversationRules, 'defaultLevel'>> = {
  posting: 'all',
  joining: 'closed',
  listed: false,
  slowModeSeconds: 0,
  pinning: 'all',
  mentionEveryone: 'moderators',
  reacting: 'all',
};

/** How a user became a member. */
export const Via = oneOf(
  ['added', 'join', 'link'],
  'How they became members: somebody added them, they joined, or came by a link',
);

/** joining#preview: a group as users outside of it see it. */
export const ConversationPreview = open(
  {
    id: Type.String({ pattern: '^conv_' }),
    type: Type.Literal('group'),
    name: nullable(Type.String()),
    metadata: Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
    memberCount: Type.Integer({ minimum: 0, description: 'How many members it has' }),
    rules: ConversationRules,
  },
  'ConversationPreview',
);
export type ConversationPreview = Static<typeof ConversationPreview>;

const link = {
  id: Type.String({ pattern: '^lnk_', description: 'The link’s id, `lnk_…`' }),
  uses: Type.Integer({ minimum: 0, description: 'How many joined by it' }),
  maxUses: nullable(Type.Integer({ minimum: 1, description: 'How many may join by it; null: no limit' })),
  expiresAt: Timestamp,
  createdAt: Timestamp,
  createdBy: nullable(Type.String({ description: 'Who made it; null: a server' })),
};
/** joining#links. */
export const InviteLink = open(link, 'InviteLink');
export type InviteLink = Static<typeof InviteLink>;
export const CreatedInviteLink = open(
  { ...link, token: Type.String({ description: 'What the link contains; it is shown this once' }) },
  'CreatedInviteLink',
);
export type CreatedInviteLink = Static<typeof CreatedInviteLink>;
