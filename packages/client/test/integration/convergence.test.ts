import assert from 'node:assert/strict';
import { test } from 'node:test';
import { socketEvents } from '@parley/protocol';
import type { Client, ConversationHandle } from '../../src/index.ts';
import { useNodes } from '../../../server/test/cluster/nodes.ts';
import { serverApi } from '../../../server/test/support/api.ts';
import { lazy } from '../../../server/test/support/use.ts';
import { startProxy } from '../chaos/proxy.ts';
import type { FaultyProxy } from '../chaos/proxy.ts';
import { seeded } from '../chaos/random.ts';
import type { Random } from '../chaos/random.ts';
import { assertConverged, eventually, newClient, settled, whenReady } from './people.ts';
import { seed } from '../../../../scripts/seed.ts';

/** sdk#procedure: after any events, on two nodes, the SDK shows what a fresh client fetches. */

const { cluster, nodes } = useNodes([{}, {}]);
const servers = nodes.map((node) => lazy(() => serverApi(node.url)));

interface Person {
  id: string;
  client: Client;
  proxy: FaultyProxy;
  handles: Map<string, ConversationHandle>;
  events: Set<string>;
}

const opened = (person: Person, cid: string): ConversationHandle => {
  let handle = person.handles.get(cid);
  if (!handle) {
    person.handles.set(cid, (handle = person.client.conversations.open(cid)));
    handle.loadMembers().catch(() => undefined);
  }
  return handle;
};

async function people(names: string[], random: Random): Promise<Person[]> {
  return Promise.all(
    names.map(async (id) => {
      assert.equal((await servers[0]!('PUT', `/v1/users/${id}`, {})).status, 200);
      const own = random.fork();
      const proxy = await startProxy(() => own.pick(cluster.nodes).port, own);
      const client = newClient(proxy.url, id, () => own.next());
      const person: Person = { id, client, proxy, handles: new Map(), events: new Set() };
      // What was refused for good would hold up what comes after it.
      client.on('failed', (item) => opened(person, item.conversationId).discard(item.clientMsgId!));
      client.on('event', ({ type }) => person.events.add(type));
      await client.connect();
      return person;
    }),
  );
}

async function leave(persons: Person[]): Promise<void> {
  for (const { client, proxy } of persons) {
    client.disconnect();
    await proxy.close();
  }
}

async function create(members: string[], more: object = {}): Promise<string> {
  const { status, body } = await servers[0]!('POST', '/v1/conversations', {
    type: 'group',
    members,
    ...more,
  });
  assert.equal(status, 201, JSON.stringify(body));
  return body.id;
}

const converged = (person: Person, what: string): Promise<void> =>
  assertConverged(cluster.nodes[0]!.url, person.client, person.handles, what);

test('convergence: after each type of event, the state equals a fresh fetch', async () => {
  const random = seeded(1);
  const [ann, bob] = (await people(['ann-each', 'bob-each'], random)) as [Person, Person];
  await servers[0]!('PUT', '/v1/users/guest-each', {});
  try {
    const cid = await create([ann.id, bob.id], { name: 'one', ownerId: bob.id });
    await eventually(() => ann.events.has('conversation.created'));
    await whenReady(opened(ann, cid));
    await whenReady(opened(bob, cid));
    await Promise.all([opened(ann, cid).loadMembers(), opened(bob, cid).loadMembers()]);
    const server = servers[1]!;
    const path = `/v1/conversations/${cid}`;
    let message = { id: '', version: 0 };
    const mentions = [{ type: 'user', userId: ann.id }];
    const send = async (): Promise<void> =>
      void (message = (
        await server('POST', `${path}/messages`, { senderId: bob.id, text: 'hello', mentions })
      ).body);
    const steps: [string, () => Promise<unknown>][] = [
      ['message.new', send],
      [
        'message.updated',
        () =>
          server('PATCH', `/v1/messages/${message.id}`, {
            text: 'edited',
            mentions: [],
            expectedVersion: message.version,
          }),
      ],
      [
        'message.reactions',
        async () => {
          await server('PUT', `/v1/messages/${message.id}/reactions/%F0%9F%91%8D`, { userId: bob.id });
          // A worker tells it, after the answer.
          await eventually(() => ann.events.has('message.reactions') && bob.events.has('message.reactions'));
        },
      ],
      ['message.pinned', () => server('PUT', `/v1/messages/${message.id}/pin`)],
      [
        'message.updated',
        () => server('PATCH', `/v1/messages/${message.id}`, { text: 'again', expectedVersion: 2 }),
      ],
      [
        'message.enriched',
        async () => {
          const poll = { question: 'Which?', options: [{ text: 'a' }, { text: 'b' }] };
          const sent = (await server('POST', `${path}/messages`, { senderId: bob.id, poll })).body;
          const shown = (person: Person) =>
            opened(person, cid)
              .messages.get()
              .items.find((m) => m.id === sent.id);
          await eventually(() => shown(bob) !== undefined);
          await opened(bob, cid).vote(sent.id, [2]);
          await server('POST', `/v1/messages/${sent.id}/poll/close`);
          // A worker tells the last results, after the answer.
          await eventually(() => [ann, bob].every((person) => shown(person)?.reactions?.revision === 2));
        },
      ],
      ['message.deleted', () => server('DELETE', `/v1/messages/${message.id}`)],
      ['message.new', send],
      ['message.deleted', () => server('DELETE', `/v1/messages/${message.id}?hard=true`)],
      ['member.added', () => server('POST', `${path}/members`, { userIds: ['guest-each'] })],
      ['member.updated', () => server('PATCH', `${path}/members/guest-each`, { role: 'owner' })],
      ['member.removed', () => server('DELETE', `${path}/members/guest-each`)],
      ['conversation.updated', () => server('PATCH', path, { name: 'two', metadata: { a: 1 } })],
      ['message.new', send],
      ['member.removed', () => server('DELETE', `${path}/members/${ann.id}`)],
      ['message.new', send],
      ['member.added', () => server('POST', `${path}/members`, { userIds: [ann.id] })],
      ['conversation.deleted', () => server('DELETE', path)],
    ];
    for (const [type, step] of steps) {
      await step();
      await settled([ann, bob]);
      for (const person of [ann, bob]) await converged(person, type);
    }
    assert.deepEqual(ann.events, new Set(Object.keys(socketEvents)));
  } finally {
    await leave([ann, bob]);
  }
});

