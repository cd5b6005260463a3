import { Type } from '../type.ts';
import { optional, page, pageQuery, UserId } from '../schemas/common.ts';
import { Block } from '../schemas/blocks.ts';
import { operation, pageCost, table } from './define.ts';

const common = { tag: 'Blocks', feature: 'blocks', callers: ['server', 'client'] } as const;
const params = { userId: UserId };
const by = (description: string) => optional(Type.Unsafe<string>({ ...UserId, description }));
const blocker = by('Who blocks; a server must say, a client must not');

export const blocksOperations = table(
  operation('blocks.add', 'PUT /v1/blocks/{userId}', {
    ...common,
    summary: 'Block a user',
    text: 'After this answer neither user can write, edit, react, upload or call in their direct conversation: `403 blocked`. The blocked user cannot add the other to groups, nor see the other’s presence. Messages and calls of the blocked user in groups no longer notify the other; both stay in their groups and see all messages. Blocking again changes nothing. A user blocks at most 1,000 others.',
    params,
    body: { byUserId: blocker },
    bodyOptional: true,
    response: Block,
    errors: ['not_found', 'limit_reached'],
    cost: 2,
  }),

  operation('blocks.remove', 'DELETE /v1/blocks/{userId}', {
    ...common,
    summary: 'Unblock a user',
    text: 'Also answers 204 if the user was not blocked. The direct conversation opens again unless the other blocks, too.',
    params,
    query: { byUserId: blocker },
    errors: ['not_found'],
    cost: 2,
  }),

  operation('blocks.list', 'GET /v1/blocks', {
    ...common,
    summary: 'Whom a user blocks, newest first',
    text: 'Nobody learns by whom they are blocked.',
    query: { userId: by('Whose blocks; a server must say, a client must not'), ...pageQuery },
    response: page(Block),
    errors: ['not_found'],
    cost: pageCost(100),
  }),
);
