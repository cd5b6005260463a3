import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { assertError, createApi } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import { parley } from '../support/cli.ts';
import { stores } from '../support/postgres.ts';
import type { Actor } from '../support/scene.ts';
import { signToken } from '../support/tokens.ts';
import { useService } from '../support/use.ts';

const ids = (page: { data: { id: string }[] }) => page.data.map((c) => c.id);
const names = (count: number, prefix: string) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

for (const store of stores)
  describe(`on the ${store.name}`, () => {
    const { service, scene, server } = useService({ start: store.start });
    let a: Actor;
    let b: Actor;
    let c: Actor;
    // New ones each time: a user's requests are limited.
    beforeEach(async () => {
      [a, b, c] = [await scene.actor('a'), await scene.actor('b'), await scene.actor('c')];
    });

    const create = (by: Api, body: Record<string, unknown>) => by('POST', '/v1/conversations', body);

    describe('conversations#direct: POST, direct', () => {
      it('two members, 201 first, 200 with the same conversation after, whoever asks in whichever order', async () => {
        const [x, y] = [await scene.actor('x'), await scene.actor('y')];
        const first = await create(server, { type: 'direct', members: [x.id, y.id] });
        assert.equal(first.status, 201);
        assert.match(first.body.id, /^conv_dm_[0-9a-z]{26}$/);
        assert.equal(first.body.lastSeq, 1);
        const roles = first.body.members.map((m: { role: string }) => m.role);
        assert.deepEqual(roles, ['member', 'member']);
        for (const [by, members] of [
          [server, [y.id, x.id]],
          [x.api, [y.id]],
          [y.api, [x.id, y.id]],
        ] as const) {
          const again = await create(by, { type: 'direct', members });
          assert.deepEqual([again.status, again.body], [200, first.body]);
        }
        assert.equal((await scene.events(first.body.id)).length, 1);
      });

      it('creations of one pair at the same time make one conversation', async () => {
        const [x, y] = [await scene.actor('x'), await scene.actor('y')];
        const answers = await Promise.all(
          names(20, '').map(() => create(server, { type: 'direct', members: [x.id, y.id] })),
        );
        assert.equal(new Set(answers.map((r) => r.body.id)).size, 1);
        assert.equal(answers.filter((r) => r.status === 201).length, 1);
      });

      it('conversations#direct: exactly two distinct members; a client is always one of them; no owner', async () => {
        for (const members of [[], [a.id], [a.id, a.id], [a.id, b.id, c.id]])
          assertError(await create(server, { type: 'direct', members }), 400, 'invalid_request', 'members');
        for (const members of [[], [a.id], [b.id, c.id]])
          assertError(await create(a.api, { type: 'direct', members }), 400, 'invalid_request', 'members');
        const body = { type: 'direct', members: [a.id, b.id], ownerId: a.id };
        assertError(await create(server, body), 400, 'invalid_request', 'ownerId');
      });

      it('conversations#direct-revived: a soft-deleted one comes back to life with its history and the next seq', async () => {
        const [x, y] = [await scene.actor('x'), await scene.actor('y')];
        const { id } = await scene.direct(x, y);
        await scene.send(x, id, { text: 'before' });
        assert.equal((await server('DELETE', `/v1/conversations/${id}`)).status, 204);
        assert.deepEqual((await x.api('POST', '/v1/sync', { cursor: null })).body.conversations, []);
        const cursor = (await y.api('POST', '/v1/sync', { cursor: null })).body.cursor;
        assert.deepEqual((await y.api('POST', '/v1/sync', { cursor })).body.removed, [id]);
        const revived = await create(x.api, { type: 'direct', members: [y.id] });
        assert.deepEqual([revived.status, revived.body.id], [201, id]);
        assert.equal(revived.body.deletedAt, undefined);
        const types = (await scene.events(id)).map((e) => e.type);
        const created = 'conversation.created';
        assert.deepEqual(types, [created, 'message.new', 'conversation.deleted', created]);
        assert.equal(revived.body.lastSeq, 4);
        assert.equal((await x.api('GET', `/v1/conversations/${id}/messages`)).body.data[0].text, 'before');
        assert.deepEqual((await y.api('POST', '/v1/sync', { cursor })).body.removed, []);
        assert.equal((await scene.item(y, id)).unreadCount, 1);
      });
    });

    describe('conversations#group: POST, group', () => {
      it('conversations#owner: a client that creates a group becomes its owner', async () => {
        const fields = { name: 'Team', metadata: { color: 'red' } };
        const { status, body } = await create(a.api, { type: 'group', members: [b.id], ...fields });
        assert.equal(status, 201);
        assert.match(body.id, /^conv_[0-9a-hjkmnp-tv-z]{26}$/);
        assert.deepEqual(
          [body.type, body.name, body.metadata, body.lastSeq],
          ['group', 'Team', { color: 'red' }, 1],
        );
        assert.deepEqual(body.members, [
          { userId: a.id, role: 'owner' },
          { userId: b.id, role: 'member' },
        ]);
        assert.deepEqual((await b.api('GET', `/v1/conversations/${body.id}`)).body, body);
      });

      it('conversations#owner: a server names the owner, or there is none; unknown users are created', async () => {
        const owned = await create(server, { type: 'group', members: ['new-1'], ownerId: 'new-owner' });
        assert.deepEqual(owned.body.members, [
          { userId: 'new-1', role: 'member' },
          { userId: 'new-owner', role: 'owner' },
        ]);
        assert.equal((await server('GET', '/v1/users/new-owner')).body.name, null);
        const free = await create(server, { type: 'group', members: ['new-1', 'new-1'] });
        assert.deepEqual(free.body.members, [{ userId: 'new-1', role: 'member' }]);
      });

      it('users#unknown-users: a client naming an unknown user gets 404, one naming an owner 403; nothing is made', async () => {
        const x = await scene.actor('x');
        const body = { type: 'group', members: [b.id, 'nobody-knows'] };
        assertError(await create(x.api, body), 404, 'not_found');
        assertError(
          await create(x.api, { ...body, members: [b.id], ownerId: x.id }),
          403,
          'forbidden',
          'ownerId',
        );
        assert.deepEqual(ids((await x.api('GET', '/v1/conversations')).body), []);
        assertError(await server('GET', '/v1/users/nobody-knows'), 404, 'not_found');
      });

      it('conversations#group: 500 members counting the owner, 501 are 400 and create nothing', async () => {
        const full = await create(server, { type: 'group', members: names(499, 'g'), ownerId: 'g-owner' });
        assert.equal(full.body.members.length, 500);
        const over = { type: 'group', members: names(500, 'over'), ownerId: 'over-owner' };
        assertError(await create(server, over), 400, 'invalid_request', 'members');
        assertError(
          await create(server, { type: 'group', members: names(501, 'over') }),
          400,
          'invalid_request',
          'members',
        );
        assertError(await create(server, { type: 'group', members: [] }), 400, 'invalid_request', 'members');
        for (const id of ['over0', 'over-owner'])
          assertError(await server('GET', `/v1/users/${id}`), 404, 'not_found');
        assert.equal((await create(a.api, { type: 'group', members: [] })).body.members.length, 1);
      });

      it('conversations#group: members are counted without repeats', async () => {
        const listed = [...names(500, 'rep'), 'rep0', 'rep1'];
        const full = await create(server, { type: 'group', members: listed });
        assert.equal(full.status, 201);
        assert.equal(full.body.members.length, 500);
        const empty = await create(server, { type: 'group', members: ['rep0'] });
        const add = (userIds: string[]) =>
          server('POST', `/v1/conversations/${empty.body.id}/members`, { userIds });
        assertError(await add(names(501, 'new')), 400, 'invalid_request', 'userIds');
        assert.equal((await add([...names(499, 'new'), 'new0', 'new0'])).body.data.length, 499);
      });

      it('conversations#fields: the name has at most 200 characters', async () => {
        const named = (name: unknown) => create(server, { type: 'group', members: [a.id], name });
        assert.equal((await named('😀'.repeat(200))).status, 201);
        assertError(await named('x'.repeat(201)), 400, 'invalid_request', 'name');
        assertError(await named(''), 400, 'invalid_request', 'name');
        assert.equal((await named(null)).body.name, null);
      });

      it('bad bodies are 400 invalid_request with the field, unknown fields 400 unknown_field', async () => {
        assertError(await create(server, {}), 400, 'invalid_request');
        assertError(await create(server, { type: 'room', members: [a.id] }), 400, 'invalid_request', 'type');
        assertError(await create(server, { type: 'group', members: 'a' }), 400, 'invalid_request', 'members');
        assertError(
          await create(server, { type: 'group', members: [a.id, 'b c'] }),
          400,
          'invalid_request',
          'members[1]',
        );
        assertError(
          await create(server, { type: 'group', members: [a.id], topic: 'x' }),
          400,
          'unknown_field',
          'topic',
        );
        const metadata = { k: 'x'.repeat(4_096) };
        assertError(
          await create(server, { type: 'group', members: [a.id], metadata }),
          422,
          'metadata_too_large',
          'metadata',
        );
      });

      it('conversations#create: clientConversationCreation all, direct, none; the server always may', async () => {
        const made = await parley(service, 'env', 'create', '--name', 'x', '--kind', 'development');
        const { id, secretKey } = made;
        const own = createApi(service.url, secretKey);
        const client = createApi(service.url, signToken({ sub: 'me' }, { secretKey }));
        await own('PUT', '/v1/users/you', {});
        const group = { type: 'group', members: ['you'] };
        const direct = { type: 'direct', members: ['you'] };
        assert.equal((await create(client, group)).status, 201);
        await parley(service, 'env', 'set', id, '--creation', 'direct');
        assertError(await create(client, group), 403, 'forbidden');
        assert.equal((await create(client, direct)).status, 201);
        await parley(service, 'env', 'set', id, '--creation', 'none');
        assertError(await create(client, direct), 403, 'forbidden');
        assert.equal((await create(own, group)).status, 201);
      });
    });

    describe('conversations#update: GET, PATCH, DELETE', () => {
      it('members and the server read it; others are 403 not_member, unknown ids 404', async () => {
        const { id } = await scene.group(a, [b]);
        for (const by of [a.api, b.api, server])
          assert.equal((await by('GET', `/v1/conversations/${id}`)).body.id, id);
        assertError(await c.api('GET', `/v1/conversations/${id}`), 403, 'not_member');
        for (const unknown of ['conv_x', 'conv_%20', 'x'.repeat(201)])
          for (const by of [c.api, server]) {
            const answer = await by('GET', `/v1/conversations/${unknown}`);
            assert.ok([400, 404].includes(answer.status));
          }
        assertError(await server('GET', '/v1/conversations/conv_x'), 404, 'not_found');
      });

      it('owner and server change name and metadata; the event holds just what changed', async () => {
        const { id } = await scene.group(a, [b], { name: 'One', metadata: { x: 1 } });
        const renamed = await a.api('PATCH', `/v1/conversations/${id}`, { name: 'Two' });
        assert.deepEqual(
          [renamed.body.name, renamed.body.metadata, renamed.body.lastSeq],
          ['Two', { x: 1 }, 2],
        );
        await server('PATCH', `/v1/conversations/${id}`, { name: 'Two', metadata: { y: 2 } });
        await server('PATCH', `/v1/conversations/${id}`, { name: null });
        const unchanged = await server('PATCH', `/v1/conversations/${id}`, { metadata: { y: 2 } });
        assert.deepEqual([unchanged.status, unchanged.body.lastSeq], [200, 4]);
        const events = await scene.events(id, 1);
        assert.deepEqual(
          events.map((e) => [e.type, e.changes, e.actorId]),
          [
            ['conversation.updated', { name: 'Two' }, a.id],
            ['conversation.updated', { metadata: { y: 2 } }, null],
            ['conversation.updated', { name: null }, null],
          ],
        );
      });

      it('PATCH: a member is forbidden, a stranger not_member, an empty or wrong body 400', async () => {
        const { id } = await scene.group(a, [b]);
        const patch = (by: Api, body: unknown, of = id) => by('PATCH', `/v1/conversations/${of}`, body);
        assertError(await patch(b.api, { name: 'x' }), 403, 'forbidden');
        assertError(await patch(c.api, { name: 'x' }), 403, 'not_member');
        assertError(await patch(a.api, {}), 400, 'invalid_request');
        assertError(await patch(a.api, { name: 'x'.repeat(201) }), 400, 'invalid_request', 'name');
        assertError(await patch(a.api, { type: 'direct' }), 400, 'unknown_field', 'type');
        assertError(await patch(a.api, { metadata: { k: 'x'.repeat(4_096) } }), 422, 'metadata_too_large');
        assertError(await patch(server, { name: 'x' }, 'conv_x'), 404, 'not_found');
        assert.equal((await scene.events(id)).length, 1);
      });

      it('DELETE: 204, again too; 404 to clients, readable by the server with deletedAt', async () => {
        const { id } = await scene.group(a, [b]);
        const message = await scene.send(a, id);
        for (let i = 0; i < 2; i++)
          assert.equal((await server('DELETE', `/v1/conversations/${id}`)).status, 204);
        assertError(await server('DELETE', '/v1/conversations/conv_x'), 404, 'not_found');
        for (const [method, path, body] of [
          ['GET', `/v1/conversations/${id}`],
          ['GET', `/v1/conversations/${id}/messages`],
          ['GET', `/v1/conversations/${id}/members`],
          ['GET', `/v1/conversations/${id}/events`],
          ['GET', `/v1/messages/${message.id}`],
          ['PUT', `/v1/conversations/${id}/mute`],
          ['PATCH', `/v1/conversations/${id}`, { name: 'x' }],
          ['PATCH', `/v1/messages/${message.id}`, { text: 'x', expectedVersion: 1 }],
          ['DELETE', `/v1/messages/${message.id}`],
          ['POST', `/v1/conversations/${id}/read`, { seq: 1 }],
          ['POST', `/v1/conversations/${id}/messages`, { text: 'x', clientMsgId: 'y' }],
          ['POST', `/v1/conversations/${id}/members`, { userIds: [c.id] }],
          ['DELETE', `/v1/conversations/${id}/members/${a.id}`],
        ] as const)
          assertError(await a.api(method, path, body), 404, 'not_found');
        // A stranger learns nothing either.
        assertError(await c.api('GET', `/v1/conversations/${id}`), 404, 'not_found');
        assert.ok((await server('GET', `/v1/conversations/${id}`)).body.deletedAt);
        assert.equal((await server('GET', `/v1/conversations/${id}/messages`)).body.data.length, 1);
        assert.equal((await server('GET', `/v1/messages/${message.id}`)).body.text, 'hello');
        assert.equal((await scene.events(id)).at(-1).type, 'conversation.deleted');
        assertError(
          await server('POST', `/v1/conversations/${id}/messages`, { text: 'x' }),
          404,
          'not_found',
        );
      });
    });

    describe('conversations#mute: mute', () => {
      it('conversations#mute: 200 { conversationId, muted }, per member; not a member 403, unknown 404', async () => {
        const { id } = await scene.group(a, [b]);
        const mute = `/v1/conversations/${id}/mute`;
        for (const [method, muted] of [
          ['PUT', true],
          ['PUT', true],
          ['DELETE', false],
        ] as const) {
          const { status, body } = await a.api(method, mute);
          assert.deepEqual([status, body], [200, { conversationId: id, muted }]);
          assert.equal((await scene.item(a, id)).muted, muted);
          assert.equal((await scene.item(b, id)).muted, false);
        }
        assertError(await c.api('PUT', mute), 403, 'not_member');
        assertError(await c.api('DELETE', '/v1/conversations/conv_x/mute'), 404, 'not_found');
        assert.equal((await scene.events(id)).length, 1, 'a mute is no event');
      });
    });

    describe('conversations#list: GET list', () => {
      it('conversations#list: a list item carries the counts, the mark, muted and the last live message', async () => {
        const [x, y] = [await scene.actor('x'), await scene.actor('y')];
        const { id } = await scene.group(x, [y], { name: 'List' });
        assert.equal((await scene.item(y, id)).lastMessage, null);
        const first = await scene.send(x, id, { text: 'first' });
        const second = await scene.send(x, id, { text: 'second' });
        const item = await scene.item(y, id);
        const expected = {
          id,
          type: 'group',
          name: 'List',
          lastSeq: 3,
          unreadCount: 2,
          lastReadSeq: 0,
          muted: false,
          level: 'all',
        };
        for (const [key, value] of Object.entries(expected)) assert.deepEqual(item[key], value, key);
        const { id: mid, seq, senderId, text, createdAt } = second;
        assert.deepEqual(item.lastMessage, { id: mid, seq, senderId, text, createdAt });
        assert.deepEqual((await scene.item(x, id)).unreadCount, 0);
        await server('DELETE', `/v1/messages/${second.id}`);
        assert.deepEqual((await scene.item(y, id)).lastMessage.id, first.id);
        await server('DELETE', `/v1/messages/${first.id}`);
        const empty = await scene.item(y, id);
        assert.deepEqual([empty.lastMessage, empty.unreadCount, empty.lastSeq], [null, 0, 5]);
      });

      it('by last activity, newest first; the server names the user; deleted and left ones are absent', async () => {
        const x = await scene.actor('x');
        const made = [];
        for (let i = 0; i < 4; i++) made.push((await scene.group(null, [x, b])).id);
        await scene.send(b, made[1]!);
        await server('DELETE', `/v1/conversations/${made[2]}`);
        await x.api('DELETE', `/v1/conversations/${made[3]}/members/${x.id}`);
        const own = (await x.api('GET', '/v1/conversations')).body;
        assert.deepEqual(ids(own), [made[1], made[0]]);
        assert.deepEqual((await server('GET', `/v1/conversations?userId=${x.id}`)).body, own);
        assert.deepEqual((await x.api('GET', `/v1/conversations?userId=${x.id}`)).body, own);
        assertError(await server('GET', '/v1/conversations'), 400, 'invalid_request', 'userId');
        assertError(await server('GET', '/v1/conversations?userId=nobody-here'), 404, 'not_found');
        assertError(await x.api('GET', `/v1/conversations?userId=${b.id}`), 403, 'forbidden', 'userId');
      });

      it('pages neither repeat nor skip while messages arrive between them', async () => {
        const x = await scene.actor('x');
        const made: string[] = [];
        for (let i = 0; i < 9; i++) made.push((await scene.group(null, [x])).id);
        const seen: string[] = [];
        let cursor: string | null = null;
        do {
          const query: string = cursor === null ? '' : `&cursor=${cursor}`;
          const { body } = await x.api('GET', `/v1/conversations?limit=2${query}`);
          seen.push(...ids(body));
          cursor = body.nextCursor;
          // The oldest and one of those seen move to the top.
          await scene.send(null, made[0]!);
          await scene.send(null, seen[0]!);
        } while (cursor !== null);
        assert.deepEqual([...seen].sort(), [...made].sort());
      });

      it('limit is 1 to 200; a made-up cursor is 400 invalid_request', async () => {
        for (const limit of ['0', '201', 'x'])
          assertError(
            await a.api('GET', `/v1/conversations?limit=${limit}`),
            400,
            'invalid_request',
            'limit',
          );
        const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
        const at = '2026-01-01T00:00:00.000Z';
        for (const cursor of [
          'x',
          encode('a'),
          encode({ at: 'Jan 1 2026', last: [at, 1], seen: [] }),
          encode({ at, last: ['0000-01-01T00:00:00.000Z', 1], seen: [] }),
          encode({ at, last: [at, 1.5], seen: [] }),
          encode({ at: '2026-02-30T00:00:00.000Z', last: [at, 1], seen: [] }),
          encode({ at, last: ['2999-01-01T00:00:00.000Z', 1], seen: [] }),
        ])
          assertError(
            await a.api('GET', `/v1/conversations?cursor=${cursor}`),
            400,
            'invalid_request',
            'cursor',
          );
      });
    });
  });
