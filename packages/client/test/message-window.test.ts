import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changeMessage } from '../src/features/changes.ts';
import { serverItem } from '../src/state/message-item.ts';
import { MessageWindow } from '../src/state/message-window.ts';
import type { ToldReactions } from '../src/state/told.ts';
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

const newWindow = (wake: () => void = () => undefined) => new MessageWindow(() => 'ann', wake);
const pinned = (pin: boolean, seq = 10): EventFrame => ({
  t: 'event',
  cid: 'conv_1',
  seq,
  e: 'message.pinned',
  d: { id: 'msg_1', pinned: pin, actorId: 'bob', at: '2026-01-01T00:00:01.000Z' },
});

function open(reactions?: Message['reactions']) {
  const window = newWindow();
  window.use(changeMessage);
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

test('sdk#polls: votes stand beside reactions; one’s own come only from what is told to oneself', () => {
  for (const anonymous of [false, true]) {
    const options = [
      { id: 1, text: 'a' },
      { id: 2, text: 'b' },
    ];
    const poll = { question: 'Which?', options, multiple: false, anonymous };
    const window = newWindow();
    window.use(changeMessage);
    window.replace([{ ...message, poll }], false, false);
    const shown = () => serverItem(window.items[0]!, undefined);
    const told = (e: string, d: object) =>
      window.apply({ t: 'event', cid: 'conv_1', seq: 10, e, d: { id: 'msg_1', ...d } } as EventFrame);
    const votes = [{ option: 2, count: 2, userIds: [] }];
    const changes = anonymous ? [] : [change('ann', 'poll:2')];
    told('message.reactions', { revision: 2, total: 0, counts: [], votes, changes, more: false });
    assert.deepEqual(shown().reactions?.votes, votes);
    assert.equal(shown().reactions?.ownVotes, undefined);
    // The own vote was the first of both, and is told after the event.
    window.apply({ e: 'reaction.own', d: { id: 'msg_1', revision: 1, own: [], ownVotes: [2] } });
    assert.deepEqual(shown().reactions?.ownVotes, [2]);
    const closed = { ...poll, closedAt: '2026-01-01T00:00:01.000Z' };
    told('message.enriched', { poll: closed });
    // The answer to an edit from before the close comes late.
    window.upsert({ ...message, poll, version: 2, text: 'edited' });
    assert.deepEqual([shown().text, shown().poll], ['edited', closed]);
    assert.deepEqual(shown().reactions?.votes, votes);
    told('message.reactions', { revision: 3, total: 0, counts: [], changes: [], more: false });
    assert.deepEqual(shown().reactions, undefined, 'the last vote was taken back');
  }
});

test('sdk#features: events of extensions wait for their module, in their order, and a page that comes meanwhile wins', () => {
  for (const paged of [false, true]) {
    let woken = 0;
    const window = newWindow(() => void woken++);
    window.replace([message], false, false);
    for (const pin of [true, false, true]) assert.equal(window.apply(pinned(pin)), true);
    window.apply({ ...pinned(true), d: { ...pinned(true).d, id: 'msg_2' } } as EventFrame);
    assert.equal(woken, 3, 'a message that is not in the window needs no module');
    assert.equal(window.items[0]!.pinnedAt, undefined);
    // It was unpinned before the page was read: what waits is older.
    if (paged) window.replace([message], false, false);
    window.use(changeMessage);
    assert.equal(window.items[0]!.pinnedBy, paged ? undefined : 'bob');
    window.apply(pinned(paged));
    assert.equal(window.items[0]!.pinnedBy, paged ? 'bob' : undefined, 'later ones show at once');
  }
});

test('sdk#features: what waits is applied to a page that was asked for before', () => {
  const window = newWindow();
  window.replace([], false, false);
  const finish = window.load();
  window.apply(pinned(true));
  finish(() => window.replace([message], false, false), true);
  window.use(changeMessage);
  assert.equal(window.items[0]!.pinnedBy, 'bob');
});

test('sdk#features: where too many events wait for their module, the page is loaded again', () => {
  const window = newWindow();
  window.replace([message], false, false);
  let waiting = 0;
  while (waiting < 10_000 && window.apply(pinned(true))) waiting++;
  assert.equal(waiting, 2_000);
  window.replace([message], false, false);
  assert.equal(window.apply(pinned(true)), true);
});
