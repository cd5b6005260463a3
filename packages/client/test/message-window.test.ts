import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverItem } from '../src/state/message-item.ts';
import { MessageWindow } from '../src/state/message-window.ts';
import type { ToldReactions } from '../src/state/message-window.ts';
import type { EventFrame, Message } from '../src/types.ts';

/** sdk#reactions: counts and one's own come in several frames, in any order. */

const message: Message = {
  id: 'msg_1',
  conversationId: 'conv_1',
  seq: 1,
  senderId: 'ann',
  text: 'hi',
  replyTo: null,
  attachments: [],
  metadata: {},
  version: 1,
  createdAt: '2026-01-01T00:00:00.000Z',
  editedAt: null,
  deletedAt: null,
};
const likes = (count: number) => (count > 0 ? [{ emoji: '👍', count, userIds: ['bob'] }] : []);
const change = (userId: string, emoji: string, on = true) => ({ userId, emoji, on });
type Change = ReturnType<typeof change>;

function open(reactions?: Message['reactions']) {
  const window = new MessageWindow(() => 'ann');
  window.replace([reactions ? { ...message, reactions } : message], false, false);
  return {
    event: (revision: number, count: number, changes: Change[] = [], rest: Partial<ToldReactions> = {}) =>
      window.apply({
        t: 'event',
        cid: 'conv_1',
        seq: 10 + revision,
        e: 'message.reactions',
        d: { id: 'msg_1', revision, total: count, counts: likes(count), changes, more: false, ...rest },
      } as EventFrame),
    own: (revision: number, own: string[]) =>
      window.apply({ e: 'reaction.own', d: { id: 'msg_1', revision, own } }),
    shown: () => serverItem(window.items[0]!, undefined).reactions,
  };
}

test('the first event shows the counts and an empty list of one’s own, and nothing else', () => {
  const { event, shown } = open();
  assert.equal(shown(), undefined);
  event(1, 1, [change('bob', '👍')]);
  assert.deepEqual(shown(), { revision: 1, total: 1, counts: likes(1), own: [] });
});

test('where the last reaction was taken back, none show, and what comes late changes nothing', () => {
  const { event, own, shown } = open({ revision: 4, total: 1, counts: likes(1), own: ['👍'] });
  event(5, 0, [change('ann', '👍', false)]);
  assert.equal(shown(), undefined);
  event(4, 1);
  own(4, ['👍']);
  assert.equal(shown(), undefined);
  event(6, 1, [change('bob', '👍')]);
  assert.deepEqual(shown(), { revision: 6, total: 1, counts: likes(1), own: [] });
});

test('one’s own come with the changes of an event, unless it leaves some out, or with a later read', () => {
  const { event, own, shown } = open({ revision: 1, total: 1, counts: likes(1), own: ['a'] });
  event(4, 3, [change('ann', 'b'), change('bob', '👍'), change('ann', 'a', false)]);
  assert.deepEqual(shown()?.own, ['b']);
  event(40, 30, [change('ann', 'd')], { more: true });
  assert.deepEqual(shown()?.own, ['b'], 'not every change is known');
  own(20, ['b', 'c']);
  assert.deepEqual(shown()?.own, ['b', 'c'], 'older than the counts, and still the newest of its kind');
  event(41, 31, [], { own: ['d'] });
  assert.deepEqual(shown(), { revision: 41, total: 31, counts: likes(31), own: ['d'] });
});
