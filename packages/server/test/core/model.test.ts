import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Conversation, ConversationListItem, Member, SyncResult } from '@parley/protocol';
import { clientApi } from '../support/api.ts';
import { script, World } from './model-operations.ts';
import type { ModelConversation, ModelMessage } from './model.ts';
import { ageConversations, allEvents, allMessages, createGroup, times } from './tools.ts';
import { useService } from '../support/use.ts';
import { seed } from '../../../../scripts/seed.ts';

const { service, server, db } = useService();

const runs = 20;
let worlds = 0;

test('the service does what the model says', async () => {
  await fc.assert(
    fc.asyncProperty(script, async (steps) => {
      const world = await newWorld();
      const cursors = new Map<string, string>();
      for (const [user, api] of world.clients) {
        const { body } = await api('POST', '/v1/sync', { cursor: null });
        cursors.set(user, (body as SyncResult).cursor);
      }
      for (const step of steps) await world.run(step);
      for (const conv of world.model.conversations) await checkConversation(world, conv);
      for (const user of world.users) await checkUser(world, user, cursors.get(user)!);
    }),
    { seed: seed('model'), numRuns: runs, verbose: 1 },
  );
});

/** Fresh users each time: what they see is what this run did. */
async function newWorld(): Promise<World> {
  const n = ++worlds;
  const users = times(4, (i) => `w${n}.u${i}`);
  return new World(
    server,
    new Map(
      await Promise.all(users.map(async (user) => [user, await clientApi(service.url, user)] as const)),
    ),
  );
}

const view = (m: ModelMessage) =>
  m.deleted
    ? { id: m.id, seq: m.seq, senderId: m.sender, text: null }
    : { id: m.id, seq: m.seq, senderId: m.sender, text: m.text, version: m.version };

async function checkConversation(world: World, conv: ModelConversation): Promise<void> {
  const path = `/v1/conversations/${conv.id}`;
  const got = (await server('GET', path)).body as Conversation;
  const members = [...conv.members].sort(([a], [b]) => (a < b ? -1 : 1));
  assert.equal(got.lastSeq, conv.events.length);
  assert.equal(got.name, conv.name);
  assert.equal(got.deletedAt !== undefined, conv.deleted);
  assert.deepEqual(
    got.members,
    members.map(([userId, { role }]) => ({ userId, role })),
  );
  const list = (await server('GET', `${path}/members`)).body as { data: Member[] };
  assert.deepEqual(
    list.data,
    members.map(([userId, m]) => ({
      userId,
      role: m.role,
      lastReadSeq: m.lastReadSeq,
      lastDeliveredSeq: 0,
    })),
  );
  const messages = (await allMessages(server, conv.id)) as unknown as Record<string, unknown>[];
  assert.deepEqual(
    messages.map(({ id, seq, senderId, text, version }) => ({
      id,
      seq,
      senderId,
      text,
      ...(version === undefined ? {} : { version }),
    })),
    conv.messages.filter((m) => m.deleted !== 'hard').map(view),
  );
  const events = await allEvents(server, conv.id);
  assert.deepEqual(
    events.map((e) => [e.seq, e.type]),
    conv.events.map((e, i) => [i + 1, e.type]),
  );
  for (const [i, { type, message }] of conv.events.entries()) {
    const event = events[i]! as unknown as Record<string, unknown>;
    if (type === 'message.deleted') {
      assert.equal(event['id'], message!.id);
      assert.ok(event['deletedAt']);
    } else if (message) {
      const shown = event['message'] as Record<string, unknown>;
      for (const [key, value] of Object.entries(view(message))) assert.equal(shown[key], value, key);
      assert.equal(shown['deletedAt'] !== null, message.deleted !== null, 'deleted since: the tombstone');
    }
  }
}

