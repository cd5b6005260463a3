import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tally } from '../../src/features/analytics/tally.ts';
import { act, done, hasten, pretendNode, start } from '../calls/tools.ts';
import { until } from '../cluster/nodes.ts';
import { document, picture, ready } from '../uploads/files.ts';
import { setUp, use, useService } from '../support/use.ts';
import { addEndpoint } from '../webhooks/tools.ts';
import { startReceiver, status } from '../webhooks/receiver.ts';

/** analytics#response: figures of calls, files, webhooks and requests, against what happened and the rows of it. */

const { scene, server, db, sql, restart } = useService({ own: true });
const [well, broken] = [use(startReceiver, (r) => r.close()), use(startReceiver, (r) => r.close())];
setUp(() => pretendNode(db));

const report = async () => (await server('GET', '/v1/analytics')).body;
const chosen = (figures: Record<string, unknown>, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, figures[name]]));

/** As if the media of these users had connected so many seconds ago, and the call been answered then. */
async function connected(callId: string, seconds: number): Promise<void> {
  await sql(
    `UPDATE call_participants SET state = 'joined', joined_at = now() - make_interval(secs => $2), stay_from = now() - make_interval(secs => $2)
     WHERE state = 'joining' AND call = (SELECT no FROM calls WHERE id = $1)`,
    [callId, seconds],
  );
  await sql('UPDATE calls SET answered_at = now() - make_interval(secs => $2) WHERE id = $1', [
    callId,
    seconds,
  ]);
}

test('calls: started, with video, answered, missed, minutes of all participants, mean length; who joins is active', async () => {
  const [a, b, c, idle] = await Promise.all([scene.actor(), scene.actor(), scene.actor(), scene.actor()]);
  const { id: cid } = await scene.group(a, [b, c, idle]);
  const names = [
    'calls',
    'videoCalls',
    'callsAnswered',
    'callsMissed',
    'callAnswerRate',
    'callMinutes',
    'avgCallSeconds',
    'activeUsers',
    'mauThisMonth',
  ];
  assert.deepEqual(
    Object.values(chosen((await report()).totals, names)),
    names.map(() => 0),
  );

  const video = await start(a, cid, { kind: 'video' });
  await done(act(b, video.id, 'join'));
  assert.equal((await report()).totals.activeUsers, 1, 'b joined, over REST alone; a has only called');
  await done(act(a, video.id, 'join'));
  await connected(video.id, 90);
  await done(act(c, video.id, 'join'));
  await done(act(b, video.id, 'leave'));
  await done(act(b, video.id, 'join'));
  await connected(video.id, 45);
  const ended = (await done(server('POST', `/v1/calls/${video.id}/end`))).call;
  assert.ok(ended.durationSeconds >= 45);

  const missed = await start(a, cid);
  await hasten(db, missed.id);
  await until(async () => (await server('GET', `/v1/calls/${missed.id}`)).body.endReason === 'missed');
  const declined = await start(a, cid);
  for (const one of [b, c, idle]) await done(act(one, declined.id, 'decline'));

  const [row] = await sql(
    'SELECT sum(seconds)::int AS n, count(*) FILTER (WHERE seconds > 0)::int AS who FROM call_participants',
  );
  // a 90 s, b 90 s and then 45 s, c 45 s.
  assert.ok(row!['n'] >= 270 && row!['who'] === 3, JSON.stringify(row));
  const { totals, series } = await report();
  const expected = {
    calls: 3,
    videoCalls: 1,
    callsAnswered: 1,
    callsMissed: 1,
    callAnswerRate: 0.3333,
    callMinutes: Number((row!['n'] / 60).toFixed(3)),
    avgCallSeconds: ended.durationSeconds,
    activeUsers: 3,
    mauThisMonth: 3,
  };
  assert.deepEqual(chosen(totals, names), expected);
  const { mauThisMonth: _, ...daily } = expected;
  assert.deepEqual(chosen(series.at(-1), Object.keys(daily)), daily);
});

test('files sent with messages, and their bytes; a file that no message has counts nowhere', async () => {
  const [a, b] = [await scene.actor(), await scene.actor()];
  const { id: cid } = await scene.group(a, [b]);
  const before = (await report()).totals;
  await ready(a.api, cid);
  const both = [await ready(a.api, cid), await ready(a.api, cid, document)];
  const sent = await scene.send(a, cid, { text: 'look', attachments: both });
  await scene.send(a, cid, { attachments: [await ready(a.api, cid)] });
  await a.api('DELETE', `/v1/messages/${sent.id}`);
  assert.equal((await b.api('POST', `/v1/conversations/${cid}/read`, { seq: sent.seq })).status, 200);
  const after = (await report()).totals;
  for (const [name, n] of Object.entries({
    messages: 2,
    attachmentMessages: 2,
    textMessages: 0,
    attachments: 3,
    reads: 1,
    deletions: 1,
    attachmentBytes: 2 * picture.body.length + document.body.length,
  }))
    assert.equal(after[name] - before[name], n, name);
});

