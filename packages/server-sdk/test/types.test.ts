import assert from 'node:assert/strict';
import { test } from 'node:test';
import { operationList } from '@parley/protocol';
import { Parley, verifyWebhook } from '../src/index.ts';
import type {
  ConversationListItem,
  EventRecord,
  MessageOrTombstone,
  Tombstone,
  User,
  WebhookEvent,
} from '../src/index.ts';

const parley = new Parley({
  secretKey: `sk_live_${'k'.repeat(16)}_${'s'.repeat(32)}`,
  url: 'http://127.0.0.1:9',
  tries: 1,
  fetch: () => Promise.reject(new TypeError('never called')),
});

/** Checked by the compiler; never run. */
export async function typed(): Promise<void> {
  const user: User = await parley.users.upsert('alice', { name: 'Alice' });
  const page: { data: User[]; nextCursor: string | null } = await parley.users.list({ limit: 10 });
  for await (const one of parley.users.list()) one.createdAt satisfies string;
  for await (const one of parley.conversations.list({ userId: 'alice' })) one satisfies ConversationListItem;
  for await (const one of parley.events.list('conv_1', { after: 3 })) one satisfies EventRecord;
  const message: MessageOrTombstone = await parley.messages.send('conv_1', { text: 'hi', senderId: user.id });
  const deleted: Tombstone | undefined = await parley.messages.delete('msg_1', { hard: true });
  const nothing: void = await parley.conversations.delete('conv_1', { idempotencyKey: 'k' });
  await parley.members.update('conv_1', 'alice', { role: 'owner' });
  // @ts-expect-error the role is required
  await parley.members.update('conv_1', 'alice');
  // @ts-expect-error no such field
  await parley.users.upsert('alice', { nam: 'Alice' });
  // @ts-expect-error no such role
  await parley.members.update('conv_1', 'alice', { role: 'king' });
  // @ts-expect-error the second id is missing
  await parley.members.remove('conv_1');
  // @ts-expect-error a server cannot mute for a user
  parley.conversations.mute;
  // @ts-expect-error no such group
  parley.sync;
  void [page, message, deleted, nothing];
}

/** Checked by the compiler; never run. */
export function received(raw: string, headers: Record<string, string>): string | number | null {
  const event = verifyWebhook(raw, headers, 'whsec_x');
  switch (event.type) {
    case 'message.created':
      return event.data.message.text;
    case 'message.read':
      return event.data.lastReadSeq;
    case 'member.removed':
      event.data.reason satisfies 'removed' | 'left';
      // @ts-expect-error it brings no message
      return event.data.message;
    case 'webhook.test':
      return event.data.webhookId;
    // @ts-expect-error no such event
    case 'message.sent':
      return '';
    default:
      return event.type satisfies WebhookEvent['type'];
  }
}

test('every operation of the table that a server may call has its method', () => {
  const groups = parley as unknown as Record<string, Record<string, unknown>>;
  for (const op of operationList) {
    const [noun, verb] = op.name.split('.') as [string, string];
    const present = typeof groups[noun]?.[verb] === 'function';
    assert.equal(present, op.callers.includes('server'), op.name);
  }
});
