import { page, pageQuery } from '../schemas/common.ts';
import { WordList, WordListName, WordListSummary, wordListFields } from '../schemas/words.ts';
import { operation, pageCost, table } from './define.ts';

const common = {
  tag: 'Word lists',
  callers: ['server', 'dashboard'],
  permission: 'moderation.manage',
} as const;
const params = { name: WordListName };

export const wordsOperations = table(
  operation('wordLists.set', 'PUT /v1/moderation/lists/{name}', {
    ...common,
    summary: 'Make a word list, or replace it',
    text: 'Messages and edits of clients are compared with all lists of the environment, within a second after a change: whole words, without case, accents and width; Chinese, Japanese and Korean anywhere. `reject` refuses the message with `403 message_rejected`, `mask` replaces the letters with stars, `report` stores the message and makes a report with reason `list`. Servers are not bound. There are 10 lists, with 5,000 entries of 64 characters in all.',
    params,
    body: wordListFields,
    response: WordList,
    errors: ['limit_reached'],
    cost: ({ entries }) => 2 + entries.length / 500,
  }),

  operation('wordLists.get', 'GET /v1/moderation/lists/{name}', {
    ...common,
    summary: 'Read a word list',
    text: 'With all its entries, as they were given.',
    params,
    response: WordList,
    errors: ['not_found'],
  }),

  operation('wordLists.list', 'GET /v1/moderation/lists', {
    ...common,
    summary: 'The word lists of the environment, by name, without their entries',
    text: 'There are at most 10.',
    query: pageQuery,
    response: page(WordListSummary),
    cost: pageCost(50),
  }),

  operation('wordLists.delete', 'DELETE /v1/moderation/lists/{name}', {
    ...common,
    summary: 'Delete a word list',
    text: 'Also answers 204 if there was none.',
    params,
  }),
);
