import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { assertError } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';

const { scene, server } = useService();
let owner: Actor;
let member: Actor;
let stranger: Actor;
// New ones each time: a user's requests are limited.
beforeEach(async () => {
  owner = await scene.actor('owner');
  member = await scene.actor('member');
  stranger = await scene.actor('stranger');
});

const add = (by: Api, id: string, userIds: unknown) =>
  by('POST', `/v1/conversations/${id}/members`, { userIds });
const remove = (by: Api, id: string, userId: string) =>
  by('DELETE', `/v1/conversations/${id}/members/${userId}`);
const patch = (by: Api, id: string, userId: string, body: unknown) =>
  by('PATCH', `/v1/conversations/${id}/members/${userId}`, body);
const list = async (id: string): Promise<{ userId: string; role: string; lastReadSeq: number }[]> =>
  (await server('GET', `/v1/conversations/${id}/members?limit=200`)).body.data;

describe('members#list: GET', () => {
  it('members and the server see roles and both marks; strangers are 403, unknown ids 404', async () => {
    const { id } = await scene.group(owner, [member]);
    await scene.send(member, id);
    for (const by of [owner.api, member.api, server]) {
      const { body } = await by('GET', `/v1/conversations/${id}/members`);
      assert.equal(body.nextCursor, null);
      assert.deepEqual(body.data, [
        {
          userId: member.id,
          role: 'member',
          lastReadSeq: 2,
          lastDeliveredSeq: body.data[0].lastDeliveredSeq,
        },
        { userId: owner.id, role: 'owner', lastReadSeq: 0, lastDeliveredSeq: 0 },
      ]);
    }
    assertError(await stranger.api('GET', `/v1/conversations/${id}/members`), 403, 'not_member');
    assertError(await stranger.api('GET', '/v1/conversations/conv_x/members'), 404, 'not_found');
  });

  it('api#paging: pages to the end, 500 members in all', async () => {
    const userIds = Array.from({ length: 500 }, (_, i) => `p${String(i).padStart(3, '0')}`);
    const { body } = await server('POST', '/v1/conversations', { type: 'group', members: userIds });
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? '' : `&cursor=${cursor}`;
      const page = (await server('GET', `/v1/conversations/${body.id}/members?limit=200${query}`)).body;
      seen.push(...page.data.map((m: { userId: string }) => m.userId));
      cursor = page.nextCursor;
    } while (cursor !== null);
    assert.deepEqual(seen, userIds);
    assert.equal((await server('GET', `/v1/conversations/${body.id}/members`)).body.data.length, 50);
    assertError(await add(server, body.id, ['p-one-more']), 400, 'invalid_request', 'userIds');
    assertError(await server('GET', '/v1/users/p-one-more'), 404, 'not_found');
    await remove(server, body.id, 'p000');
    assert.equal((await add(server, body.id, ['p-one-more'])).status, 200);
    for (const limit of ['0', '201'])
      assertError(
        await server('GET', `/v1/conversations/${body.id}/members?limit=${limit}`),
        400,
        'invalid_request',
        'limit',
      );
  });
});

