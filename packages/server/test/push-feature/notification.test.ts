import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callNotification, notificationOf } from '../../src/features/push/notification.ts';
import type { PushContent, PushedCall, PushedMessage } from '../../src/features/push/notification.ts';
import { retryDelay } from '../../src/features/push/send.ts';

const message: PushedMessage = {
  cid: 'conv_1',
  conversationType: 'group',
  conversationName: 'Team',
  id: 'msg_1',
  seq: 7,
  senderId: 'ada',
  senderName: 'Ada',
  text: 'hi',
  attachments: null,
  question: null,
  mention: false,
};
const made = (changes: Partial<PushedMessage>, content: PushContent = 'full') =>
  notificationOf({ ...message, ...changes }, 3, content);

test('docs/push.md: pushContent name hides the text, none the names too; the data is the same', () => {
  const shown = (content: PushContent) => [made({}, content).title, made({}, content).body];
  assert.deepEqual(shown('full'), ['Team (Ada)', 'hi']);
  assert.deepEqual(shown('name'), ['Team (Ada)', 'sent a message']);
  assert.deepEqual(shown('none'), ['New message', '']);
  for (const content of ['name', 'none'] as const) assert.deepEqual(made({}, content).data, made({}).data);
});

test('docs/push.md: pushContent holds for calls', () => {
  const call: PushedCall = {
    callId: 'call_1',
    kind: 'video',
    conversationId: 'conv_1',
    conversationType: 'direct',
    conversationName: null,
    callerId: 'ada',
    callerName: 'Ada',
  };
  const shown = (type: 'incoming' | 'missed', content: PushContent) => {
    const { title, body } = callNotification(call, type, 45, 0, content);
    return [title, body];
  };
  assert.deepEqual(shown('incoming', 'full'), ['Ada', 'Incoming video call']);
  assert.deepEqual(shown('missed', 'name'), ['Ada', 'Missed video call']);
  assert.deepEqual(shown('incoming', 'none'), ['Incoming video call', '']);
  assert.deepEqual(shown('missed', 'none'), ['Missed video call', '']);
});

test('push: the title names the sender, in a group with its name', () => {
  const titles: [Partial<PushedMessage>, string][] = [
    [{}, 'Team (Ada)'],
    [{ conversationName: null }, 'Ada'],
    [{ senderName: null }, 'Team (ada)'],
    [{ conversationType: 'direct', conversationName: null }, 'Ada'],
    [{ senderId: null, senderName: null }, 'Team'],
    [{ senderId: null, senderName: null, conversationType: 'direct', conversationName: null }, ''],
  ];
  for (const [changes, title] of titles) assert.equal(made(changes).title, title);
});

test('push: the body is the text, cut between code points, or says that there is a file', () => {
  const bodies: [Partial<PushedMessage>, string][] = [
    [{ text: '👋'.repeat(200) }, '👋'.repeat(200)],
    [{ text: '👋'.repeat(201) }, `${'👋'.repeat(200)}…`],
    [{ text: 'see this', attachments: '[{}]' }, 'see this'],
    [{ text: null, attachments: '[{}]' }, 'sent a file'],
    [{ text: null, attachments: '[{},{},{}]' }, 'sent 3 files'],
    [{ text: null }, 'sent a message'],
    [{ text: null, question: 'Lunch?' }, 'Lunch?'],
  ];
  for (const [changes, body] of bodies) assert.equal(made(changes).body, body);
});

test('push: badge, collapse key and data', () => {
  const { badge, collapseKey, data } = made({});
  assert.deepEqual(
    { badge, collapseKey, data },
    {
      badge: 3,
      collapseKey: 'conv_1',
      data: {
        type: 'message.new',
        conversationId: 'conv_1',
        messageId: 'msg_1',
        seq: '7',
        senderId: 'ada',
      },
    },
  );
  assert.ok(!('senderId' in made({ senderId: null }).data));
});

test('push: six attempts, four times as far apart each time, never sooner than asked', () => {
  const delays = [1, 2, 3, 4, 5, 6, 7].map((tries) => retryDelay(tries, 0.5));
  assert.deepEqual(delays, [5_000, 20_000, 80_000, 320_000, 1_280_000, null, null]);
  assert.equal(retryDelay(1, 0), 4_000);
  assert.equal(Math.round(retryDelay(1, 1)!), 6_000);
  assert.equal(retryDelay(1, 0.5, 60_000), 60_000);
  assert.equal(retryDelay(6, 0.5, 60_000), null);
});
