import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { plans } from '@parley/protocol';
import { Parley, ParleyError, verifyWebhook, WebhookVerificationError } from '../src/index.ts';
import { routes } from '../src/generated/routes.ts';
import { environments } from '../../server/test/support/service.ts';
import { upload } from '../../server/test/storage/suite.ts';
import { announcement, picture } from '../../server/test/uploads/files.ts';
import { pretendNode } from '../../server/test/calls/tools.ts';
import { startReceiver } from '../../server/test/webhooks/receiver.ts';
import { connect } from '../../server/test/support/socket.ts';
import { useStandingHere } from '../../server/test/gateway/here.ts';
import { setUp, useService } from '../../server/test/support/use.ts';

/** The server SDK against the real service. */

const { service, db } = useService();
let parley: Parley;
/** Operations that were called, by the requests that left. */
const called = new Set<string>();
setUp(async () => {
  parley = new Parley({
    secretKey: environments.dev.secretKey,
    url: service.url,
    fetch: (input, init) => {
      const { pathname } = new URL(input as URL);
      for (const [name, { method, path }] of Object.entries(routes))
        if (method === init?.method && new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(pathname))
          called.add(name);
      return fetch(input, init);
    },
  });
});

test('server SDK: every method, against the real service, with a webhook that verifyWebhook accepts', async () => {
  const receiver = await startReceiver();
  try {
    const { users, conversations, members, messages, events, webhooks, uploads, attachments } = parley;
    const { calls, analytics, usage } = parley;
    const hook = await webhooks.create({ url: receiver.url, events: ['message.created'] });
    assert.equal((await webhooks.get(hook.id)).url, receiver.url);

    for (const id of ['ann', 'bob', 'eve']) assert.equal((await users.upsert(id, { name: id })).id, id);
    assert.equal((await users.get('ann')).name, 'ann');
    assert.deepEqual((await users.lookup({ userIds: ['ann', 'nobody'] })).data, [await users.get('ann')]);
    const seen: string[] = [];
    for await (const user of users.list({ limit: 1 })) seen.push(user.id);
    assert.deepEqual(seen.sort(), ['ann', 'bob', 'eve'], 'pages are iterated');

    const conv = await conversations.create({ type: 'group', members: ['ann', 'bob'], name: 'one' });
    assert.equal((await conversations.update(conv.id, { name: 'two' })).name, 'two');
    assert.equal((await conversations.get(conv.id)).name, 'two');
    await members.add(conv.id, { userIds: ['eve'] });
    assert.equal((await members.update(conv.id, 'eve', { role: 'owner' })).role, 'owner');
    const roles: Record<string, string> = {};
    for await (const member of members.list(conv.id, { limit: 2 })) roles[member.userId] = member.role;
    assert.deepEqual(roles, { ann: 'member', bob: 'member', eve: 'owner' });
    assert.equal(await members.remove(conv.id, 'eve'), undefined);

    const ticket = await uploads.create(announcement(conv.id, picture));
    assert.ok((await upload(ticket.upload, picture.body)).ok);
    assert.equal((await uploads.complete(ticket.attachmentId)).status, 'ready');
    const { url } = await attachments.url(ticket.attachmentId);
    assert.deepEqual(Buffer.from(await (await fetch(url)).arrayBuffer()), picture.body);

    const texts = ['1', '2', '3', '4', '5'];
    for (const text of texts) await messages.send(conv.id, { senderId: 'ann', text });
    const down: (string | null)[] = [];
    for await (const message of messages.list(conv.id, { limit: 2 })) down.push(message.text);
    assert.deepEqual(down, texts.toReversed());
    const up: (string | null)[] = [];
    for await (const message of messages.list(conv.id, { after: 0, limit: 2 })) up.push(message.text);
    assert.deepEqual(up, texts);
    const types: string[] = [];
    for await (const event of events.list(conv.id, { after: 0, limit: 3 })) types.push(event.type);
    assert.deepEqual(types, [
      'conversation.created',
      'conversation.updated',
      'member.added',
      'member.updated',
      'member.removed',
      ...texts.map(() => 'message.new'),
    ]);
    const [last] = (await messages.list(conv.id, { limit: 1 })).data;
    const message = await messages.get(last!.id);
    assert.ok(message.version !== undefined);
    const edited = await messages.update(message.id, { text: '5!', expectedVersion: message.version });
    assert.equal(edited.text, '5!');
    await assert.rejects(messages.update(message.id, { text: 'no', expectedVersion: 1 }), {
      code: 'version_conflict',
      status: 409,
    });
    const { reactions } = parley;
    const reacted = await reactions.set(message.id, '👍', { userId: 'bob' });
    assert.equal(reacted.reactions.total, 1);
    for await (const { userId } of reactions.list(message.id)) assert.equal(userId, 'bob');
    assert.equal((await reactions.remove(message.id, '👍', { userId: 'bob' })).reactions.total, 0);
    const { pins } = parley;
    assert.equal((await pins.set(message.id)).pinnedBy, null);
    assert.deepEqual(
      (await pins.list(conv.id)).data.map(({ id }) => id),
      [message.id],
    );
    await pins.remove(message.id);
    assert.deepEqual((await pins.list(conv.id)).data, []);
    const options = [{ text: 'yes' }, { text: 'no' }];
    const mentions = [{ type: 'user', userId: 'bob', offset: 0, length: 4 }] as const;
    const poll = { question: 'Which?', options };
    const asked = await messages.send(conv.id, { text: '@bob', mentions: [...mentions], poll });
    assert.deepEqual(asked.mentions, mentions);
    assert.ok((await parley.polls.close(asked.id)).poll?.closedAt);
    await assert.rejects(parley.polls.close(asked.id), { code: 'state_conflict', status: 409 });
    assert.equal(await messages.delete(asked.id, { hard: true }), undefined);
    const { blocks, restrictions, wordLists, invites, hooks } = parley;
    await conversations.update(conv.id, { rules: { joining: 'open', listed: true } });
    const found: string[] = [];
    for await (const { id } of conversations.discover({ q: 'two' })) found.push(id);
    assert.ok(found.includes(conv.id));
    const link = await invites.create(conv.id, { maxUses: 2 });
    assert.deepEqual(
      (await invites.list(conv.id)).data.map(({ id, uses }) => [id, uses]),
      [[link.id, 0]],
    );
    assert.equal(await invites.delete(conv.id, link.id), undefined);
    assert.equal((await blocks.add('bob', { byUserId: 'ann' })).userId, 'bob');
    for await (const { userId } of blocks.list({ userId: 'ann' })) assert.equal(userId, 'bob');
    assert.equal(await blocks.remove('bob', { byUserId: 'ann' }), undefined);
    assert.equal((await restrictions.set(conv.id, 'bob', { kind: 'silence' })).kind, 'silence');
    for await (const { userId } of restrictions.list(conv.id)) assert.equal(userId, 'bob');
    assert.equal(await restrictions.remove(conv.id, 'bob'), undefined);
    assert.equal((await users.silence('bob', {})).until, null);
    assert.equal(await users.unsilence('bob'), undefined);
    const words = { entries: ['a', 'b*'], action: 'mask', conversations: 'group' } as const;
    assert.deepEqual(
      (await wordLists.set('sdk', { ...words, entries: [...words.entries] })).entries,
      words.entries,
    );
    assert.equal((await wordLists.get('sdk')).action, 'mask');
    for await (const { name, entries } of wordLists.list()) assert.deepEqual([name, entries], ['sdk', 2]);
    assert.equal(await wordLists.delete('sdk'), undefined);
    const report = await parley.reports.create({ messageId: message.id, reason: 'spam' });
    assert.equal(report.status, 'open');
    for await (const { id, snapshot } of parley.reports.list({ conversationId: conv.id }))
      assert.deepEqual([id, snapshot?.text], [report.id, '5!']);
    const decided = await parley.reports.update(report.id, { status: 'resolved', actions: ['silence'] });
    assert.equal(decided.reports, 1);
    for await (const { kind } of users.listRestrictions('ann')) assert.equal(kind, 'silence');
    await users.unsilence('ann');
    // It would see messages of direct conversations alone.
    const made = await hooks.set('before-send', { url: receiver.url, types: 'direct' });
    assert.match(made.secret!, /^whsec_/);
    assert.equal((await hooks.get('before-send')).types, 'direct');
    for await (const { kind } of hooks.list()) assert.equal(kind, 'before-send');
    assert.match((await hooks.rotateSecret('before-send')).secret, /^whsec_/);
    assert.equal((await hooks.test('before-send')).verdict, 'allow');
    assert.equal(typeof (await hooks.stats('before-send')).calls, 'number');
    assert.equal(await hooks.delete('before-send'), undefined);
    assert.ok((await messages.delete(message.id))!.deletedAt);
    const oldest = (await messages.list(conv.id)).data.at(-1)!;
    assert.equal(await messages.delete(oldest.id, { hard: true }), undefined);
    const listed: string[] = [];
    for await (const item of conversations.list({ userId: 'ann' })) listed.push(item.id);
    assert.deepEqual(listed, [conv.id]);

    // What really arrived, checked as a customer would.
    const received = await receiver.next('message.created', (r) => r.data.message.text === '1');
    const event = verifyWebhook(received.raw, received.headers, hook.secret);
    assert.equal(event.env, environments.dev.id);
    assert.ok(event.type === 'message.created');
    assert.equal(event.data.message.conversationId, conv.id);
    assert.throws(
      () => verifyWebhook(`${received.raw} `, received.headers, hook.secret),
      WebhookVerificationError,
    );
    const { secret } = await webhooks.rotateSecret(hook.id);
    await messages.send(conv.id, { text: 'rotated' });
    const rotated = await receiver.next('message.created', (r) => r.data.message.text === 'rotated');
    for (const valid of [secret, hook.secret]) verifyWebhook(rotated.raw, rotated.headers, valid);
    await webhooks.test(hook.id);
    const [delivery] = (await webhooks.deliveries(hook.id, { limit: 1 })).data;
    assert.ok(delivery);
    for await (const each of webhooks.deliveries(hook.id, { limit: 2 }))
      if (each.eventId === rotated.id) await webhooks.replay(hook.id, each.id);
    await receiver.wait(2, (r) => r.id === rotated.id);
    assert.equal((await webhooks.replayFailed(hook.id, { since: '2026-01-01' })).replayed, 0);
    await webhooks.update(hook.id, { status: 'disabled' });
    assert.equal((await webhooks.list()).data.length, 1);
    assert.equal(await webhooks.delete(hook.id), undefined);

    await pretendNode(db);
    const call = await calls.start({ conversationId: conv.id, kind: 'audio', callerId: 'ann' });
    assert.equal((await calls.get(call.id)).status, 'ringing');
    assert.deepEqual((await calls.list({ live: true })).data, [call]);
    await assert.rejects(calls.mute(call.id, 'bob', { source: 'mic' }), { code: 'invalid_request' });
    await calls.remove(call.id, 'bob');
    await assert.rejects(calls.end(call.id), { code: 'call_ended' });
    const range = { from: '2026-02-28', to: '2026-03-01' };
    assert.equal((await analytics.get(range)).range.granularity, 'day');
    assert.equal((await usage.get(range)).data.length, 1);

    const { token } = await parley.tokens.create({ userId: 'bob' });
    for (const good of [token, parley.signToken({ userId: 'bob' })]) {
      const answer = await fetch(`${service.url}/v1/conversations`, {
        headers: { authorization: `Bearer ${good}` },
      });
      assert.equal(answer.status, 200);
    }
    await users.revokeTokens('bob');
    assert.ok((await users.deactivate('bob')).deactivatedAt);
    assert.equal((await users.reactivate('bob')).deactivatedAt, null);
    assert.equal(await conversations.delete(conv.id), undefined);
    assert.equal(await users.erase('eve'), undefined);
    await assert.rejects(users.get('eve'), { code: 'not_found' });
    assert.deepEqual([...called].sort(), Object.keys(routes).sort(), 'every method of the table');
  } finally {
    await receiver.close();
  }
});

