import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, it } from 'node:test';
import { plans } from '@parley/protocol';
import { createDisconnectWatch } from '../../src/features/calls/disconnected.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { assertError } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { until } from '../push-feature/tools.ts';
import { createScene } from '../support/scene.ts';
import { setUp, use, useService } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { addEndpoint, delivery } from '../webhooks/tools.ts';
import { act, done, hasten, noNode, pretendNode, start, stateOf } from './tools.ts';

/** calls#start, calls#answer and calls#end, over REST and the socket; media has its own tests. */

const { service, scene, server, db } = useService();
const receiver = use(startReceiver, (r) => r.close());
let endpoint: string;
setUp(async () => {
  endpoint = (await addEndpoint(server, receiver.url, ['call.started', 'call.ended'])).id;
});
beforeEach(() => pretendNode(db));

const about = (id: string) => (r: { data: any }) => r.data.call.id === id;
const two = async (): Promise<[Actor, Actor, string]> => {
  const [a, b] = await Promise.all([scene.actor('a'), scene.actor('b')]);
  return [a, b, (await scene.direct(a, b)).id];
};
/** The jobs that wait until a socket has been gone for 30 s. */
const goneJobs = (id: string) =>
  db.query<{ at: string }>(
    `SELECT run_at AS at FROM jobs WHERE queue = 'calls' AND data->>'kind' = 'gone' AND ref = (SELECT no FROM calls WHERE id = $1)`,
    [id],
  );
const some = async (n: number): Promise<[Actor[], string]> => {
  const actors = await Promise.all(Array.from({ length: n }, () => scene.actor()));
  return [actors, (await scene.group(actors[0]!, actors.slice(1))).id];
};

describe('calls#start: starting', () => {
  it('rings on every device of the callees, tells webhooks, and is the only live call of the conversation', async () => {
    const [a, b, cid] = await two();
    const phones = await Promise.all([scene.online(b), scene.online(b)]);
    const call = await start(a, cid, { kind: 'video', metadata: { topic: 'x' } });
    assert.match(call.id, /^call_/);
    assert.deepEqual(
      { ...call, id: '', createdAt: '', participants: [] },
      {
        id: '',
        conversationId: cid,
        kind: 'video',
        status: 'ringing',
        createdBy: a.id,
        createdAt: '',
        answeredAt: null,
        endedAt: null,
        endReason: null,
        durationSeconds: 0,
        metadata: { topic: 'x' },
        participants: [],
      },
    );
    assert.deepEqual([stateOf(call, a), stateOf(call, b)], ['joining', 'ringing']);
    for (const phone of phones) assert.deepEqual((await phone.ephemeral('call.incoming')).d, { call });
    const started = await receiver.next('call.started', about(call.id));
    assert.deepEqual(started.data, { call });
    const again = await b.api('POST', '/v1/calls', { conversationId: cid, kind: 'audio' });
    assert.deepEqual([again.status, again.body.id], [200, call.id], 'glare: both get the one call');
    assert.deepEqual((await a.api('GET', `/v1/calls/${call.id}`)).body, call);

    await done(server('POST', `/v1/calls/${call.id}/end`));
    const told = await delivery(
      server,
      endpoint,
      (d) => d.eventId === started.id && d.status === 'succeeded',
    );
    await server('POST', `/v1/webhooks/${endpoint}/deliveries/${told.id}/replay`);
    const [, replayed] = await receiver.wait(2, (r) => r.id === started.id);
    assert.equal(replayed!.raw, started.raw, 'a replay shows the call as it was');
  });

  it('two who call each other at the same moment get one call', async () => {
    const [a, b, cid] = await two();
    const both = await Promise.all(
      [a, b].map((one) => one.api('POST', '/v1/calls', { conversationId: cid, kind: 'audio' })),
    );
    assert.deepEqual(both.map((r) => r.status).sort(), [200, 201]);
    assert.equal(both[0]!.body.id, both[1]!.body.id);
  });

  it('is for members, and a server says who calls', async () => {
    const [a, b, cid] = await two();
    const stranger = await scene.actor('stranger');
    const body = { conversationId: cid, kind: 'audio' };
    assertError(await stranger.api('POST', '/v1/calls', body), 403, 'not_member');
    assertError(await server('POST', '/v1/calls', body), 400, 'invalid_request');
    assertError(await server('POST', '/v1/calls', { ...body, callerId: stranger.id }), 403, 'not_member');
    assertError(await a.api('POST', '/v1/calls', { ...body, callerId: a.id }), 400, 'invalid_request');
    assertError(await a.api('POST', '/v1/calls', { ...body, conversationId: 'conv_x' }), 404, 'not_found');
    assertError(await a.api('POST', '/v1/calls', { ...body, kind: 'smoke' }), 400, 'invalid_request');
    const made = await server('POST', '/v1/calls', { ...body, callerId: b.id });
    assert.deepEqual([made.status, made.body.createdBy], [201, b.id]);
  });

  it('finds who is in another call busy, and ends when nobody can be rung', async () => {
    const [a, b, cid] = await two();
    await start(a, cid);
    const c = await scene.actor('c');
    const other = await scene.group(c, [a, b]);
    const call = await start(c, other.id);
    assert.deepEqual([stateOf(call, a), stateOf(call, b), call.status], ['busy', 'ringing', 'ringing']);
    const alone = await start(c, (await scene.direct(c, a)).id);
    assert.deepEqual([alone.status, alone.endReason, alone.durationSeconds], ['ended', 'busy', 0]);
    assert.equal((await receiver.next('call.ended', about(alone.id))).data.call.endReason, 'busy');
  });

  it('is 503 calls_unavailable with retryAfterMs while no media node is alive, and honest about one that is coming', async () => {
    await noNode(db);
    const [a, , cid] = await two();
    const body = { conversationId: cid, kind: 'audio' };
    const answer = await a.api('POST', '/v1/calls', body);
    assertError(answer, 503, 'calls_unavailable');
    assert.equal(answer.body.error.retryAfterMs, 5_000);
    await db.query(
      `INSERT INTO media_nodes (id, state, ready_at, lease_until) VALUES ('n', 'preparing', now() + interval '90 s', now() + interval '1 day')`,
    );
    const { retryAfterMs } = (await a.api('POST', '/v1/calls', body)).body.error;
    assert.ok(retryAfterMs > 60_000 && retryAfterMs <= 90_000, String(retryAfterMs));
    await db.query(
      `UPDATE media_nodes SET state = 'ready', rtp_capabilities = '{}', lease_until = now() - interval '1 s'`,
    );
    assertError(await a.api('POST', '/v1/calls', body), 503, 'calls_unavailable');
    for (const [why, load, state] of [
      ['it is full', 0.9, 'ready'],
      ['it drains', 0, 'draining'],
    ]) {
      await db.query(`UPDATE media_nodes SET lease_until = now() + interval '1 day', load = $1, state = $2`, [
        load,
        state,
      ]);
      assert.equal((await a.api('POST', '/v1/calls', body)).status, 503, String(why));
    }
    await noNode(db);
  });
});

