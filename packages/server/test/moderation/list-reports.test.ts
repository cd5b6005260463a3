import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { lockTarget } from '../../src/features/reports/sql.ts';
import { hold } from '../core/log-tools.ts';
import { until } from '../push-feature/tools.ts';
import { useService } from '../support/use.ts';
import { queue } from './report-tools.ts';

/** reports#lists: a report is noted by the commit of its message, and made once, whatever ends meanwhile. */

const { service, scene, server, sql, db, restart } = useService({ own: true });

const say = (text: string) => ({ clientMsgId: randomUUID(), text });
const list = async (): Promise<void> => {
  const body = { entries: ['nasty'], action: 'report', conversations: 'all' };
  assert.equal((await server('PUT', '/v1/moderation/lists/rude', body)).status, 200);
};

test('reports#lists: a message that no list wants writes nothing for reports, and one that a list wants notes it in its commit', async () => {
  await list();
  const [ann, ben] = await Promise.all([scene.actor('ann'), scene.actor('ben')]);
  const { id: cid } = await scene.direct(ann, ben);
  const send = (text: string) => ann.api('POST', `/v1/conversations/${cid}/messages`, say(text));
  const release = await hold(db, (tx) => tx.query('LOCK TABLE outbox IN EXCLUSIVE MODE'));
  assert.equal((await send('a nice word')).status, 201, 'nobody waits for the outbox');
  const sending = send('a nasty word');
  await until(async () => {
    const [row] = await sql(
      `SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted AND relation = 'outbox'::regclass`,
    );
    return row!['n'] === 1;
  }, 'the commit of the message writes to the outbox');
  await release();
  const { status, body } = await sending;
  assert.ok(status === 201 || status === 503, JSON.stringify(body));
  // A slow machine may have waited longer than a commit may.
  if (status === 503) assert.equal((await send('a nasty word')).status, 201);
  await until(async () => (await queue(server, `conversationId=${cid}`)).length === 1, 'it is reported');
});

test('reports#lists: what was reported before a kill -9 is reported once, as it was said, also if it was edited or deleted', async () => {
  await list();
  const [ann, ben] = await Promise.all([scene.actor('ann'), scene.actor('ben')]);
  const { id: cid } = await scene.group(ann, [ben]);
  const [conv] = await sql('SELECT env, no FROM conversations WHERE id = $1', [cid]);
  // No report is made before the kill: whoever makes one waits.
  const release = await hold(db, async (tx) => {
    for (let seq = 1; seq < 10; seq++)
      await lockTarget(tx, conv!['env'], {
        kind: 'message',
        target: conv!['no'],
        seq,
        messageId: null,
        user: null,
      });
  });
  const sent: { id: string }[] = [];
  try {
    for (const i of [1, 2, 3]) sent.push(await scene.send(ben, cid, say(`nasty ${i}`)));
    await scene.send(ben, cid, say('nice'));
    const [kept, edited, deleted] = sent;
    const change = await ben.api('PATCH', `/v1/messages/${edited!.id}`, { text: 'nice', expectedVersion: 1 });
    assert.equal(change.status, 200, JSON.stringify(change.body));
    assert.equal((await ben.api('DELETE', `/v1/messages/${deleted!.id}`)).status, 200);
    const again = await ben.api('PATCH', `/v1/messages/${kept!.id}`, {
      text: 'nasty too',
      expectedVersion: 1,
    });
    assert.equal(again.status, 200, JSON.stringify(again.body));
    await service.kill();
  } finally {
    await release().catch(() => undefined);
  }
  const [kept, edited, deleted] = sent;
  await restart();

  const reported = async () =>
    (await queue(server, `conversationId=${cid}`)).map((item) => [
      item.target.messageId,
      item.reports,
      item.snapshot?.text,
      item.laterSnapshots.map((s: { text: string }) => s.text),
    ]);
  await until(
    async () => (await reported()).flatMap((item) => item[1] as number).reduce((a, b) => a + b, 0) >= 4,
    'all are reported',
  );
  await until(async () => {
    const [row] = await sql(
      `SELECT (SELECT count(*) FROM outbox WHERE consumer = 16)::int + (SELECT count(*) FROM jobs WHERE queue = 'list_reports')::int AS n`,
    );
    return row!['n'] === 0;
  }, 'nothing waits');
  assert.deepEqual(
    (await reported()).sort(),
    [
      [kept!.id, 2, 'nasty 1', ['nasty too']],
      [edited!.id, 1, 'nasty 2', []],
      [deleted!.id, 1, 'nasty 3', []],
    ].sort(),
  );
});
