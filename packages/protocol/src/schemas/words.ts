import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { limits } from '../limits.ts';
import { open, Timestamp } from './common.ts';

export const WordListName = Type.String({
  pattern: '^[a-z0-9][a-z0-9_-]{0,63}$',
  description: '1 to 64 characters of a-z 0-9 _ -',
});

const oneOf = <const V extends readonly string[]>(values: V, description: string) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: [...values], description });

export const wordListFields = {
  entries: Type.Array(Type.String({ minLength: 1, maxLength: limits.wordCharacters }), {
    maxItems: limits.words,
    description:
      'Words, or rows of words. In an entry of one word a star stands for any letters: `foo*`, `*foo`, `*foo*` or `foo*bar`',
  }),
  action: oneOf(
    ['reject', 'mask', 'report'],
    'The message is refused, the letters become stars, or it is sent and reported',
  ),
  conversations: oneOf(['all', 'group'], '`group`: not in direct conversations'),
};

export const WordList = open({ name: Type.String(), ...wordListFields, updatedAt: Timestamp }, 'WordList');
export type WordList = Static<typeof WordList>;

export const WordListSummary = open(
  {
    name: Type.String(),
    entries: Type.Integer({ minimum: 0, description: 'How many entries it has' }),
    action: wordListFields.action,
    conversations: wordListFields.conversations,
    updatedAt: Timestamp,
  },
  'WordListSummary',
);
export type WordListSummary = Static<typeof WordListSummary>;
