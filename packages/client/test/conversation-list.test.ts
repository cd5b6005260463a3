import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConversationList } from '../src/state/conversation-list.ts';
import type { ConversationListItem, EventFrame, SyncResult } from '../src/types.ts';

const cid = 'conv_a';
function setup({ byMessage = false } = {}) {
  const asked = { doubts: 0, wentBack: [] as string[] };
  const list = new ConversationList({
    byMessage,
    doubt: () => void asked.doubts++,
    readPending: () => false,
    wentBack: (id) => void asked.wentBack.push(id),
    mentions: ({ mentions }) => mentions !== undefined,
    levelEnds: () => undefined,
    now: () => '2026-01-01T00:00:00Z',
  });
  list.me = 'ann';
  const sync = (lastSeq: number, unreadCount: number): SyncResult => ({
    conversations: [{ id: cid, lastSeq, unreadCount }],
    removed: [],
    cursor: 'x',
    fullReload: false,
  });
  const message = (seq: number, senderId: string | null = 'bob') =>
    ({
      t: 'event',
      e: 'message.new',
      cid,
      seq,
      d: {
        message: {
          id: `msg_${seq}`,
          seq,
          senderId,
          text: 'x',
          attachments: [],
          createdAt: '',
          deletedAt: null,
        },
      },
    }) as unknown as EventFrame;
  list.applySync(sync(10, 3), list.begin(), true);
  return { list, sync, message, asked, unread: () => list.store.get().unreadTotal };
}

test('sdk#sort: the list is sorted by activity, or by messages alone: a conversation without any by when it was made', () => {
  const item = (id: string, lastActivityAt: string, lastMessageAt: string | null, createdAt: string) =>
    ({
      id,
      lastSeq: 1,
      unreadCount: 0,
      lastReadSeq: 1,
      lastActivityAt,
      lastMessageAt,
      createdAt,
    }) as ConversationListItem;
  const order = (byMessage: boolean): string => {
    const { list } = setup({ byMessage });
    const page = [
      item('reacted', '9', '2', '1'),
      item('empty', '5', null, '5'),
      item('written', '4', '4', '3'),
    ];
    list.applyPage(page, list.begin());
    return list.store
      .get()
      .items.map(({ id }) => id)
      .join(' ');
  };
  assert.equal(order(false), 'reacted empty written');
  assert.equal(order(true), 'empty written reacted');
});

test('messages of others and of the system count once, own ones never', () => {
  const { list, message, unread } = setup();
  assert.equal(unread(), 3);
  assert.ok(list.applyEvent(message(11)));
  assert.equal(list.applyEvent(message(11)), null);
  assert.ok(list.applyEvent(message(12, null)));
  assert.equal(unread(), 5);
  assert.ok(list.applyEvent(message(13, 'ann')));
  assert.equal(unread(), 0);
});

test('sdk#delivered: a message that the server sent on our behalf leaves our read mark, so that reading can still move it', () => {
  const { list, sync, message, asked, unread } = setup();
  list.applyEvent(message(11, 'ann'));
  assert.equal(asked.doubts, 1);
  list.applySync(sync(11, 3), list.begin(), false);
  assert.equal(unread(), 3);
  assert.ok(list.read(cid, 11), 'the mark moves, and is sent');
  assert.equal(unread(), 0);
});

test('an own message that this client is sending is not asked about: its ack moves the mark', () => {
  const { list, message, asked } = setup();
  list.applyEvent(message(11, 'ann'), true);
  list.read(cid, 11);
  list.applyEvent(message(12, 'ann'), true);
  assert.equal(asked.doubts, 0);
});

test('a sync that left before a read does not bring its count back', () => {
  const { list, sync, asked, unread } = setup();
  const started = list.begin();
  list.read(cid, 10);
  list.applySync(sync(10, 3), started, false);
  assert.equal(unread(), 0);
  assert.equal(asked.doubts, 1);
  list.applySync(sync(10, 1), list.begin(), false);
  assert.equal(unread(), 1);
});

test('an answer that a later one has overtaken does not bring its count back', () => {
  const { list, sync, unread } = setup();
  const page = list.begin();
  list.applySync(sync(10, 0), list.begin(), true);
  const item = { id: cid, lastSeq: 10, unreadCount: 3, lastReadSeq: 7 } as ConversationListItem;
  list.applyPage([item], page);
  assert.equal(unread(), 0, 'read on another device meanwhile');
  list.applyPage([{ ...item, unreadCount: 2 }], list.begin());
  assert.equal(unread(), 2);
});

test('a sync older than the events seen changes no count and asks again', () => {
  const { list, sync, message, asked, unread } = setup();
  const started = list.begin();
  list.applyEvent(message(11));
  list.applySync(sync(10, 3), started, false);
  assert.equal(unread(), 4);
  assert.equal(asked.doubts, 1);
});

test('a sync that overtakes events counts them, and they do not count again', () => {
  const { list, sync, message, unread } = setup();
  list.applySync(sync(12, 5), list.begin(), false);
  list.applyEvent(message(11));
  list.applyEvent(message(12));
  assert.equal(unread(), 5);
  list.applyEvent(message(13));
  assert.equal(unread(), 6);
});

test('a receipt of ours from another device may be ahead of the events it covers', () => {
  const { list, message, unread } = setup();
  list.read(cid, 12);
  list.applyEvent(message(11));
  list.applyEvent(message(12));
  assert.equal(unread(), 0);
  list.applyEvent(message(13));
  assert.equal(unread(), 1);
});

test('sdk#removed: an answer that left before the removal does not bring the conversation back', () => {
  const { list, sync } = setup();
  const started = list.begin();
  list.remove(cid);
  list.applySync(sync(11, 0), started, false);
  assert.equal(list.lastSeq(cid), undefined);
  list.applySync(sync(14, 0), list.begin(), false);
  assert.equal(list.lastSeq(cid), 14, 'a later one does: added again');
});

test('sdk#delivered: contiguous only when nothing was skipped since', () => {
  const { list, message } = setup();
  list.contiguous(cid, 10);
  assert.deepEqual(list.applyEvent(message(11)), { contiguous: true });
  assert.deepEqual(list.applyEvent(message(13)), { contiguous: false });
  assert.deepEqual(list.applyEvent(message(14)), { contiguous: false });
  list.contiguous(cid, 14);
  assert.deepEqual(list.applyEvent(message(15)), { contiguous: true });
});

test('a server that has less than was seen here went back; one that answers late did not', () => {
  const { list, sync, message, asked, unread } = setup();
  const late = list.begin();
  list.applyEvent(message(11));
  list.applySync(sync(10, 3), late, false);
  assert.deepEqual(asked.wentBack, []);
  assert.equal(list.lastSeq(cid), 11);
  list.applySync(sync(6, 1), list.begin(), false);
  assert.deepEqual(asked.wentBack, [cid]);
  assert.equal(list.lastSeq(cid), 6);
  assert.equal(unread(), 1);
  assert.ok(list.applyEvent(message(7)), 'what comes next is new');
  assert.equal(unread(), 2);
});
