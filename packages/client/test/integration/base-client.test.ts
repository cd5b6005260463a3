import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { until } from '../../../server/test/cluster/nodes.ts';
import { ready, voiceNote } from '../../../server/test/uploads/files.ts';
import type { Answer } from '../../../server/test/support/api.ts';
import { useService } from '../../../server/test/support/use.ts';
import { seed } from '../../../../scripts/seed.ts';
import { startProxy } from '../chaos/proxy.ts';
import type { FaultyProxy } from '../chaos/proxy.ts';
import { seeded } from '../chaos/random.ts';
import { memoryStorage } from '../../src/index.ts';
import type { Client, ConversationHandle, Draft, MessageItem, Storage } from '../../src/index.ts';
import { tokenFor } from '../chaos/actor.ts';
import { newClient, secretKey, settled, whenReady } from './people.ts';

/** T0.1: the client as it was before extensions, beside a current one that uses all of them in the same conversations. */

const { service, scene, server } = useService();

const recorded = new URL('../recorded/base-client.js', import.meta.url).href;
const { createClient } = (await import(recorded)) as Pick<
  typeof import('../../src/index.ts'),
  'createClient'
>;

/** Nothing that arrives may make the old client throw, in a promise that nobody awaits either. */
const thrown: unknown[] = [];
const note = (error: unknown): void => void thrown.push(error);
before(() => process.on('unhandledRejection', note));
after(() => process.off('unhandledRejection', note));

const base = (url: string, userId: string, storage?: Storage): Client => {
  const token = () => tokenFor(secretKey, userId);
  return createClient({ url, token, ...(storage ? { storage } : {}) });
};

/** What the old client knows of a message. */
const known = (m: MessageItem) =>
  [
    m.id,
    m.seq,
    m.senderId,
    m.text,
    m.replyTo,
    m.version,
    m.editedAt,
    m.deletedAt,
    m.attachments,
    m.metadata,
  ] as const;

async function allOf(handle: ConversationHandle): Promise<readonly MessageItem[]> {
  await whenReady(handle);
  while (handle.messages.get().hasNewer) await handle.loadNewer();
  while (handle.messages.get().hasOlder) await handle.loadOlder();
  return handle.messages.get().items;
}

interface Scenery {
  old: Client;
  /** Open in the old client. */
  shown: Map<string, ConversationHandle>;
  events: { cid: string; seq: number; type: string }[];
  failed: string[];
  errors: unknown[];
}

function follow(old: Client, cids: string[]): Scenery {
  const scenery: Scenery = { old, shown: new Map(), events: [], failed: [], errors: [] };
  old.on('event', ({ conversationId: cid, seq, type }) => scenery.events.push({ cid, seq, type }));
  // A cut that comes while it connects is told to it as what it is.
  old.on('error', (error) => error.code === 'network' || scenery.errors.push(error));
  old.on('failed', (item) => {
    scenery.failed.push(item.error!.code);
    scenery.shown.get(item.conversationId)!.discard(item.clientMsgId!);
  });
  for (const cid of cids) scenery.shown.set(cid, old.conversations.open(cid));
  return scenery;
}