describe('calls#answer: answering', () => {
  it('makes it active; the other devices hear answered_elsewhere and the answering one does not', async () => {
    const [a, b, cid] = await two();
    const [caller, first, second] = await Promise.all([scene.online(a), scene.online(b), scene.online(b)]);
    const { id } = await start(a, cid);
    const { call, media } = await done(
      b.api('POST', `/v1/calls/${id}/join?answer=true&sessionId=${first.hello.sessionId}`),
    );
    assert.deepEqual([call.status, stateOf(call, b)], ['active', 'joining']);
    assert.ok(call.answeredAt);
    assert.deepEqual([media.transport, media.iceServers], ['sfu', []]);
    assert.equal((await second.ephemeral('call.ended')).d.endedHere, 'answered_elsewhere');
    assert.equal((await caller.ephemeral('call.updated', (d) => d.call.status === 'active')).d.call.id, id);
    await first.barrier();
    assert.ok(!first.frames.some((f) => f.t === 'call.ended'));
  });

  it('of ten devices that answer at once one wins', async () => {
    const [a, b, cid] = await two();
    const { id } = await start(a, cid);
    const phones = await Promise.all(Array.from({ length: 10 }, () => scene.online(b)));
    const answers = await Promise.all(
      phones.map((p) => b.api('POST', `/v1/calls/${id}/join?answer=true&sessionId=${p.hello.sessionId}`)),
    );
    assert.deepEqual(answers.map((r) => r.status).sort(), [200, ...Array<number>(9).fill(409)]);
    for (const answer of answers) if (answer.status === 409) assertError(answer, 409, 'call_ended');
    for (const [i, phone] of phones.entries())
      if (answers[i]!.status === 409)
        assert.equal((await phone.ephemeral('call.ended')).d.endedHere, 'answered_elsewhere');
  });

  it('lets members join late and join again, counts against the plan, and refuses when it is over', async () => {
    const prod = createScene(service.url, 'prod');
    const actors = await Promise.all(Array.from({ length: 6 }, () => prod.actor()));
    const { id: cid } = await prod.group(actors[0]!, actors.slice(1, 5));
    const { id } = await start(actors[0]!, cid);
    for (const actor of actors.slice(1, 4)) await done(act(actor, id, 'join'));
    assert.equal(plans.free.callParticipants, 4);
    assertError(await act(actors[4]!, id, 'join'), 429, 'plan_limit_reached');
    await done(act(actors[1]!, id, 'join'));
    await done(act(actors[1]!, id, 'leave'));
    await done(act(actors[4]!, id, 'join'));
    assertError(await act(actors[5]!, id, 'join'), 403, 'not_member');
    await prod.server('POST', `/v1/conversations/${cid}/members`, { userIds: [actors[5]!.id] });
    await done(act(actors[2]!, id, 'leave'));
    const { call } = await done(act(actors[5]!, id, 'join'));
    assert.equal(stateOf(call, actors[5]!), 'joining');
    await done(prod.server('POST', `/v1/calls/${id}/end`));
    for (const action of ['join', 'decline', 'leave'])
      assertError(await act(actors[0]!, id, action), 409, 'call_ended');
    assertError(await prod.server('POST', `/v1/calls/${id}/end`), 409, 'call_ended');
  });

  it('takes as many as the plan allows, also when all join at once: 32 on scale, 50 on enterprise', async () => {
    const other = createScene(service.url, 'other');
    await db.query(`UPDATE environments SET plan = 'scale' WHERE id = 'env_other'`);
    for (const [where, most] of [
      [other, plans.scale.callParticipants],
      [scene, plans.enterprise.callParticipants],
    ] as const) {
      const actors = await Promise.all(Array.from({ length: most + 1 }, () => where.actor()));
      const { id: cid } = await where.group(actors[0]!, actors.slice(1));
      const { id } = await start(actors[0]!, cid);
      const answers = await Promise.all(actors.slice(1).map((one) => act(one, id, 'join')));
      assert.deepEqual(answers.map((r) => r.status).sort(), [...Array<number>(most - 1).fill(200), 429]);
    }
    assert.deepEqual([plans.scale.callParticipants, plans.enterprise.callParticipants], [32, 50]);
  });
});

