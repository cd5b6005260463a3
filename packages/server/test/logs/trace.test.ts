import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { signedInOwner } from '../accounts/dashboard.ts';
import type { Dashboard } from '../accounts/dashboard.ts';
import { assertError } from '../support/api.ts';
import { setUp, useService } from '../support/use.ts';
import { follow } from './tools.ts';

/** GET /v1/live/trace: frames of one user, without what they say. */

const { service, scene } = useService();
let owner: Dashboard;
setUp(async () => {
  owner = await signedInOwner(service.url);
});
const trace = (userId: string, seconds = 60) =>
  follow(owner, service.url, 'env_dev', `userId=${userId}&seconds=${seconds}`);

describe('GET /v1/live/trace', () => {
  it('tells frames in and out of open and later sockets, and no others’ and nothing that they say', async () => {
    const words = 'Hidden-Words';
    const ann = await scene.person('ann');
    const bob = await scene.person('bob');
    const { id } = await scene.group(ann.actor, [bob.actor]);
    const followed = await trace(ann.actor.id);
    assert.equal(followed.status, 200);
    assert.equal((await followed.next((l) => l.t === 'trace.started')).t, 'trace.started');
    const sent = await ann.socket.request('message.send', { cid: id, clientMsgId: 'c1', text: words });
    const incoming = await followed.next((l) => l.t === 'message.send');
    assert.deepEqual(
      [incoming.direction, incoming.cid, incoming.sessionId],
      ['in', id, ann.socket.hello.sessionId],
    );
    const event = await followed.next((l) => l.e === 'message.new');
    assert.deepEqual([event.direction, event.cid, event.seq], ['out', id, sent.seq]);
    assert.ok(event.bytes! > words.length);
    await followed.next((l) => l.t === 'ack' && l.re === incoming.id);
    await ann.socket.refused('read', { cid: 'conv_none', seq: 1 }, 'not_found');
    assert.equal((await followed.next((l) => l.t === 'error')).code, 'not_found');

    const second = await scene.online(ann.actor);
    await followed.next((l) => l.t === 'hello' && l.sessionId === second.hello.sessionId);
    await second.close();
    assert.equal((await followed.next((l) => l.t === 'close')).code, 1000);
    const sessions = new Set(followed.lines.map((l) => l.sessionId));
    assert.ok(!sessions.has(bob.socket.hello.sessionId));
    assert.ok(!JSON.stringify(followed.lines).includes(words));
    followed.stop();
    const { body } = await owner.in('env_dev')('GET', '/v1/audit?action=live.trace');
    assert.equal(body.data[0].target, ann.actor.id);
    for (const { socket } of [ann, bob]) await socket.close();
  });

  it('ends by itself after its time', async () => {
    const followed = await trace((await scene.actor()).id, 1);
    await followed.ended;
    const last = followed.lines.at(-1)!;
    assert.deepEqual([last.t, last.reason, last.dropped], ['trace.ended', 'time', 0]);
  });

  it('five at once for an environment; one that is given up makes room', async () => {
    const { id } = await scene.actor();
    const open = await Promise.all(Array.from({ length: 5 }, () => trace(id)));
    assert.deepEqual(
      open.map((f) => f.status),
      Array(5).fill(200),
    );
    assertError(await owner.in('env_dev')('GET', `/v1/live/trace?userId=${id}`), 429, 'rate_limited');
    open[0]!.stop();
    let next;
    do next = await trace(id, 1);
    while (next.status === 429);
    assert.equal(next.status, 200);
    for (const followed of [...open, next]) followed.stop();
  });

  it('unknown users are not found, and a viewer may not', async () => {
    assertError(await owner.in('env_dev')('GET', '/v1/live/trace?userId=nobody-here'), 404, 'not_found');
    assertError(await owner.in('env_dev')('GET', '/v1/live/trace'), 400, 'invalid_request');
  });
});