/** Each conversation as the old client shows it is what the store holds, with the unread count of a model. */
async function assertRight({ old, shown, events, errors }: Scenery, what: string): Promise<void> {
  await settled([{ client: old, handles: shown }]);
  for (const [cid, handle] of shown) {
    /** What the store holds at this moment. */
    const wanted = async () => {
      const stored: any[] = [];
      for (let before: number | undefined; ;) {
        const at = `/v1/conversations/${cid}/messages?limit=100${before ? `&before=${before}` : ''}`;
        const { body } = await server('GET', at);
        stored.unshift(...body.data.reverse());
        if (!body.hasMore) break;
        before = stored[0].seq;
      }
      const { body } = await server('GET', `/v1/conversations/${cid}/members?limit=100`);
      const { lastReadSeq } = body.data.find((m: any) => m.userId === old.userId);
      const unread = stored.filter((m) => m.senderId !== old.userId && !m.deletedAt && m.seq > lastReadSeq);
      const last = stored.filter((m) => !m.deletedAt).at(-1);
      const none = { text: null, replyTo: null, version: 0, editedAt: null, attachments: [], metadata: {} };
      return {
        state: [unread.length, last.id, lastReadSeq],
        history: stored.map((m) => known({ ...none, ...m })),
      };
    };
    const mine = () => {
      const item = old.conversations.get().items.find(({ id }) => id === cid)!;
      return {
        state: [item.unreadCount, item.lastMessage?.id, item.lastReadSeq],
        history: handle.messages.get().items.map(known),
      };
    };
    await allOf(handle);
    await until(async () => isDeepStrictEqual(mine(), await wanted())).catch(() => undefined);
    assert.deepEqual(mine(), await wanted(), `${what}: history and unread`);
    const told = events.filter((e) => e.cid === cid).map((e) => e.seq);
    assert.deepEqual(
      told,
      [...new Set(told)].sort((a, b) => a - b),
      `${what}: each event once, in order`,
    );
  }
  assert.deepEqual(errors, [], what);
  assert.deepEqual(thrown, [], what);
}