describe('calls#end: ending', () => {
  it('declined by all, cancelled by the caller, completed when one of two leaves', async () => {
    const [[a, b, c], cid] = (await some(3)) as [[Actor, Actor, Actor], string];
    const first = await start(a, cid);
    const phone = await scene.online(b);
    assert.equal((await done(act(b, first.id, 'decline'))).call.status, 'ringing');
    assert.equal((await phone.ephemeral('call.ended')).d.endedHere, 'declined_elsewhere');
    const over = (await done(act(c, first.id, 'decline'))).call;
    assert.deepEqual([over.status, over.endReason], ['ended', 'declined']);
    assert.equal((await receiver.next('call.ended', about(first.id))).data.call.endReason, 'declined');

    const second = await start(a, cid);
    const cancelled = (await done(act(a, second.id, 'leave'))).call;
    assert.deepEqual([cancelled.endReason, stateOf(cancelled, b)], ['cancelled', 'missed']);

    const [d, e, dm] = await two();
    const third = await start(d, dm);
    await done(act(e, third.id, 'join'));
    const completed = (await done(act(e, third.id, 'leave'))).call;
    assert.deepEqual([completed.endReason, stateOf(completed, d)], ['completed', 'left']);
    assert.deepEqual((await receiver.next('call.ended', about(third.id))).data, { call: completed });
  });

  it('missed when nobody answers in 45 s, also after a restart of the job’s worker; the job is durable', async () => {
    const [a, b, cid] = await two();
    const [caller, phone] = await Promise.all([scene.online(a), scene.online(b)]);
    const { id, createdAt } = await start(a, cid);
    const [job] = await db.query<{ at: string }>(
      `SELECT run_at AS at FROM jobs
       WHERE queue = 'calls' AND data ->> 'kind' = 'ring' AND ref = (SELECT no FROM calls WHERE id = $1)`,
      [id],
    );
    assert.equal(Date.parse(job!.at) - Date.parse(createdAt), 45_000);
    await hasten(db, id);
    const { call } = (await phone.ephemeral('call.ended')).d;
    assert.deepEqual([call.endReason, stateOf(call, b), stateOf(call, a)], ['missed', 'missed', 'left']);
    await caller.ephemeral('call.ended');
    assert.equal((await receiver.next('call.ended', about(id))).data.call.endReason, 'missed');
  });

  it('a caller who vanishes while it rings, together with the gateway that would have told of it, is looked for', async () => {
    const [a, b, cid] = await two();
    const phone = await scene.online(b);
    const { id } = await start(a, cid);
    await done(a.api('POST', `/v1/calls/${id}/join?sessionId=sess_${randomUUID()}`));
    const look = createDisconnectWatch({
      db,
      presence: { connected: (refs) => Promise.resolve(refs.map(() => false)) },
      logger: createLogger('silent'),
    });
    look.start();
    await look.stop();
    await hasten(db, id, 'gone');
    assert.equal((await phone.ephemeral('call.ended')).d.call.endReason, 'cancelled');
  });

  it('calls#gone: a participant of an active call who never opened a socket is looked for; a caller who rings is not', async () => {
    const [[a, b, c], cid] = (await some(3)) as [[Actor, Actor, Actor], string];
    const phone = await scene.online(c);
    const { id } = await start(a, cid);
    const sweep = async () => {
      const look = createDisconnectWatch({
        db,
        presence: { connected: (refs) => Promise.resolve(refs.map(() => false)) },
        logger: createLogger('silent'),
      });
      look.start();
      await look.stop();
    };
    await sweep();
    assert.deepEqual(await goneJobs(id), []);
    await done(act(c, id, 'join'));
    await done(act(b, id, 'join'));
    for (let i = 0; i < 2; i++) await sweep();
    assert.equal((await goneJobs(id)).length, 3, 'each is noted once');
    await hasten(db, id, 'gone');
    const gone = ({ call }: Answer['body']) => [a, b].every((one) => stateOf(call, one) === 'left');
    const { call } = (await phone.ephemeral('call.updated', gone)).d;
    assert.deepEqual([call.status, stateOf(call, c)], ['active', 'joining'], 'who has a socket stays');
  });

  it('by the server: for everyone, or for one participant; muting needs media', async () => {
    const [[a, b, c], cid] = (await some(3)) as [[Actor, Actor, Actor], string];
    const phone = await scene.online(b);
    const { id } = await start(a, cid);
    for (const one of [b, c]) await done(act(one, id, 'join'));
    const mute = (userId: string) =>
      server('POST', `/v1/calls/${id}/participants/${userId}/mute`, { source: 'mic' });
    assertError(await mute(b.id), 400, 'invalid_request');
    assertError(await mute('nobody'), 404, 'not_found');
    assertError(await b.api('POST', `/v1/calls/${id}/end`), 403, 'forbidden');
    assertError(await server('POST', `/v1/calls/${id}/participants/nobody/remove`), 404, 'not_found');
    const { call } = await done(server('POST', `/v1/calls/${id}/participants/${b.id}/remove`));
    assert.deepEqual([call.status, stateOf(call, b)], ['active', 'left']);
    assert.equal((await phone.ephemeral('call.ended')).d.endedHere, 'removed');
    const over = (await done(server('POST', `/v1/calls/${id}/end`))).call;
    assert.deepEqual([over.endReason, stateOf(over, a)], ['ended_by_server', 'left']);
  });

  it('calls#gone: a caller who has not joined and whose last socket is gone for 30 s has cancelled', async () => {
    const [a, b, cid] = await two();
    const [phone, tab, other] = await Promise.all([scene.online(b), scene.online(a), scene.online(a)]);
    const { id, createdAt } = await start(a, cid);
    await phone.ephemeral('call.incoming');
    tab.ws.terminate();
    await until(async () => (await goneJobs(id)).length > 0, 'the closing is noted');
    await hasten(db, id, 'gone');
    await until(async () => (await goneJobs(id)).length === 0, 'the job ran');
    assert.equal((await b.api('GET', `/v1/calls/${id}`)).body.status, 'ringing', 'it has another socket');
    other.ws.terminate();
    await until(async () => (await goneJobs(id)).length > 0, 'the closing is noted');
    const [job] = await goneJobs(id);
    assert.ok(Date.parse(job!.at) - Date.parse(createdAt) >= 30_000);
    await hasten(db, id, 'gone');
    const { call } = (await phone.ephemeral('call.ended')).d;
    assert.deepEqual([call.endReason, stateOf(call, a), stateOf(call, b)], ['cancelled', 'left', 'missed']);
  });

  it('a caller who has not joined and comes back with another socket goes on ringing', async () => {
    const [a, b, cid] = await two();
    const tab = await scene.online(a);
    const { id } = await start(a, cid);
    tab.ws.terminate();
    await until(async () => (await goneJobs(id)).length > 0, 'the closing is noted');
    await scene.online(a);
    await hasten(db, id, 'gone');
    await until(async () => (await goneJobs(id)).length === 0, 'the job ran');
    assert.equal((await b.api('GET', `/v1/calls/${id}`)).body.status, 'ringing');
  });

  it('a participant whose tokens were revoked leaves at once, and its call goes on for the others', async () => {
    const [[a, b, c], cid] = (await some(3)) as [[Actor, Actor, Actor], string];
    const { id } = await start(a, cid);
    for (const one of [b, c]) await done(act(one, id, 'join'));
    const phone = await scene.online(a);
    assert.equal((await server('POST', `/v1/users/${b.id}/revoke-tokens`)).status, 200);
    const { call } = (await phone.ephemeral('call.updated')).d;
    assert.deepEqual([call.status, stateOf(call, b), stateOf(call, c)], ['active', 'left', 'joining']);
  });

  it('a removed, deactivated or erased participant leaves at once; a deleted conversation ends its call', async () => {
    const [[a, b, c, d], cid] = (await some(4)) as [[Actor, Actor, Actor, Actor], string];
    const { id } = await start(a, cid);
    for (const one of [b, c, d]) await done(act(one, id, 'join'));
    const states = async () => (await server('GET', `/v1/calls/${id}`)).body;
    await server('DELETE', `/v1/conversations/${cid}/members/${b.id}`);
    assert.equal(stateOf(await states(), b), 'left');
    await server('POST', `/v1/users/${c.id}/deactivate`);
    assert.equal(stateOf(await states(), c), 'left');
    await server('DELETE', `/v1/users/${d.id}`);
    const call = await states();
    assert.equal(JSON.stringify(call).includes(d.id), false);
    assert.deepEqual(call.participants.filter((p: any) => p.state === 'left').length, 3);
    assert.equal(call.status, 'active');
    await server('DELETE', `/v1/conversations/${cid}`);
    assert.deepEqual([(await states()).status, (await states()).endReason], ['ended', 'ended_by_server']);
  });
});