test('identity#user-token: a token signed locally opens a socket, and what the server sends arrives there', async () => {
  await parley.users.upsert('zoe', {});
  const conv = await parley.conversations.create({ type: 'group', members: ['zoe'] });
  const socket = await connect(service, parley.signToken({ userId: 'zoe', expiresIn: 60 }));
  const sent = await parley.messages.send(conv.id, { text: 'from the server' });
  assert.equal((await socket.event('message.new', conv.id)).d.message.id, sent.id);
  await socket.close();
});

test('sdk#server-retries: one Idempotency-Key over all tries acts once, also when answers are lost', async () => {
  let lost = 0;
  const flaky = new Parley({
    secretKey: environments.dev.secretKey,
    url: service.url,
    sleep: () => Promise.resolve(),
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (lost++ % 2 === 0) throw new TypeError('the answer was lost');
      return response;
    },
  });
  const conv = await flaky.conversations.create({ type: 'group', members: ['zoe'], name: 'once' });
  for (const text of ['a', 'b']) await flaky.messages.send(conv.id, { text });
  assert.deepEqual((await parley.messages.list(conv.id)).data.map((m) => m.text).reverse(), ['a', 'b']);
});

describe('in a time that stands still', () => {
  const { here, time } = useStandingHere();

  test('sdk#server-retries: on the free plan a burst beyond the key’s rate is waited out and all succeeds', async () => {
    let waits = 0;
    const free = new Parley({
      secretKey: environments.prod.secretKey,
      url: here.url,
      tries: 10,
      sleep: (ms) => {
        waits++;
        time.advance(ms);
        return Promise.resolve();
      },
    });
    const { burst } = plans.free.secretKey;
    const many = (by: Parley, count: number) =>
      Promise.allSettled(Array.from({ length: count }, () => by.users.list({ limit: 1 })));
    for (const result of await many(free, burst + 20)) assert.equal(result.status, 'fulfilled');
    assert.ok(waits > 0, 'some were refused at first');

    const hasty = new Parley({ secretKey: environments.prod.secretKey, url: here.url, tries: 1 });
    const refused = (await many(hasty, burst + 1)).find((result) => result.status === 'rejected')?.reason;
    assert.ok(refused instanceof ParleyError);
    assert.equal(refused.code, 'rate_limited');
    assert.ok(refused.retryAfterMs! > 0);
  });
});
