import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../cluster/nodes.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';
import { ready } from '../uploads/files.ts';

const { scene, server, sql } = useService({ own: true });

/** Waits where the sender is at its rate: a fast machine gets there. */
async function send(by: Actor | null, cid: string, message: object = { text: 'x' }): Promise<{ id: string }> {
  const input = { ...message, ...(by && { clientMsgId: randomUUID() }) };
  for (;;) {
    const { status, body } = await (by?.api ?? server)('POST', `/v1/conversations/${cid}/messages`, input);
    if (status === 201) return body;
    assert.equal(status, 429, JSON.stringify(body));
    await delay(body.error.retryAfterMs);
  }
}

/** As migration 0026 finds it. */
const forget = `TRUNCATE activity_notes, counters, message_hours, active_users, active_months, conversation_activity, sender_activity, activity_tops;
  INSERT INTO analytics_fill (total) SELECT count(*) FROM messages`;

test('a store from before analytics is counted in the background, nothing twice, with its progress', async () => {
  const people = [await scene.actor(), await scene.actor(), await scene.actor()];
  const group = await scene.group(people[0]!, people);
  const first = await send(people[0]!, group.id);
  for (let i = 0; i < 30; i++) await send(people[i % 2]!, group.id, { text: 'x', replyTo: first.id });
  await send(null, group.id);
  await server('DELETE', `/v1/messages/${first.id}`);
  const report = async () => (await server('GET', '/v1/analytics')).body;
  const before = await report();
  assert.equal(before.filling, null);
  assert.equal(before.totals.messages, 32);
  assert.equal(before.totals.activeUsers, 2);

  for (const statement of forget.split(';')) await sql(statement);
  const shown: number[] = [];
  await until(async () => {
    await send(people[2]!, group.id);
    const { filling } = await report();
    if (filling) shown.push(filling.progress);
    const [row] = await sql('SELECT finished_at FROM analytics_fill');
    return row!['finished_at'] !== null;
  });
  const after = await report();
  assert.equal(after.filling, null);
  assert.ok(shown.every((progress) => progress >= 0 && progress <= 1));
  const [raw] = await sql('SELECT count(*)::int AS n FROM messages');
  for (const [name, expected] of Object.entries({
    messages: raw!['n'],
    replies: 30,
    systemMessages: 1,
    deletions: 1,
    activeUsers: 3,
    newUsers: before.totals.newUsers,
    conversations: before.totals.conversations,
    mauThisMonth: 3,
  }))
    assert.equal(after.totals[name], expected, name);
  assert.equal(after.topConversations[0].messages, raw!['n']);
  await send(people[2]!, group.id);
  assert.equal((await report()).totals.messages, (raw!['n'] as number) + 1);
});

describe('without a worker, so that the test counts portion by portion', () => {
  const { scene, server, sql } = useService({ env: { CHAT_ROLES: 'api,gateway' } });

  test('no portion counts more rows than it may, whatever they are, and together they count each once', async () => {
    const people = await Promise.all(Array.from({ length: 5 }, () => scene.actor()));
    const groups = [];
    for (const person of people) groups.push(await scene.group(person, people));
    const [a] = people as [Actor];
    await (await scene.online(a)).close();
    // As the end of its grace period will say, half a minute later.
    await sql('UPDATE users SET last_seen_at = now() WHERE id = $1', [a.id]);
    for (const [i, { id }] of groups.entries()) {
      const first = await scene.send(people[i]!, id);
      await scene.send(a, id, { text: 'yes', replyTo: first.id, attachments: [await ready(a.api, id)] });
      assert.equal(
        (await people[i]!.api('PATCH', `/v1/messages/${first.id}`, { text: 'no', expectedVersion: 1 }))
          .status,
        200,
      );
      if (i % 2) {
        assert.equal((await people[i]!.api('DELETE', `/v1/messages/${first.id}`)).status, 200);
        // The fill tells the two apart by their times.
        await until(
          async () => (await sql('SELECT max(deleted_at) < now() AS later FROM messages'))[0]!['later'],
        );
        assert.equal((await server('DELETE', `/v1/messages/${first.id}?hard=true`)).status, 204);
      }
    }
    const totals = async () => (await server('GET', '/v1/analytics')).body.totals;
    const before = await totals();
    for (const statement of forget.split(';')) await sql(statement);
    await sql(
      `INSERT INTO usage_counters SELECT no, current_date, 'pushSent', 7 FROM environments WHERE id = 'env_dev'`,
    );

    const most = 2;
    const names = [
      'newUsers',
      'conversations',
      'edits',
      'deletions',
      'attachments',
      'messages',
      'activeUsers',
    ];
    let last = names.map(() => 0);
    for (let more = true; more;) {
      [{ more }] = (await sql('SELECT fill_analytics($1) AS more', [most])) as [{ more: boolean }];
      const [row] = await sql(
        `SELECT ARRAY(SELECT coalesce(sum((c.counts ->> name)::int), 0)::int FROM unnest($1::text[]) WITH ORDINALITY n(name, ord)
           LEFT JOIN counters c ON c.step = 1 GROUP BY ord ORDER BY ord) AS counts`,
        [names],
      );
      const now = row!['counts'] as number[];
      assert.ok(
        now.every((n, i) => n - last[i]! <= most),
        `${now.join()} after ${last.join()}`,
      );
      last = now;
    }
    const after = await totals();
    for (const name of [...names, 'replies', 'attachmentBytes', 'attachmentMessages', 'mauThisMonth'])
      assert.equal(after[name], before[name], name);
    assert.equal(after.attachments, 5);
    assert.equal(after.deletions, 2);
    assert.equal(after.pushSent, 7);
  });
});
