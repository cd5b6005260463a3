/**
 * What the examples of the reference say where a value made from the schema would say little. Ids are the sample ids of
 * the generated documents; a test runs each of the calls with ids of its own in their place.
 */

interface Example {
  ids?: Record<string, string>;
  query?: Record<string, unknown>;
  body?: Record<string, unknown>;
}

const messageId = 'msg_01hzy3v7k8m2q4r6t8w0x2z4b7';
const conversationId = 'conv_01hzy3v7k8m2q4r6t8w0x2z4a6';

export const examples: Record<string, Example> = {
  'tokens.create': { body: { userId: 'alice', expiresIn: 3600 } },
  'users.upsert': { body: { name: 'Alice', imageUrl: 'https://example.com/alice.png' } },
  'users.erase': { ids: { userId: 'dave' }, query: { messages: 'delete' } },
  'users.deactivate': { ids: { userId: 'carol' } },
  'users.reactivate': { ids: { userId: 'carol' } },
  'users.revokeTokens': { ids: { userId: 'carol' } },
  'users.list': { query: { namePrefix: 'Ali', limit: 20 } },
  'conversations.create': {
    body: { type: 'group', name: 'Order 4812', members: ['alice', 'bob'], ownerId: 'alice' },
  },
  'conversations.list': { query: { userId: 'alice' } },
  'conversations.update': { body: { name: 'Order 4812, shipped' } },
  'conversations.setLevel': { body: { level: 'mentions' } },
  'members.add': { body: { userIds: ['carol'] } },
  'members.remove': { ids: { userId: 'carol' } },
  'members.update': { ids: { userId: 'bob' }, body: { role: 'owner' } },
  'blocks.add': { ids: { userId: 'bob' }, body: { byUserId: 'alice' } },
  'blocks.remove': { ids: { userId: 'bob' }, query: { byUserId: 'alice' } },
  'blocks.list': { query: { userId: 'alice' } },
  'restrictions.set': {
    ids: { userId: 'bob' },
    body: { kind: 'silence', until: '2030-01-01T00:00:00Z', reason: 'Please calm down.' },
  },
  'restrictions.remove': { ids: { userId: 'bob' } },
  'invites.create': { body: { maxUses: 10, expiresIn: 86_400 } },
  'conversations.discover': { query: { q: 'birds' } },
  'users.silence': { ids: { userId: 'bob' }, body: { until: null, reason: 'spam' } },
  'users.unsilence': { ids: { userId: 'bob' } },
  'wordLists.set': {
    ids: { name: 'scams' },
    body: { entries: ['free crypto', 'wallet*'], action: 'reject', conversations: 'all' },
  },
  'reports.create': { body: { messageId, reason: 'spam', note: 'The third time today.' } },
  'reports.list': { query: { status: 'open' } },
  'reports.update': { body: { status: 'resolved', actions: ['delete_message'], note: 'Spam.' } },
  'users.listRestrictions': { ids: { userId: 'bob' } },
  'wordLists.get': { ids: { name: 'scams' } },
  'wordLists.delete': { ids: { name: 'scams' } },
  'messages.send': {
    body: { senderId: 'alice', clientMsgId: 'order-4812-shipped', text: 'It is in the post, no charge.' },
  },
  'messages.list': { query: { limit: 20 } },
  'messages.update': { body: { text: 'It is in the post, with no charge.', expectedVersion: 1 } },
  'polls.vote': { body: { options: [1] } },
  'events.list': { query: { after: 0 } },
  'webhooks.create': {
    body: { url: 'https://example.com/parley', events: ['message.created', 'message.read'] },
  },
  'webhooks.update': { body: { events: ['message.created'], description: 'To the search of the shop' } },
  'hooks.set': {
    body: { url: 'https://example.com/before-send', timeoutMs: 1_000, onFailure: 'allow' },
  },
  'uploads.create': {
    body: { conversationId, filename: 'receipt.pdf', size: 20_480, contentType: 'application/pdf' },
  },
  'attachments.url': { query: { expiresIn: 300 } },
  'push.register': { body: { provider: 'fcm', token: 'the-registration-token' } },
  'push.unregister': { ids: { token: 'the-registration-token' } },
  'calls.start': { body: { conversationId, kind: 'video', callerId: 'alice' } },
  'calls.list': { query: { conversationId } },
  'calls.remove': { ids: { userId: 'bob' } },
  'calls.mute': { ids: { userId: 'bob' }, body: { source: 'mic' } },
  'analytics.get': {
    query: { from: '2026-01-01T00:00:00Z', to: '2026-01-08T00:00:00Z', granularity: 'day' },
  },
  'usage.get': { query: { from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z' } },
};
