import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { open, Timestamp } from './common.ts';

export const Block = open(
  {
    userId: Type.String({ minLength: 1, description: 'Who is blocked' }),
    blockedAt: Timestamp,
  },
  'Block',
);
export type Block = Static<typeof Block>;