describe('members#add: POST', () => {
  it('owner and server add; 200 { data } in one event with userIds, userId and actorId', async () => {
    const [x, y] = [await scene.actor('x'), await scene.actor('y')];
    const { id } = await scene.group(owner, []);
    const added = await add(owner.api, id, [y.id, x.id, y.id]);
    assert.equal(added.status, 200);
    assert.deepEqual(
      added.body.data.map((m: { userId: string; role: string }) => [m.userId, m.role]),
      [
        [x.id, 'member'],
        [y.id, 'member'],
      ],
    );
    await add(server, id, ['unknown-to-the-server']);
    const events = await scene.events(id, 1);
    assert.deepEqual(
      events.map(({ seq, type, userIds, userId, actorId }) => ({ seq, type, userIds, userId, actorId })),
      [
        { seq: 2, type: 'member.added', userIds: [y.id, x.id], userId: y.id, actorId: owner.id },
        {
          seq: 3,
          type: 'member.added',
          userIds: ['unknown-to-the-server'],
          userId: 'unknown-to-the-server',
          actorId: null,
        },
      ],
    );
  });

  it('members#add: already_member is 409, all or nothing', async () => {
    const x = await scene.actor('x');
    const { id } = await scene.group(owner, [member]);
    const answer = await add(owner.api, id, [x.id, member.id]);
    assertError(answer, 409, 'already_member');
    assert.equal(answer.body.error.type, 'conflict');
    assertError(await add(server, id, ['never-created', member.id]), 409, 'already_member');
    assertError(await server('GET', '/v1/users/never-created'), 404, 'not_found');
    assert.equal((await list(id)).length, 2);
    assert.equal((await scene.events(id)).length, 1);
  });

  it('a member is forbidden, a stranger not_member, an unknown conversation 404', async () => {
    const { id } = await scene.group(owner, [member]);
    assertError(await add(member.api, id, [stranger.id]), 403, 'forbidden');
    assertError(await add(stranger.api, id, [stranger.id]), 403, 'not_member');
    assertError(await add(server, 'conv_x', [stranger.id]), 404, 'not_found');
    const free = await scene.group(null, [member]);
    assertError(await add(member.api, free.id, [stranger.id]), 403, 'forbidden');
  });

  it('users#unknown-users: a client naming an unknown user gets 404; bad lists are 400', async () => {
    const { id } = await scene.group(owner, [member]);
    assertError(await add(owner.api, id, [stranger.id, 'nobody-here']), 404, 'not_found');
    assert.equal((await list(id)).length, 2);
    assertError(await add(owner.api, id, []), 400, 'invalid_request', 'userIds');
    assertError(await add(owner.api, id, ['a b']), 400, 'invalid_request', 'userIds[0]');
    assertError(await add(owner.api, id, undefined), 400, 'invalid_request', 'userIds');
  });

  it('members#joining: who joins, or joins again, has the full history and no unread', async () => {
    const x = await scene.actor('x');
    const { id } = await scene.group(owner, [member]);
    await scene.send(owner, id);
    const first = await add(owner.api, id, [x.id]);
    assert.equal(first.body.data[0].lastReadSeq, 3);
    assert.equal((await scene.item(x, id)).unreadCount, 0);
    assert.equal((await x.api('GET', `/v1/conversations/${id}/messages`)).body.data.length, 1);
    await scene.send(owner, id);
    assert.equal((await scene.item(x, id)).unreadCount, 1);
    await remove(owner.api, id, x.id);
    await scene.send(owner, id);
    await add(owner.api, id, [x.id]);
    const again = await scene.item(x, id);
    assert.deepEqual([again.unreadCount, again.lastReadSeq, again.lastSeq], [0, 7, 7]);
    assert.deepEqual((await scene.item(member, id)).unreadCount, 3, 'initial members start at 0');
  });
});

