import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeliveryDiagnosis } from '@parley/protocol';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { signedInOwner } from '../accounts/dashboard.ts';
import { useStandingHere } from '../gateway/here.ts';
import { startWebpush } from '../push/vendors/webpush.ts';
import { settled } from '../push-feature/tools.ts';
import { assertError } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import type { Actor } from '../support/scene.ts';
import { lazy, setUp, use } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { addEndpoint } from '../webhooks/tools.ts';

/** mentions.md, "Levels": which messages are pushed, to a push service that decrypts what arrives, in a time that stands still. */

const { here, time } = useStandingHere({ env: { CHAT_ALLOW_PRIVATE_TARGETS: 'true' } });
const scene = lazy(() => createScene(here.url, 'dev', time.now));
const server = lazy(() => scene.server);
const db = use(
  () =>
    Promise.resolve(new PgDb({ connectionString: here.databaseUrl }, { max: 4, onError: () => undefined })),
  (opened) => opened.close(),
);
const vendor = use(
  () => startWebpush(time.now),
  (v) => v.close(),
);
let dashboard: Api;
setUp(async () => {
  dashboard = (await signedInOwner(here.url)).in('env_dev');
  const { provider: _, ...credentials } = vendor.credentials;
  assert.equal((await dashboard('PUT', '/v1/push/credentials/webpush', { credentials })).status, 200);
});

async function withDevice(name: string): Promise<Actor> {
  const actor = await scene.actor(name);
  const device = { provider: 'webpush', token: vendor.tokenOf(actor.id) };
  assert.equal((await actor.api('POST', '/v1/push/devices', device)).status, 201);
  return actor;
}
const told = (actor: Actor) => vendor.delivered.filter((d) => d.token === vendor.tokenOf(actor.id));
const setLevel = async (who: Actor, cid: string, body: object) => {
  const answer = await who.api('PUT', `/v1/conversations/${cid}/notifications`, body);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
};
const to = (user: Actor) => ({ type: 'user', userId: user.id });
const soon = (ms: number) => new Date(time.now() + ms).toISOString();
const set = async (settings: object): Promise<void> => {
  const { status, body } = await dashboard('PATCH', '/v1/environments/env_dev', { settings });
  assert.equal(status, 200, JSON.stringify(body));
};

test('mentions#levels, T3.4: all, mentions and none; everyone is pushed to the level mentions, here is not', async () => {
  const [owner, all, some, none] = await Promise.all(['owner', 'all', 'some', 'none'].map(withDevice));
  const people = [all!, some!, none!];
  const { id: cid } = await scene.group(owner!, people);
  const path = `/v1/conversations/${cid}`;
  assert.deepEqual(await setLevel(some!, cid, { level: 'mentions' }), {
    conversationId: cid,
    level: 'mentions',
    until: null,
    muted: false,
  });
  await setLevel(none!, cid, { level: 'none' });
  const counts = () => people.map((who) => told(who).length);
  const sent: [mentions: object[], pushed: number[]][] = [
    [[], [1, 0, 0]],
    [
      [to(some!), to(none!)],
      [2, 1, 0],
    ],
    [[{ type: 'everyone' }], [3, 2, 0]],
    [[{ type: 'here' }], [4, 2, 0]],
  ];
  const ids: string[] = [];
  for (const [mentions, pushed] of sent) {
    ids.push((await scene.send(owner!, cid, { text: 'hi', mentions })).id);
    await settled(db);
    assert.deepEqual(counts(), pushed, JSON.stringify(mentions));
  }
  assert.deepEqual(
    told(all!).map((d) => d.data['mention']),
    [undefined, undefined, 'true', undefined],
  );
  assert.deepEqual(
    told(some!).map((d) => [d.data['messageId'], d.data['mention']]),
    [
      [ids[1], 'true'],
      [ids[2], 'true'],
    ],
  );
  // Counts do not depend on the level, and an edit never pushes.
  assert.deepEqual(
    await Promise.all(people.map(async (who) => (await scene.item(who, cid)).mentionUnreadCount)),
    [2, 3, 3],
  );
  await owner!.api('PATCH', `/v1/messages/${ids[0]}`, { expectedVersion: 1, mentions: [to(some!)] });
  await settled(db);
  assert.deepEqual(counts(), [4, 2, 0]);

  const why = async (message: string, user: Actor): Promise<DeliveryDiagnosis> =>
    (await dashboard('GET', `/v1/diagnostics/delivery?messageId=${message}&userId=${user.id}`)).body;
  const reason = (d: DeliveryDiagnosis) => d.timeline.find((s) => s.kind === 'push')!.title;
  const plain = await scene.send(owner!, cid, { text: 'nobody' });
  assert.match(reason(await why(plain.id, some!)), /mentions only, and the message does not mention/);
  assert.match(reason(await why(ids[3]!, some!)), /`here` is for those who are there/);
  assert.match(reason(await why(ids[2]!, none!)), /muted the conversation$/);
  const { member } = await why(ids[1]!, some!);
  assert.deepEqual([member.level, member.mention, member.muted], ['mentions', 'user', false]);
  await server('DELETE', path);
});

