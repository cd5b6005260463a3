import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { eventNames, webhookEventNames, webhookEvents } from '@parley/protocol';
import type { EventName, WebhookEventName } from '@parley/protocol';
import { catalogue, webhookOnly } from '../../src/log/catalogue.ts';
import type { WebhookOnlyName } from '../../src/log/catalogue.ts';
import type { Actor } from '../support/scene.ts';
import { connect } from '../support/socket.ts';
import type { TestSocket } from '../support/socket.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import type { Received } from '../webhooks/receiver.ts';
import { setUp, use, useService } from '../support/use.ts';

/** Every event is made once by the running service and looked at from its three sides: socket, REST, webhook. */

const { service, scene } = useService();
const receiver = use(startReceiver, (r) => r.close());
let owner: Actor;
let watcher: Actor;
let socket: TestSocket;

setUp(async () => {
  [owner, watcher] = await Promise.all([scene.actor('owner'), scene.actor('watcher')]);
  const events = webhookEventNames;
  assert.equal((await scene.server('POST', '/v1/webhooks', { url: receiver.url, events })).status, 201);
  const { body } = await scene.server('POST', '/v1/tokens', { userId: watcher.id });
  socket = await connect(service, body.token);
});

const ok = async (answer: Promise<{ status: number }>): Promise<void> => {
  const { status } = await answer;
  assert.ok(status >= 200 && status < 300, `answered ${status}`);
};
const group = async (...others: Actor[]): Promise<string> =>
  (await scene.group(owner, [watcher, ...others], { name: 'Team', metadata: { color: 'red' } })).id;
const message = { text: 'hello', metadata: { k: [1] } };
const poll = { question: 'When?', options: [{ text: 'Now' }, { text: 'Later' }] };

/** Makes the event happen in a conversation of its own, and answers with the conversation. */
const makers: { [K in EventName]: () => Promise<string> } = {
  'conversation.created': () => group(),
  'message.new': async () => {
    const cid = await group();
    await scene.send(owner, cid, message);
    return cid;
  },
  'message.updated': async () => {
    const cid = await group();
    const { id } = await scene.send(owner, cid, message);
    await ok(owner.api('PATCH', `/v1/messages/${id}`, { text: 'new', expectedVersion: 1 }));
    return cid;
  },
  'message.deleted': async () => {
    const cid = await group();
    const { id } = await scene.send(owner, cid, message);
    await ok(owner.api('DELETE', `/v1/messages/${id}`));
    return cid;
  },
  'message.reactions': async () => {
    const cid = await group();
    const { id } = await scene.send(owner, cid, { ...message, poll });
    await ok(owner.api('PUT', `/v1/messages/${id}/votes`, { options: [1] }));
    return cid;
  },
  'message.enriched': async () => {
    const cid = await group();
    const { id } = await scene.send(owner, cid, { poll });
    await ok(owner.api('POST', `/v1/messages/${id}/poll/close`));
    return cid;
  },
  'message.pinned': async () => {
    const cid = await group();
    const { id } = await scene.send(owner, cid, message);
    await ok(owner.api('PUT', `/v1/messages/${id}/pin`));
    return cid;
  },
  'member.added': async () => {
    const [cid, one, two] = await Promise.all([group(), scene.actor(), scene.actor()]);
    await ok(owner.api('POST', `/v1/conversations/${cid}/members`, { userIds: [one.id, two.id] }));
    return cid;
  },
  'member.removed': async () => {
    const one = await scene.actor();
    const cid = await group(one);
    await ok(owner.api('DELETE', `/v1/conversations/${cid}/members/${one.id}`));
    return cid;
  },
  'member.updated': async () => {
    const cid = await group();
    await ok(scene.server('PATCH', `/v1/conversations/${cid}/members/${watcher.id}`, { role: 'owner' }));
    return cid;
  },
  'conversation.updated': async () => {
    const cid = await group();
    await ok(owner.api('PATCH', `/v1/conversations/${cid}`, { name: 'New', metadata: { color: 'blue' } }));
    return cid;
  },
  'conversation.deleted': async () => {
    const cid = await group();
    await ok(scene.server('DELETE', `/v1/conversations/${cid}`));
    return cid;
  },
};

