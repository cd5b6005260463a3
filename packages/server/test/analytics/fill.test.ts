import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../cluster/nodes.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';

const { scene, server, sql } = useService();

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

test('issue 13: a store from before analytics is counted in the background, nothing twice, with its progress', async () => {
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

  // As migration 0026 finds it, and with a write that began before the cut and is committed only later.
  await sql(
    'TRUNCATE activity_notes, counters, message_hours, active_users, active_months, conversation_activity, sender_activity, activity_tops',
  );
  await sql('INSERT INTO analytics_fill (total) SELECT count(*) FROM messages');
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