test('mentions#levels: notification.needed names those who are mentioned', async (t) => {
  const receiver = await startReceiver();
  t.after(() => receiver.close());
  await set({ pushMode: 'webhook' });
  t.after(() => set({ pushMode: 'providers' }));
  await addEndpoint(server, receiver.url, ['notification.needed']);
  const [owner, all, some, none] = await Promise.all(['o', 'a', 's', 'n'].map((name) => scene.actor(name)));
  const { id: cid } = await scene.group(owner!, [all!, some!, none!]);
  await setLevel(some!, cid, { level: 'mentions' });
  await setLevel(none!, cid, { level: 'none' });
  const needed = async (mentions: object[]) => {
    const { id } = await scene.send(owner!, cid, { text: 'hi', mentions });
    const { data } = await receiver.next('notification.needed', (r) => r.data.messageId === id);
    return [data.recipientIds.toSorted(), data.mentionedIds.toSorted()];
  };
  assert.deepEqual(await needed([{ type: 'here' }]), [[all!.id], []]);
  assert.deepEqual(await needed([to(some!), to(none!)]), [[all!.id, some!.id].toSorted(), [some!.id]]);
  const both = [all!.id, some!.id].toSorted();
  assert.deepEqual(await needed([{ type: 'everyone' }]), [both, both]);
});

test('conversations#other-rules: the default level of a group decides about pushes to members who chose none', async () => {
  const [owner, ben, cleo] = await Promise.all(['owner', 'ben', 'cleo'].map(withDevice));
  const { id: cid } = await scene.group(owner!, [ben!, cleo!], { rules: { defaultLevel: 'mentions' } });
  await setLevel(cleo!, cid, { level: 'all' });
  const plain = await scene.send(owner!, cid);
  await settled(db);
  assert.deepEqual([told(ben!).length, told(cleo!).length], [0, 1]);
  const { body } = await dashboard('GET', `/v1/diagnostics/delivery?messageId=${plain.id}&userId=${ben!.id}`);
  assert.match(body.timeline.find((s: any) => s.kind === 'push').title, /mentions only/);
  await scene.send(owner!, cid, { text: 'hi', mentions: [to(ben!)] });
  await settled(db);
  assert.deepEqual([told(ben!).length, told(cleo!).length], [1, 2]);
});

test('mentions#mute, T3.5: muted until a time: no push before, pushes after, and nothing is written in between', async () => {
  const [sender, member] = [await scene.actor(), await withDevice('muted')];
  const { id: cid } = await scene.group(sender, [member]);
  await setLevel(member, cid, { level: 'mentions' });
  const end = soon(2_000);
  const answer = await setLevel(member, cid, { level: 'none', until: end });
  assert.deepEqual(answer, { conversationId: cid, level: 'none', until: end, muted: true });
  const item = async () => {
    const { level, muted, mutedUntil } = await scene.item(member, cid);
    return [level, muted, mutedUntil];
  };
  const row = () =>
    db.query(
      `SELECT m.xmin::text, m.level, m.muted, m.muted_until FROM members m JOIN users u ON u.no = m.usr WHERE u.id = $1`,
      [member.id],
    );
  // Activity is renewed for all members every ten seconds, by whatever happens: not now.
  await db.query('UPDATE conversations SET last_activity_step = last_activity_step + 1000 WHERE id = $1', [
    cid,
  ]);
  const written = await row();
  const send = async () => {
    await scene.send(sender, cid, { text: 'hi', mentions: [to(member)] });
    await settled(db);
    return told(member).length;
  };
  assert.deepEqual([await item(), await send()], [['none', true, end], 0]);
  time.advance(1_999);
  assert.deepEqual([await item(), await send()], [['none', true, end], 0]);
  time.advance(1);
  assert.deepEqual(
    [await item(), await send()],
    [['mentions', false, undefined], 1],
    'the level before holds again',
  );
  assert.deepEqual(await row(), written);
});

