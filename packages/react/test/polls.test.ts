import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MessageItem } from '@parley/client';
import { act, connected, createElement, mount, provide, world } from './dom.ts';
import type { PollView } from '../src/hooks/index.ts';

const hooks = await import('../src/hooks/index.ts');

const poll = {
  question: 'When do we meet?',
  options: ['Monday', 'Tuesday', 'Never'].map((text, i) => ({ id: i + 1, text })),
  multiple: false,
  anonymous: false,
};
const message = (conversationId: string, more: Partial<MessageItem>): MessageItem => ({
  key: 'k',
  status: 'sent',
  id: 'msg_1',
  seq: 2,
  conversationId,
  senderId: 'ann',
  text: poll.question,
  replyTo: null,
  attachments: [],
  metadata: {},
  version: 1,
  createdAt: '2026-01-01T00:00:00.000Z',
  editedAt: null,
  deletedAt: null,
  poll,
  ...more,
});

async function page(userId = 'ann', role: 'moderator' | 'member' = 'member') {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  server.conversations.get(cid)!.members.get(userId)!.role = role;
  const user = await connected(client(userId), clock);
  Object.defineProperty(user, 'features', { value: ['polls'] });
  const asked: unknown[] = [];
  const { open } = user.conversations;
  user.conversations.open = (id) => {
    const conversation = open(id);
    conversation.vote = (_id, options) => (
      asked.push(options),
      Promise.resolve({ revision: 1, total: 0, counts: [] })
    );
    conversation.closePoll = () => (asked.push('close'), Promise.resolve(poll));
    return conversation;
  };
  let view: PollView | undefined;
  const One = ({ item }: { item: MessageItem }) => {
    view = hooks.usePoll(item);
    return null;
  };
  const node = (more: Partial<MessageItem>) =>
    provide({ client: user }, createElement(One, { item: message(cid, more) }));
  const { render, unmount } = await mount(node({}));
  /** The members arrive, too. */
  const settle = () => act(() => clock.advance(0));
  await settle();
  return {
    asked,
    unmount,
    settle,
    view: () => view!,
    show: (more: Partial<MessageItem>) => render(node(more)),
  };
}

test('usePoll: results as shares; one choice replaces the other and is taken back; the author closes', async () => {
  const { asked, view, show, unmount } = await page();
  assert.deepEqual([view().total, view().closed, view().canVote, view().canClose], [0, false, true, true]);
  await act(() => view().toggle(2));
  const votes = [
    { option: 2, count: 3, userIds: ['ann', 'bob', 'cy'] },
    { option: 3, count: 1, userIds: ['dan'] },
  ];
  await show({ reactions: { revision: 4, total: 0, counts: [], votes, own: [], ownVotes: [2] } });
  assert.deepEqual(
    view().options.map(({ count, share, own }) => [count, share, own]),
    [
      [0, 0, false],
      [3, 0.75, true],
      [1, 0.25, false],
    ],
  );
  await act(() => view().toggle(2));
  await act(() => view().toggle(3));
  await act(() => view().close());
  assert.deepEqual(asked, [[2], [], [3], 'close']);
  await show({ poll: { ...poll, closedAt: '2026-01-01T00:00:00.000Z' } });
  assert.deepEqual([view().closed, view().canVote, view().canClose], [true, false, false]);
  await show({ poll: { ...poll, closesAt: '2020-01-01T00:00:00.000Z' } });
  assert.equal(view().closed, true, 'its time is over');
  await unmount();
});

test('usePoll: several choices are added and taken back one by one; a member closes no poll of others', async () => {
  const { asked, view, show, unmount } = await page('bob');
  const reactions = { revision: 1, total: 0, counts: [], own: [], ownVotes: [1, 3] };
  await show({ poll: { ...poll, multiple: true }, reactions });
  assert.equal(view().canClose, false);
  await act(() => view().toggle(2));
  await act(() => view().toggle(3));
  assert.deepEqual(asked, [[1, 3, 2], [1]]);
  await show({ id: null, seq: null, status: 'pending' });
  assert.equal(view().canVote, false, 'not sent yet');
  await unmount();
});

test('usePoll: a moderator closes polls of others', async () => {
  const { asked, view, settle, unmount } = await page('bob', 'moderator');
  for (let i = 0; i < 5 && !view().canClose; i++) await settle();
  assert.equal(view().canClose, true);
  await act(() => view().close());
  assert.deepEqual(asked, ['close']);
  await unmount();
});