async function checkUser(world: World, user: string, cursor: string): Promise<void> {
  const { model } = world;
  const api = world.clients.get(user)!;
  const expected = model.listOf(user);
  const items: ConversationListItem[] = [];
  for (let next: string | null = ''; next !== null;) {
    const answer = await server(
      'GET',
      `/v1/conversations?userId=${user}&limit=3${next && `&cursor=${next}`}`,
    );
    const page = answer.body as { data: ConversationListItem[]; nextCursor: string | null };
    items.push(...page.data);
    next = page.nextCursor;
  }
  // Two changes in one millisecond have no order.
  const byTime = [...items].sort((a, b) => (a.lastActivityAt < b.lastActivityAt ? 1 : -1));
  assert.deepEqual(
    items.map((i) => i.lastActivityAt),
    byTime.map((i) => i.lastActivityAt),
  );
  const order = new Map(expected.map((c, i) => [c.id, i]));
  for (const [i, item] of items.entries())
    if (i > 0 && item.lastActivityAt < items[i - 1]!.lastActivityAt)
      assert.ok(order.get(item.id)! > order.get(items[i - 1]!.id)!, 'newest activity first');

  const shown = (c: ModelConversation) => {
    const last = model.lastMessage(c);
    return {
      id: c.id,
      type: c.type,
      name: c.name,
      lastSeq: c.events.length,
      unreadCount: model.unread(c, user),
      mentionUnreadCount: model.mentionsUnread(c, user) || undefined,
      lastReadSeq: c.members.get(user)!.lastReadSeq,
      muted: c.members.get(user)!.muted,
      lastMessage: last ? { id: last.id, seq: last.seq, senderId: last.sender, text: last.text } : null,
    };
  };
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
  assert.deepEqual(
    items
      .map(
        ({
          id,
          type,
          name,
          lastSeq,
          unreadCount,
          mentionUnreadCount,
          lastReadSeq,
          muted,
          lastMessage: l,
        }) => ({
          id,
          type,
          name,
          lastSeq,
          unreadCount,
          mentionUnreadCount,
          lastReadSeq,
          muted,
          lastMessage: l && { id: l.id, seq: l.seq, senderId: l.senderId, text: l.text },
        }),
      )
      .sort(byId),
    expected.map(shown).sort(byId),
  );

  const badges = expected
    .map((c) => ({
      id: c.id,
      lastSeq: c.events.length,
      unreadCount: model.unread(c, user),
      ...(model.mentionsUnread(c, user) > 0 ? { mentionUnreadCount: model.mentionsUnread(c, user) } : {}),
    }))
    .sort(byId);
  for (const from of [null, cursor]) {
    const result = (await api('POST', '/v1/sync', { cursor: from })).body as SyncResult;
    assert.deepEqual([...result.conversations].sort(byId), badges);
    const removed = from === null ? [] : model.removedOf(user).map((c) => c.id);
    assert.deepEqual([...result.removed].sort(), removed.sort());
    assert.equal(result.fullReload, false);
  }
}

test('api#paging: the conversation list neither repeats nor skips under concurrent writes', async () => {
  const count = 60;
  const ids = await Promise.all(times(count, () => createGroup(server, ['pager', 'other'])));
  // Some are from long ago, some from this moment: they are found in different ways.
  await ageConversations(db, ids.slice(0, count / 2), 2);
  let stop = false;
  let random = seed('pages under writes');
  const next = (below: number) => {
    random = (Math.imul(random, 1_103_515_245) + 12_345) & 0x7fffffff;
    return random % below;
  };
  const write = async (): Promise<void> => {
    while (!stop) await server('POST', `/v1/conversations/${ids[next(count)]}/messages`, { text: 'moved' });
  };
  const writers = times(4, write);
  try {
    for (let round = 0; round < 6; round++) {
      const seen: string[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const { body } = await server(
          'GET',
          `/v1/conversations?userId=pager&limit=${3 + round}${cursor && `&cursor=${cursor}`}`,
        );
        const page = body as { data: { id: string }[]; nextCursor: string | null };
        seen.push(...page.data.map((c) => c.id));
        cursor = page.nextCursor;
        assert.ok(seen.length <= count, `round ${round}: more rows than conversations`);
      }
      assert.equal(new Set(seen).size, seen.length, `round ${round} repeats`);
      assert.deepEqual([...seen].sort(), [...ids].sort(), `round ${round} skips`);
    }
  } finally {
    stop = true;
    await Promise.all(writers);
  }
});

test('events#sync: sync returns what was active later than the cursor minus 5 s, own reads and mutes included', async () => {
  const me = await clientApi(service.url, 'syncer');
  const [old, moved, read, muted, left] = await Promise.all(
    times(5, () => createGroup(server, ['syncer', 'other'])),
  );
  for (const id of [old, read, left])
    await server('POST', `/v1/conversations/${id}/messages`, { text: 'long ago' });
  await ageConversations(db, [old!, moved!, read!, muted!, left!], 1);
  const sync = async (cursor: string | null) => (await me('POST', '/v1/sync', { cursor })).body as SyncResult;
  const all = await sync(null);
  assert.equal(all.conversations.length, 5);
  assert.deepEqual((await sync(all.cursor)).conversations, []);

  await server('POST', `/v1/conversations/${moved}/messages`, { text: 'now' });
  await me('POST', `/v1/conversations/${read}/read`, { seq: 2 });
  await me('PUT', `/v1/conversations/${muted}/mute`);
  await me('DELETE', `/v1/conversations/${left}/members/syncer`);
  const next = await sync(all.cursor);
  assert.deepEqual(next.conversations.map((c) => c.id).sort(), [moved, read, muted].sort());
  assert.deepEqual(next.removed, [left]);
  assert.deepEqual(
    next.conversations.find((c) => c.id === read),
    { id: read, lastSeq: 2, unreadCount: 0 },
  );

  await db.query(
    `UPDATE conversations SET last_activity_at = clock_timestamp() - interval '1 hour', last_activity_step = last_activity_step - 360 WHERE id = $1`,
    [moved],
  );
  const later = await sync(next.cursor);
  assert.deepEqual(later.conversations.map((c) => c.id).sort(), [read, muted].sort());
  const monthAgo = `s1.${(Date.now() - 30 * 86_400_000 - 60_000).toString(36)}`;
  const reload = await sync(monthAgo);
  assert.deepEqual([reload.fullReload, reload.conversations.length, reload.removed], [true, 4, []]);
});