describe('calls#list: list', () => {
  it('newest first, by conversation, user and liveness, in pages; a client sees those of its conversations', async () => {
    const [a, b, cid] = await two();
    const c = await scene.actor('c');
    const other = await scene.direct(a, c);
    const made: string[] = [];
    for (const conversation of [cid, cid, other.id]) {
      const call = await start(a, conversation);
      made.unshift(call.id);
      if (conversation === cid) await done(act(a, call.id, 'leave'));
    }
    const ids = async (by: typeof server, query: string) => {
      const { status, body } = await by('GET', `/v1/calls?${query}`);
      assert.equal(status, 200, JSON.stringify(body));
      return body.data.map((call: any) => call.id);
    };
    assert.deepEqual(await ids(a.api, ''), made);
    assert.deepEqual(await ids(b.api, ''), made.slice(1));
    assert.deepEqual(await ids(server, `userId=${c.id}`), made.slice(0, 1));
    assert.deepEqual(await ids(server, `conversationId=${cid}`), made.slice(1));
    assert.deepEqual(await ids(a.api, 'live=true'), made.slice(0, 1));
    assert.deepEqual(await ids(a.api, 'live=false'), made.slice(1));
    const page = (await a.api('GET', '/v1/calls?limit=2')).body;
    assert.equal(page.hasMore, true);
    const rest = (await a.api('GET', `/v1/calls?limit=2&cursor=${page.nextCursor}`)).body;
    assert.deepEqual(
      [...page.data, ...rest.data].map((x: any) => x.id),
      made,
    );
    assert.deepEqual([rest.hasMore, rest.nextCursor], [false, null]);
    for (const limit of [0, 101])
      assertError(await a.api('GET', `/v1/calls?limit=${limit}`), 400, 'invalid_request');
    assertError(await c.api('GET', `/v1/calls?conversationId=${cid}`), 403, 'not_member');
    assertError(await c.api('GET', `/v1/calls/${made[2]}`), 403, 'not_member');
    assertError(await a.api('GET', `/v1/calls/call_${randomUUID()}`), 404, 'not_found');
  });
});