test('reactions that were set, by users and by a server; taking one back does not count down', async () => {
  const [a, b] = [await scene.actor(), await scene.actor()];
  const { id: cid } = await scene.group(a, [b]);
  const { id } = await scene.send(a, cid);
  const counted = async () => {
    const { totals, series } = await report();
    const inSeries = series.reduce((sum: number, step: any) => sum + step.reactions, 0);
    return [totals.reactions, inSeries];
  };
  const before = await counted();
  const path = `/v1/messages/${id}/reactions/:yes:`;
  const done = async (answer: Promise<{ status: number }>) => assert.equal((await answer).status, 200);
  await done(a.api('PUT', path, {}));
  await done(a.api('PUT', path, {}));
  await done(server('PUT', path, { userId: b.id }));
  await done(a.api('DELETE', path));
  await done(a.api('PUT', path, {}));
  const after = await counted();
  assert.deepEqual([after[0] - before[0], after[1] - before[1]], [3, 3]);
});

test('joining#analytics: users who joined, openly or by a link; those who were added do not count', async () => {
  const [a, b, c, d] = await Promise.all([scene.actor(), scene.actor(), scene.actor(), scene.actor()]);
  const { id: cid } = await scene.group(a, [], { rules: { joining: 'open' } });
  const { token } = (await server('POST', `/v1/conversations/${cid}/invites`)).body;
  const before = (await report()).totals.joins;
  const done = async (answer: Promise<{ status: number }>) => assert.equal((await answer).status, 200);
  for (let i = 0; i < 2; i++) await done(b.api('POST', `/v1/conversations/${cid}/join`));
  await done(c.api('POST', `/v1/invites/${token}`));
  await done(server('POST', `/v1/conversations/${cid}/members`, { userIds: [d.id] }));
  assert.equal((await report()).totals.joins - before, 2);
});

test('analytics#deletions: deletions are messages that were deleted, each once, however often and in whichever way', async () => {
  const [a, b, leaver] = await Promise.all([scene.actor(), scene.actor(), scene.actor()]);
  const { id: cid } = await scene.group(a, [b, leaver]);
  const message = (by = a) => scene.send(by, cid);
  const [soft, hard, both] = [await message(), await message(), await message()];
  const [own, twice] = [await message(leaver), await message(leaver)];
  await message(b);
  const before = (await report()).totals.deletions;
  const counted = async () => (await report()).totals.deletions - before;
  const remove = (id: string, query = '') => server('DELETE', `/v1/messages/${id}${query}`);
  for (const { id } of [soft, soft, both, twice]) assert.equal((await remove(id)).status, 200);
  assert.equal(await counted(), 3, 'a message that is deleted again is not counted again');
  for (const { id } of [hard, both]) assert.equal((await remove(id, '?hard=true')).status, 204);
  assert.equal(await counted(), 4, 'nor one that is deleted for good after it was deleted');
  assert.equal((await server('DELETE', `/v1/users/${leaver.id}?messages=delete`)).status, 204);
  await until(async () => (await server('GET', `/v1/messages/${own.id}`)).status === 404);
  assert.equal(await counted(), 5, 'an erasure deletes what was left of the user’s messages');
  assert.equal((await server('DELETE', `/v1/conversations/${cid}`)).status, 204);
  assert.equal(await counted(), 5, 'a deleted conversation keeps its messages');
});

test('webhooks: deliveries once, attempts each time, and their success, as in the delivery records', async () => {
  broken.answer = status(500);
  await addEndpoint(server, well.url, ['message.created']);
  await addEndpoint(server, broken.url, ['message.created']);
  const a = await scene.actor();
  const { id: cid } = await scene.group(a, []);
  await scene.send(a, cid);
  const rows = async () =>
    (
      await sql(
        `SELECT count(*) FILTER (WHERE attempts <> '[]')::int AS deliveries, coalesce(sum(jsonb_array_length(attempts)), 0)::int AS attempts,
           count(*) FILTER (WHERE status = 'succeeded')::int AS succeeded FROM webhook_deliveries`,
      )
    )[0]!;
  await until(async () => (await rows())['deliveries'] === 2 && (await rows())['succeeded'] === 1);
  for (;;) {
    const before = await rows();
    const { totals } = await report();
    // A repeated attempt may have come in between.
    if ((await rows())['attempts'] !== before['attempts']) continue;
    assert.deepEqual(chosen(totals, ['webhookDeliveries', 'webhookAttempts', 'webhookSuccessRate']), {
      webhookDeliveries: 2,
      webhookAttempts: before['attempts'],
      webhookSuccessRate: Number((1 / before['attempts']).toFixed(4)),
    });
    const { data } = (await server('GET', '/v1/usage')).body;
    assert.equal(data.at(-1).webhookDeliveries, 2);
    return;
  }
});

test('requests by status class; what is counted in memory is written at shutdown', async () => {
  const before = (await report()).totals;
  assert.equal((await server('GET', '/v1/users/nobody')).status, 404);
  const after = (await report()).totals;
  // A report counts itself when it is answered.
  assert.deepEqual(
    ['apiRequests', 'requests2xx', 'requests4xx', 'requests5xx'].map((name) => after[name] - before[name]),
    [2, 1, 1, 0],
  );
  await restart();
  assert.equal((await report()).totals.apiRequests, after.apiRequests + 1);
  const written: string[] = [];
  const tally = new Tally();
  for (const code of [200, 304, 404, 500, 503]) tally.request(1, code);
  await tally.flush({
    query: (_, values) => {
      written.push((values![1] as string[])[0]!);
      return Promise.resolve([]);
    },
  });
  assert.deepEqual(JSON.parse(written[0]!), {
    apiRequests: 5,
    requests2xx: 2,
    requests4xx: 1,
    requests5xx: 2,
    errors: 2,
  });
});