test('identity#features, T0.1: a recorded client from before extensions misses, doubles and throws nothing while a current one uses all of them, and its unread counts are right', async () => {
  const [anna, ben, cleo] = await Promise.all(['anna', 'ben', 'cleo'].map((name) => scene.actor(name)));
  const random = seeded(seed('base client'));
  const proxy: FaultyProxy = await startProxy(() => Number(new URL(service.url).port), random.fork());
  const storage = memoryStorage();
  const now = newClient(service.url, ben!.id);
  const { id: group } = await scene.group(ben!, [anna!, cleo!], { name: 'all' });
  const { id: direct } = await scene.direct(anna!, ben!);
  const cids = [group, direct];
  let old = base(proxy.url, anna!.id, storage);
  let scenery = follow(old, cids);
  try {
    await Promise.all([old.connect(), now.connect()]);
    const handles = new Map(cids.map((cid) => [cid, now.conversations.open(cid)]));
    await Promise.all([...handles.values(), ...scenery.shown.values()].map(whenReady));
    const inGroup = handles.get(group)!;
    const sent = async (handle: ConversationHandle, draft: Draft | string) => {
      const ended: MessageItem[] = [];
      const stops = (['sent', 'failed'] as const).map((name) => now.on(name, (item) => ended.push(item)));
      const { clientMsgId } = handle.send(draft);
      const find = () => ended.find((item) => item.clientMsgId === clientMsgId);
      await until(() => find() !== undefined);
      for (const stop of stops) stop();
      const { status, error, id } = find()!;
      assert.equal(status, 'sent', JSON.stringify(error));
      await until(() => handle.messages.get().items.some((m) => m.id === id && m.status === 'sent'));
      return id!;
    };
    const done = async (answer: Promise<Answer>): Promise<any> => {
      const { status, body } = await answer;
      assert.ok(status < 300, JSON.stringify(body));
      return body;
    };
    const live = (handle: ConversationHandle, who?: string) =>
      handle.messages
        .get()
        .items.filter((m) => m.id && !m.deletedAt && m.status === 'sent' && (!who || m.senderId === who));
    const someOf = (handle: ConversationHandle) => random.pick(live(handle)).id!;
    const poll = { question: 'Which?', options: [{ text: 'a' }, { text: 'b' }] };
    for (const handle of handles.values()) await sent(handle, 'first');

    const either = () => handles.get(random.pick(cids))!;
    const extensions: [string, () => Promise<unknown>][] = [
      [
        'react',
        () => {
          const to = either();
          return to.react(someOf(to), random.pick(['👍', '🎉', ':own:']));
        },
      ],
      [
        'unreact',
        () => {
          const to = either();
          return to.unreact(someOf(to), '👍');
        },
      ],
      [
        'pin',
        () => {
          const to = either();
          return to.pin(someOf(to));
        },
      ],
      [
        'unpin',
        () => {
          const to = either();
          return to.unpin(someOf(to));
        },
      ],
      ['mention', () => sent(inGroup, { text: 'hi', mentions: [{ type: 'user', userId: anna!.id }] })],
      [
        'everyone',
        () => sent(inGroup, { text: '@all', mentions: [{ type: 'everyone', offset: 0, length: 4 }] }),
      ],
      [
        'edit mentions',
        async () => {
          const id = await sent(inGroup, 'plain');
          await inGroup.edit(id, { mentions: [{ type: 'user', userId: anna!.id }] });
        },
      ],
      [
        'poll',
        async () => {
          const to = either();
          const id = await sent(to, { poll });
          await to.vote(id, [1]);
          if (to === inGroup) await done(cleo!.api('PUT', `/v1/messages/${id}/votes`, { options: [2] }));
          await to.vote(id, [2]);
          await to.closePoll(id);
        },
      ],
      ['voice note', async () => sent(inGroup, { attachments: [await ready(ben!.api, group, voiceNote)] })],
      ['level', () => either().setLevel(random.pick(['all', 'mentions', 'none']))],
      [
        'delete',
        async () => {
          const to = either();
          await to.delete(await sent(to, 'gone'));
        },
      ],
      [
        'delete pinned',
        async () => {
          const to = either();
          const id = await sent(to, { text: 'gone', poll });
          await to.pin(id);
          await to.react(id, '👍');
          await to.delete(id);
        },
      ],
      [
        'hard delete',
        async () => {
          const id = await sent(inGroup, 'gone for good');
          await inGroup.react(id, '👍');
          await done(server('DELETE', `/v1/messages/${id}?hard=true`));
          await until(() => !live(inGroup).some((m) => m.id === id));
        },
      ],
      ['report', () => now.report({ messageId: someOf(inGroup) }, 'spam', 'look')],
      [
        'moderator',
        async () => {
          for (const role of ['moderator', 'member'])
            await done(server('PATCH', `/v1/conversations/${group}/members/${cleo!.id}`, { role }));
        },
      ],
      [
        'ban',
        async () => {
          await inGroup.ban(cleo!.id);
          await inGroup.unrestrict(cleo!.id);
          const { token } = await inGroup.createInvite({ maxUses: 1 });
          await done(cleo!.api('POST', `/v1/invites/${token}`));
        },
      ],
      [
        'rules',
        () =>
          inGroup.setRules({
            joining: random.pick(['link', 'open']),
            pinning: 'moderators',
            mentionEveryone: 'moderators',
            defaultLevel: random.pick(['all', 'mentions']),
          }),
      ],
    ];
    await server('PATCH', `/v1/conversations/${group}`, { rules: { joining: 'link' } });

    // What the old client meets as refusals that it has no name for: each fails for good, and holds up nothing.
    const refused = async (
      code: string,
      cid: string,
      text: string,
      begin: () => Promise<unknown>,
      end: () => Promise<unknown>,
    ) => {
      await begin();
      scenery.shown.get(cid)!.send(text);
      const { failed } = scenery;
      await until(
        () => failed.length > 0,
        () => code,
      );
      assert.deepEqual(failed.splice(0), [code]);
      await end();
    };
    const refusals: (() => Promise<void>)[] = [
      () =>
        refused(
          'blocked',
          direct,
          'hello?',
          () => now.blocks.add(anna!.id),
          () => now.blocks.remove(anna!.id),
        ),
      () =>
        refused(
          'restricted',
          group,
          'silenced',
          () => inGroup.silence(anna!.id),
          () => inGroup.unrestrict(anna!.id),
        ),
      () =>
        refused(
          'restricted',
          group,
          'announcements',
          () => inGroup.setRules({ posting: 'moderators' }),
          () => inGroup.setRules({ posting: 'all' }),
        ),
      () =>
        refused(
          'message_rejected',
          group,
          'forbiddenword',
          async () => undefined,
          async () => undefined,
        ),
    ];
    for (const [name, action, entry] of [
      ['no', 'reject', 'forbiddenword'],
      ['mask', 'mask', 'rude'],
    ])
      await done(
        server('PUT', `/v1/moderation/lists/${name}`, { entries: [entry], action, conversations: 'all' }),
      );

    const from = () => scenery.shown.get(random.pick(cids))!;
    let said = 0;
    const basics: [string, () => unknown][] = [
      ['send', () => from().send(`old ${said++}`)],
      ['masked', () => from().send(`a rude word ${said++}`)],
      [
        'reply',
        () => {
          const to = from();
          // One that nobody deletes for good before it is sent.
          const own = live(to, anna!.id)[0];
          to.send(own ? { text: 'reply', replyTo: own.id! } : 'reply');
        },
      ],
      [
        'type',
        () => {
          const to = from();
          to.startTyping();
          to.stopTyping();
        },
      ],
      ['read', () => from().markRead()],
      [
        'edit',
        async () => {
          const to = from();
          const own = live(to, anna!.id).at(-1);
          if (own) await to.edit(own.id!, { text: `edited ${said++}` });
        },
      ],
      [
        'delete',
        async () => {
          const to = from();
          const own = live(to, anna!.id)[0];
          if (!own) return;
          await to.delete(own.id!);
          // What the current client picks next is there.
          await until(() => !live(handles.get(to.id)!).some((m) => m.id === own.id));
        },
      ],
      [
        'mute',
        async () => {
          const to = from();
          await to.mute();
          await to.unmute();
        },
      ],
    ];
    /** Cuts the connections of the old client, which has noticed it when this is done. */
    const cut = async () => {
      const noticed = new Promise<void>((resolve) => {
        if (old.state !== 'connected') return resolve();
        const stop = old.on('state', ({ state }) => {
          if (state === 'connected') return;
          stop();
          resolve();
        });
      });
      proxy.cut();
      await noticed;
    };
    const each = async (round: number) => {
      const steps = [...extensions, ...basics, ...basics].map((step) => ({ step, at: random.next() }));
      for (const { step } of steps.sort((a, b) => a.at - b.at)) {
        if (random.chance(0.1)) await cut();
        try {
          await step[1]();
        } catch (error) {
          assert.fail(`${step[0]} in round ${round}: ${String(error)}`);
        }
      }
    };

    await each(1);
    await assertRight(scenery, 'live');
    for (const refusal of refusals) await refusal();
    await assertRight(scenery, 'refused');

    // Two sends that slow mode holds apart: the old client waits for the rest and sends each once.
    await inGroup.setRules({ slowModeSeconds: 1 });
    for (const text of ['slow 1', 'slow 2']) scenery.shown.get(group)!.send(text);
    await settled([{ client: old, handles: scenery.shown }]);
    await inGroup.setRules({ slowModeSeconds: 0 });
    await assertRight(scenery, 'slow mode');

    // Away while all of it happens: it comes back by sync and gap repair.
    old.disconnect();
    for (const [, step] of extensions) await step();
    await old.connect();
    await assertRight(scenery, 'after an absence');

    // Started again with what it had stored, and one without anything.
    old.disconnect();
    for (const [, step] of extensions) await step();
    old = base(proxy.url, anna!.id, storage);
    scenery = follow(old, cids);
    await old.connect();
    await each(2);
    await assertRight(scenery, 'started again');
    const fresh = base(service.url, anna!.id);
    try {
      const other = follow(fresh, cids);
      await fresh.connect();
      await assertRight(other, 'a new device');
      const brief = (client: Client) =>
        client.conversations.get().items.map((item) => [item.id, item.unreadCount, item.lastSeq, item.muted]);
      await until(() => isDeepStrictEqual(brief(old), brief(fresh))).catch(() => undefined);
      assert.deepEqual(brief(old), brief(fresh));
    } finally {
      fresh.disconnect();
    }
  } finally {
    old.disconnect();
    now.disconnect();
    await proxy.close();
  }
});
