import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, clientFrames, frameTypes, operations } from '@parley/protocol';
import { Change, Reply } from '../../src/features/context.ts';
import type { Context } from '../../src/features/context.ts';
import { handlers } from '../../src/features/handlers.ts';
import type { TypedHandlers } from '../../src/features/handlers.ts';
import { bindOperationFrames } from '../../src/transport/gateway/operation-frames.ts';
import { createTurns } from '../../src/transport/turns.ts';
import type { Session } from '../../src/transport/gateway/session.ts';

/** ARCHITECTURE: one operation, one executor. Frames are bound from the protocol's table, as routes are. */

const ctx = { requestId: 'ses_1', env: { hooks: 0 } } as Context;
const session = { user: { env: 1 } } as Session;

/** The bound frames with executors that note what they are given. */
function bound(answers: Record<string, unknown>, refused?: ApiError) {
  const calls: unknown[] = [];
  const counted: string[] = [];
  const run = bindOperationFrames({
    handlers: Object.fromEntries(
      Object.keys(handlers).map((name) => [
        name,
        (given: Context, input: unknown) => {
          calls.push([name, given, input]);
          return Promise.resolve(answers[name]);
        },
      ]),
    ) as unknown as TypedHandlers,
    contextOf: () => ctx,
    count: async (_session, rate) => {
      counted.push(rate);
      if (refused) throw refused;
    },
    turns: createTurns(10),
  });
  return {
    run: (t: string, d: Record<string, unknown>) => run.get(t)!(session, d),
    calls,
    counted,
    types: run,
  };
}

test('every frame that names an operation is bound, and no other', () => {
  const named = frameTypes.filter((t) => 'runs' in clientFrames[t]);
  assert.deepEqual([...bound({}).types.keys()], named);
  assert.ok(named.length >= 5);
});

test('socket#same-operation: the executor gets the fields under the operation’s names, and the ack is made of its answer', async () => {
  const at = '2026-01-01T00:00:00.000Z';
  const message = { id: 'msg_1', seq: 7, version: 2, createdAt: at, editedAt: at, text: 'x' };
  const { run, calls, counted } = bound({
    'messages.send': message,
    'messages.update': new Change(200, message, 9),
    'messages.delete': new Change(200, { id: 'msg_1', seq: 7, deletedAt: at }, 10),
    'conversations.read': {
      conversationId: 'conv_1',
      lastReadSeq: 3,
      unreadCount: 4,
      mentionUnreadCount: 1,
    },
    sync: new Reply(200, { conversations: [], removed: [], cursor: 'c', fullReload: false }),
  });
  assert.deepEqual(await run('message.send', { cid: 'conv_1', clientMsgId: 'm', text: 'x' }), {
    clientMsgId: 'm',
    id: 'msg_1',
    seq: 7,
    createdAt: at,
  });
  assert.deepEqual(
    await run('message.update', { id: 'msg_1', text: 'x', expectedVersion: 1 }),
    { id: 'msg_1', seq: 9, version: 2, editedAt: at },
    'the seq of the event, not that of the message',
  );
  assert.deepEqual(await run('message.delete', { id: 'msg_1' }), { id: 'msg_1', seq: 10, deletedAt: at });
  assert.deepEqual(await run('read', { cid: 'conv_1', seq: 3 }), {
    cid: 'conv_1',
    lastReadSeq: 3,
    mentionUnreadCount: 1,
  });
  assert.deepEqual(await run('sync', { cursor: null }), {
    conversations: [],
    removed: [],
    cursor: 'c',
    fullReload: false,
  });
  assert.deepEqual(calls, [
    ['messages.send', ctx, { conversationId: 'conv_1', clientMsgId: 'm', text: 'x' }],
    ['messages.update', ctx, { messageId: 'msg_1', text: 'x', expectedVersion: 1 }],
    ['messages.delete', ctx, { messageId: 'msg_1' }],
    ['conversations.read', ctx, { conversationId: 'conv_1', seq: 3 }],
    ['sync', ctx, { cursor: null }],
  ]);
  assert.deepEqual(
    counted,
    ['messages.send', 'messages.update', 'messages.delete', 'conversations.read', 'sync'].map(
      (name) => operations[name as keyof typeof operations].rate,
    ),
    'socket#same-operation: each by its operation’s own limit',
  );
});

test('socket#same-operation: a frame over its limit runs nothing', async () => {
  const { run, calls } = bound({}, new ApiError('rate_limited'));
  await assert.rejects(run('message.send', { cid: 'conv_1', clientMsgId: 'm', text: 'x' }), {
    code: 'rate_limited',
  });
  assert.deepEqual(calls, []);
});