describe('members#remove: DELETE', () => {
  it('owner, server and self; 204; the reason is removed or left', async () => {
    const [x, y, z] = [await scene.actor('x'), await scene.actor('y'), await scene.actor('z')];
    const { id } = await scene.group(owner, [x, y, z]);
    assert.equal((await remove(owner.api, id, x.id)).status, 204);
    assert.equal((await remove(server, id, y.id)).status, 204);
    assert.equal((await remove(z.api, id, z.id)).status, 204);
    const events = await scene.events(id, 1);
    assert.deepEqual(
      events.map((e) => [e.type, e.userId, e.actorId, e.reason]),
      [
        ['member.removed', x.id, owner.id, 'removed'],
        ['member.removed', y.id, null, 'removed'],
        ['member.removed', z.id, z.id, 'left'],
      ],
    );
    for (const gone of [x, y, z]) {
      assertError(await gone.api('GET', `/v1/conversations/${id}`), 403, 'not_member');
      assert.deepEqual((await gone.api('GET', '/v1/conversations')).body.data, []);
      assert.deepEqual(
        (await gone.api('POST', '/v1/sync', { cursor: `s1.${(Date.now() - 60_000).toString(36)}` })).body
          .removed,
        [id],
      );
    }
  });

  it('a member may not remove another; not a member is 404; a stranger not_member', async () => {
    const { id } = await scene.group(owner, [member]);
    assertError(await remove(member.api, id, owner.id), 403, 'forbidden');
    assertError(await remove(stranger.api, id, member.id), 403, 'not_member');
    assertError(await remove(stranger.api, id, stranger.id), 403, 'not_member');
    for (const userId of [stranger.id, 'nobody-here'])
      assertError(await remove(owner.api, id, userId), 404, 'not_found');
    assertError(await remove(server, 'conv_x', member.id), 404, 'not_found');
    assert.equal((await list(id)).length, 2);
  });

  it('members#owner-leaves: the owner leaving passes ownership to nobody; only the server manages it then', async () => {
    const { id } = await scene.group(owner, [member]);
    assert.equal((await remove(owner.api, id, owner.id)).status, 204);
    assert.deepEqual(
      (await list(id)).map((m) => m.role),
      ['member'],
    );
    assertError(await member.api('PATCH', `/v1/conversations/${id}`, { name: 'x' }), 403, 'forbidden');
    assert.equal((await add(server, id, [owner.id])).body.data[0].role, 'member');
  });

  it('the last member may leave', async () => {
    const { id } = await scene.group(owner, []);
    assert.equal((await remove(owner.api, id, owner.id)).status, 204);
    assert.deepEqual(await list(id), []);
  });
});

describe('members#role: PATCH', () => {
  it('the server sets the role: 200 member, one event; the same role again is no event', async () => {
    const { id } = await scene.group(owner, [member]);
    for (let i = 0; i < 2; i++) {
      const { status, body } = await patch(server, id, member.id, { role: 'owner' });
      assert.deepEqual([status, body.userId, body.role], [200, member.id, 'owner']);
    }
    const events = await scene.events(id, 1);
    assert.deepEqual(
      events.map((e) => [e.type, e.userId, e.role]),
      [['member.updated', member.id, 'owner']],
    );
    assert.equal((await member.api('PATCH', `/v1/conversations/${id}`, { name: 'mine' })).status, 200);
    await patch(server, id, owner.id, { role: 'member' });
    assertError(await owner.api('PATCH', `/v1/conversations/${id}`, { name: 'x' }), 403, 'forbidden');
  });

  it('role is owner or member; the user must be a member', async () => {
    const { id } = await scene.group(owner, [member]);
    for (const role of ['admin', null, undefined])
      assertError(await patch(server, id, member.id, { role }), 400, 'invalid_request', 'role');
    assertError(await patch(server, id, member.id, { role: 'owner', x: 1 }), 400, 'unknown_field', 'x');
    assertError(await patch(server, id, stranger.id, { role: 'owner' }), 404, 'not_found');
    assertError(await patch(server, 'conv_x', member.id, { role: 'owner' }), 404, 'not_found');
    assertError(await patch(owner.api, id, member.id, { role: 'owner' }), 403, 'forbidden');
  });
});

describe('conversations#direct-members: members of a direct conversation', () => {
  it('cannot be added, removed or changed, nor can one leave', async () => {
    const { id } = await scene.direct(owner, member);
    for (const by of [server, member.api, owner.api]) {
      assertError(await add(by, id, [stranger.id]), 400, 'invalid_request');
      assertError(await remove(by, id, member.id), 400, 'invalid_request');
    }
    assertError(await add(stranger.api, id, [stranger.id]), 403, 'not_member');
    assertError(await patch(server, id, member.id, { role: 'owner' }), 400, 'invalid_request');
    assert.equal((await list(id)).length, 2);
    assert.equal((await scene.events(id)).length, 1);
  });
});
