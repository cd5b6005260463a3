import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { limits } from '../limits.ts';
import { Moment, nullable, open, optional, Timestamp } from './common.ts';

export const RestrictionKind = Type.Union([Type.Literal('ban'), Type.Literal('silence')]);

/** The fields of a new restriction besides its kind. */
export const restrictionFields = {
  until: optional(
    nullable(
      Type.Unsafe<string>({ ...Moment, description: 'When it ends; null, or left out: it has no end' }),
    ),
  ),
  reason: optional(
    nullable(Type.String({ maxLength: limits.restrictionReasonCharacters, description: 'Why, for people' })),
  ),
};

export const Restriction = open(
  {
    userId: Type.String({ minLength: 1, description: 'Who is restricted' }),
    kind: RestrictionKind,
    until: nullable(Timestamp),
    reason: nullable(Type.String()),
    by: nullable(Type.String({ description: 'Who did it; null: a server, or the dashboard' })),
    at: Timestamp,
  },
  'Restriction',
);
export const UserRestriction = open(
  {
    ...Restriction.properties,
    conversationId: nullable(
      Type.String({ description: 'The group where it holds; null: the whole environment' }),
    ),
  },
  'UserRestriction',
);
export type UserRestriction = Static<typeof UserRestriction>;
export type Restriction = Static<typeof Restriction>;