/** events#same-thing: how the webhook's data follows from `d`. */
const fromSocket: {
  [K in EventName]: ((place: { conversationId: string; seq: number }, d: any, webhook: any) => object) | null;
} = {
  'message.new': (place, { message: m }) => ({ ...place, message: m }),
  'message.updated': (place, { message: m }) => ({ ...place, message: m }),
  'message.deleted': (place, { id, hard }) => ({ ...place, messageId: id, hard }),
  'message.reactions': (place, { id, revision: _revision, ...told }) => ({
    ...place,
    messageId: id,
    ...told,
  }),
  'message.pinned': (place, { id, pinned, actorId }) => ({ ...place, messageId: id, pinned, actorId }),
  'message.enriched': null,
  'member.added': (place, { userIds, actorId, via }) => ({ ...place, userIds, actorId, via }),
  'member.removed': (place, d) => ({ ...place, ...d }),
  'member.updated': null,
  'conversation.created': (_place, d) => d,
  // The conversation stands in the webhook alone.
  'conversation.updated': (_place, { changes }, webhook) => ({
    conversation: { ...webhook.conversation, ...changes },
    changes,
  }),
  'conversation.deleted': ({ conversationId }) => ({ conversationId }),
};

const about = (cid: string) => (r: Received) => (r.data.conversationId ?? r.data.conversation?.id) === cid;

for (const name of eventNames)
  test(`events#same-thing, ${name}: the socket's d, the REST record and the webhook's data tell the same`, async () => {
    const cid = await makers[name]();
    const frame = await socket.event(name, cid);
    const record = (await scene.events(cid)).find((e) => e.seq === frame.seq);
    const { seq, type, createdAt, ...rest } = record;
    // Only the socket tells the clientMsgId.
    const { clientMsgId: _, ...live } = frame.d;
    // Which reactions changed is told when it happens.
    if (live.changes && name === 'message.reactions') live.changes = [];
    assert.deepEqual({ seq, type, d: rest }, { seq: frame.seq, type: name, d: live });
    assert.deepEqual(
      Object.keys(rest).filter((key) => rest[key] === undefined),
      [],
    );
    const { webhook } = catalogue[name];
    const follows = fromSocket[name];
    assert.equal(webhook === null, follows === null);
    if (!webhook || !follows) return;
    const received = await receiver.next(webhook.name, about(cid));
    assert.equal(received.createdAt, createdAt);
    assert.deepEqual(received.data, follows({ conversationId: cid, seq: frame.seq }, frame.d, received.data));
    const { properties, required } = webhookEvents[webhook.name];
    const told = new Set(Object.keys(received.data));
    assert.deepEqual(
      Object.keys(properties).filter((key) => !told.delete(key) && required.includes(key as never)),
      [],
    );
    assert.deepEqual([...told], [], 'nothing that is not declared');
  });

/** What only webhooks hear of, and by which test each is made to happen. */
const elsewhere: Record<WebhookOnlyName, string> = {
  'message.read': 'webhooks/events.test.ts',
  'member.restricted': 'moderation/restrictions.test.ts',
  'user.blocked': 'moderation/blocks.test.ts',
  'report.created': 'moderation/reports.test.ts',
  'report.resolved': 'moderation/reports.test.ts',
  'user.deleted': 'webhooks/events.test.ts',
  'notification.needed': 'push-feature/recipients.test.ts',
  'sink.degraded': 'history/sink-state.test.ts',
  'sink.failing': 'history/sink-state.test.ts',
  'sink.recovered': 'history/sink-state.test.ts',
  'hook.failing': 'hooks/failures.test.ts',
  'hook.recovered': 'hooks/failures.test.ts',
  'call.started': 'calls/operations.test.ts',
  'call.ended': 'calls/operations.test.ts',
};

test('webhooks#catalogue: every webhook event is made by somebody, and a test receives it', async () => {
  const made = new Set<WebhookEventName>([
    ...eventNames.flatMap((name) => catalogue[name].webhook?.name ?? []),
    ...(Object.keys(webhookOnly) as WebhookOnlyName[]),
  ]);
  assert.deepEqual(
    webhookEventNames.filter((name) => !made.has(name)),
    [],
  );
  assert.deepEqual(Object.keys(elsewhere).sort(), Object.keys(webhookOnly).sort());
  for (const [name, file] of Object.entries(elsewhere)) {
    const text = await readFile(new URL(`../${file}`, import.meta.url), 'utf8');
    assert.ok(
      text.includes(`next('${name}'`) || text.includes(`event('${name}'`),
      `${file} receives ${name}`,
    );
  }
});