test('mentions#mute, T3.5: base mute and level agree in both directions, and other devices learn of them', async () => {
  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.group(anna, [ben]);
  const socket = await scene.online(ben);
  const path = `/v1/conversations/${cid}`;
  const item = async () => {
    const { level, muted, mutedUntil } = await scene.item(ben, cid);
    return [level, muted, mutedUntil];
  };
  const personal = async () => (await socket.ephemeral('personal')).d.d;
  await setLevel(ben, cid, { level: 'mentions' });
  assert.deepEqual(await personal(), { conversationId: cid, level: 'mentions', until: null, muted: false });
  const none = { conversationId: cid, level: 'none', until: null, muted: true };
  assert.deepEqual((await ben.api('PUT', `${path}/mute`)).body, { conversationId: cid, muted: true });
  assert.deepEqual(await personal(), none);
  assert.deepEqual(await item(), ['none', true, undefined]);
  const back = { conversationId: cid, level: 'mentions', until: null, muted: false };
  assert.deepEqual((await ben.api('DELETE', `${path}/mute`)).body, { conversationId: cid, muted: false });
  assert.deepEqual(await personal(), back);
  const end = soon(3_600_000);
  await setLevel(ben, cid, { level: 'none', until: end });
  assert.deepEqual(await item(), ['none', true, end]);
  await ben.api('PUT', `${path}/mute`);
  assert.deepEqual(await item(), ['none', true, undefined], 'muting has no end');
  await setLevel(ben, cid, { level: 'all' });
  assert.deepEqual(await item(), ['all', false, undefined]);
  const { personalRev } = (await scene.online(ben)).hello;
  await setLevel(ben, cid, { level: 'all' });
  assert.equal((await scene.online(ben)).hello.personalRev, personalRev, 'the same again changes nothing');

  await set({ defaultLevel: 'mentions' });
  const fresh = await scene.group(anna, [ben]);
  assert.equal((await scene.item(ben, fresh.id)).level, 'mentions');
  assert.equal((await scene.item(ben, cid)).level, 'all', 'what was chosen stays');
  assert.equal((await scene.online(ben)).hello.defaultLevel, 'mentions');
  await set({ defaultLevel: 'all' });
  assert.equal((await scene.item(ben, fresh.id)).level, 'all');

  const put = (who: Actor | { api: Api }, body: object) => who.api('PUT', `${path}/notifications`, body);
  for (const [body, param] of [
    [{ level: 'some' }, 'level'],
    [{ level: 'all', until: end }, 'until'],
    [{ level: 'none', until: soon(-60_000) }, 'until'],
    [{ level: 'none', until: 'tomorrow' }, 'until'],
    [{ level: 'none', until: '2099-02-31T00:00:00Z' }, 'until'],
    [{ level: 'none', until: '9999-12-31T23:59:59-23:59' }, 'until'],
  ] as const) {
    const refused = await put(ben, body);
    assertError(refused, 400, 'invalid_request');
    assert.equal(refused.body.error.param, param);
  }
  assertError(await put(await scene.actor(), { level: 'all' }), 403, 'not_member');
  assertError(await put({ api: server }, { level: 'all' }), 403, 'forbidden');
});

test('identity#features, T0.3: with mentions off, its operations and fields are refused, and what is stored stays', async (t) => {
  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.group(anna, [ben]);
  const { id } = await scene.send(anna, cid, { text: 'hi', mentions: [to(ben)] });
  await set({ disabledFeatures: ['mentions'] });
  t.after(() => set({ disabledFeatures: [] }));
  const socket = await scene.online(anna);
  assert.ok(!socket.hello.features.includes('mentions'));
  const off = [
    await anna.api('POST', `/v1/conversations/${cid}/messages`, {
      clientMsgId: 'a',
      text: 'x',
      mentions: [],
    }),
    await anna.api('PATCH', `/v1/messages/${id}`, { expectedVersion: 1, mentions: [] }),
    await ben.api('GET', '/v1/mentions'),
    await ben.api('PUT', `/v1/conversations/${cid}/notifications`, { level: 'all' }),
  ];
  for (const answer of off) {
    assertError(answer, 403, 'feature_disabled');
    assert.deepEqual(answer.body.error.details, { feature: 'mentions' });
  }
  const frame = { cid, clientMsgId: 'b', text: 'x', mentions: [to(ben)] };
  await socket.refused('message.send', frame, 'feature_disabled');
  assert.equal((await ben.api('PUT', `/v1/conversations/${cid}/mute`)).status, 200, 'muting is of the base');
  assert.equal((await scene.item(ben, cid)).mentionUnreadCount, 1);
  assert.deepEqual((await ben.api('GET', `/v1/messages/${id}`)).body.mentions, [to(ben)]);
});