for (const cuts of [false, true])
  test(`convergence: random interleavings by several users and the server${cuts ? ', with reconnects' : ''}`, async () => {
    const start = seed('convergence of real clients');
    const random = seeded(start);
    const tag = cuts ? 'cut' : 'whole';
    const names = ['a', 'b', 'c', 'd'].map((name) => `${name}-${tag}`);
    const persons = await people(names, random);
    try {
      const cids = [
        await create(names, { ownerId: names[0] }),
        await create(names.slice(0, 3)),
        await create(names.slice(1)),
      ];
      const background: Promise<unknown>[] = [];
      for (const person of persons) opened(person, cids[0]!);
      for (let i = 0; i < 250; i++) {
        await act(random, persons, cids, cuts, i, background);
        await new Promise((resolve) => setTimeout(resolve, random.int(25)));
      }
      await Promise.all(background);
      await settled(persons);
      for (const person of persons) await converged(person, `seed ${start}`);
    } finally {
      await leave(persons);
    }
  });

/** One step. What is refused (not a member, deleted meanwhile) is part of the game: only the states count. */
async function act(
  random: Random,
  persons: Person[],
  cids: string[],
  cuts: boolean,
  i: number,
  background: Promise<unknown>[],
): Promise<void> {
  const person = random.pick(persons);
  const cid = random.pick(cids);
  const server = random.pick(servers);
  const path = `/v1/conversations/${cid}`;
  const what = random.next();
  const ignored = (promise: Promise<unknown>): void => void background.push(promise.catch(() => undefined));
  const handle = person.handles.get(cid);
  const mine =
    handle?.messages.get().items.filter((m) => m.id !== null && m.senderId === person.id && !m.deletedAt) ??
    [];
  const any = handle?.messages.get().items.filter((m) => m.id !== null) ?? [];
  const other = random.pick(persons).id;
  if (what < 0.2) opened(person, cid).send(`${person.id} ${i}`);
  else if (what < 0.4)
    ignored(
      server('POST', `${path}/messages`, {
        text: `server ${i}`,
        ...(random.chance(0.5) ? { senderId: person.id } : {}),
      }),
    );
  else if (what < 0.45) person.client.conversations.markRead(cid);
  else if (what < 0.48) person.client.conversations.markRead(cid, random.int(60));
  else if (what < 0.54) opened(person, cid);
  else if (what < 0.57 && mine.length > 0)
    ignored(handle!.edit(random.pick(mine).id!, { text: `edit ${i}` }));
  else if (what < 0.6 && mine.length > 0) ignored(handle!.delete(random.pick(mine).id!));
  else if (what < 0.64 && any.length > 0)
    ignored(server('DELETE', `/v1/messages/${random.pick(any).id}?hard=${random.chance(0.5)}`));
  else if (what < 0.68 && any.length > 0) {
    const message = random.pick(any);
    ignored(
      server('PATCH', `/v1/messages/${message.id}`, { metadata: { i }, expectedVersion: message.version }),
    );
  } else if (what < 0.72) ignored(server('DELETE', `${path}/members/${other}`));
  else if (what < 0.8) ignored(server('POST', `${path}/members`, { userIds: [other] }));
  else if (what < 0.82)
    ignored(server('PATCH', `${path}/members/${other}`, { role: random.pick(['owner', 'member']) }));
  else if (what < 0.84) ignored(server('PATCH', path, { name: `name ${i}` }));
  else if (what < 0.86 && handle) ignored(handle.update({ metadata: { i } }));
  else if (what < 0.88 && handle) ignored(handle.mute(random.chance(0.5)));
  else if (what < 0.9 && handle) ignored(handle.loadOlder());
  else if (what < 0.907 && any.length > 0) {
    const { id } = random.pick(any);
    ignored(random.chance(0.7) ? handle!.pin(id!) : handle!.unpin(id!));
  } else if (what < 0.91 && handle) ignored(handle.leave());
  else if (what < 0.925 && cids.length < 8)
    cids.push(await create([person.id, ...(other === person.id ? [] : [other])]));
  else if (what < 0.94)
    ignored(
      person.client.conversations
        .createGroup([other], { name: `by ${person.id}` })
        .then(({ id }) => cids.length < 8 && cids.push(id)),
    );
  else if (what < 0.945 && cids.length > 3) ignored(server('DELETE', `/v1/conversations/${cids.at(-1)}`));
  else if (cuts && what > 0.95) person.proxy.cut();
}
