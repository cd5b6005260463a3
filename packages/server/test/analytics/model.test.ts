import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { seed } from '../../../../scripts/seed.ts';
import { useNodes } from '../cluster/nodes.ts';
import { serverApi } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import type { Actor } from '../support/scene.ts';
import { environments } from '../support/service.ts';
import type { EnvironmentName, Service } from '../support/service.ts';

/**
 * Random activity of two tenants on two nodes, one of which is killed (-9) again and again: in the end every exact figure equals a
 * recount of the rows that are there.
 */

const { cluster } = useNodes([{}, {}]);
const rounds = 4;
const actsPerRound = 60;
const tenants = ['dev', 'other'] as const;

interface Tenant {
  name: EnvironmentName;
  people: Actor[];
  conversations: string[];
  /** Users who read or connected, as they were told. */
  active: Set<string>;
  /** What a hard deletion takes out of the rows. */
  replies: number;
}

/** Numbers below `n`, the same for one seed (mulberry32). */
function numbers(state: number): (n: number) => number {
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

test('every exact figure equals a recount, whatever was killed', { timeout: 900_000 }, async () => {
  const below = numbers(seed('analytics'));
  const one = <T>(items: readonly T[]): T => items[below(items.length)]!;
  const nodes = cluster.nodes;
  const node = (): Service => one(nodes);

  /** Asks until a node answers: what a killed one was asked is asked again. */
  async function insist(ask: (at: Service) => Promise<Answer>): Promise<Answer> {
    for (;;) {
      try {
        const answer = await ask(node());
        if (answer.status < 500) return answer;
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async function setUp(name: EnvironmentName): Promise<Tenant> {
    const scene = createScene(nodes[0]!.url, name);
    const people = await Promise.all(Array.from({ length: 12 }, () => scene.actor()));
    const conversations: string[] = [];
    for (let i = 0; i < 5; i++) conversations.push((await scene.group(people[i]!, people)).id);
    return { name, people, conversations, active: new Set(), replies: 0 };
  }

  async function act(tenant: Tenant): Promise<void> {
    const { name } = tenant;
    const person = one(tenant.people);
    const conversation = one(tenant.conversations);
    const path = `/v1/conversations/${conversation}`;
    const asUser = (method: string, to: string, body?: unknown) =>
      insist((at) => cluster.at(at, person, name).api(method, to, body));
    const latest = async (): Promise<{ id: string; version: number; seq: number } | undefined> =>
      (await insist((at) => serverApi(at.url, name)('GET', `${path}/messages?limit=5`))).body.data[0];
    switch (below(11)) {
      case 0: {
        const message = await latest();
        if (message)
          await insist((at) =>
            serverApi(at.url, name)('PATCH', `/v1/messages/${message.id}`, {
              text: 'edited',
              expectedVersion: message.version,
            }),
          );
        return;
      }
      case 1: {
        const message = await latest();
        const hard = below(2) === 0 ? '?hard=true' : '';
        if (message)
          await insist((at) => serverApi(at.url, name)('DELETE', `/v1/messages/${message.id}${hard}`));
        return;
      }
      case 2: {
        const read = await asUser('POST', `${path}/read`, { seq: 1 + below(200) });
        assert.equal(read.status, 200);
        tenant.active.add(person.id);
        return;
      }
      case 3: {
        for (;;)
          try {
            await (await cluster.online(node(), person, name)).close();
            break;
          } catch {
            await new Promise((resolve) => setTimeout(resolve, 50));
          }
        tenant.active.add(person.id);
        return;
      }
      case 4: {
        const clientMsgId = randomUUID();
        await insist((at) =>
          serverApi(at.url, name)('POST', `${path}/messages`, { clientMsgId, text: 'system' }),
        );
        return;
      }
      case 5: {
        const id = randomUUID();
        await insist((at) => serverApi(at.url, name)('PUT', `/v1/users/${id}`, {}));
        return;
      }
      case 6: {
        const message = await latest();
        const clientMsgId = randomUUID();
        const answer = await asUser('POST', `${path}/messages`, {
          clientMsgId,
          metadata: { n: 1 },
          ...(message ? { replyTo: message.id } : {}),
        });
        if (message && answer.status === 201) tenant.replies += 1;
        return;
      }
      case 7: {
        const kind = one(['audio', 'video']);
        const { body: call } = await asUser('POST', '/v1/calls', { conversationId: conversation, kind });
        const other = one(tenant.people.filter(({ id }) => id !== call.createdBy));
        const as = (who: Actor, to: string) =>
          insist((at) => cluster.at(at, who, name).api('POST', `/v1/calls/${call.id}/${to}`));
        if (below(4) > 0) {
          await as(other, 'join');
          await mediaConnects(call.id, below(600));
          if (below(2) > 0) await as(other, 'leave');
        }
        await insist((at) => serverApi(at.url, name)('POST', `/v1/calls/${call.id}/end`));
        return;
      }
      default: {
        const clientMsgId = randomUUID();
        const times = 1 + below(4);
        await Promise.all(
          Array.from({ length: times }, () =>
            asUser('POST', `${path}/messages`, { clientMsgId, text: 'hello' }),
          ),
        );
      }
    }
  }

  /** As if the media of those who joined had connected so many seconds ago. */
  async function mediaConnects(callId: string, seconds: number): Promise<void> {
    await cluster.sql(
      `WITH c AS (UPDATE calls SET answered_at = now() - make_interval(secs => $2) WHERE id = $1 AND status = 'active' RETURNING no)
       UPDATE call_participants p SET state = 'joined', joined_at = now() - make_interval(secs => $2), stay_from = now() - make_interval(secs => $2)
       FROM c WHERE p.call = c.no AND p.state = 'joining'`,
      [callId, seconds],
    );
  }

  await cluster.sql(
    `INSERT INTO media_nodes (id, state, rtp_capabilities, lease_until) VALUES ('n', 'ready', '{"codecs":[]}', now() + interval '1 day')`,
  );
  const all = await Promise.all(tenants.map(setUp));
  for (let round = 0; round < rounds; round++) {
    const victim = round % 2;
    const acts = Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let i = 0; i < actsPerRound / 8; i++) await act(one(all));
      }),
    );
    // Somebody looks meanwhile, so that notes are folded while nodes die.
    await insist((at) => serverApi(at.url, 'dev')('GET', '/v1/analytics'));
    await nodes[victim]!.kill();
    nodes[victim] = await nodes[victim]!.restart();
    await acts;
  }

  for (const tenant of all) await compare(tenant);

  async function compare(tenant: Tenant): Promise<void> {
    const { name } = tenant;
    const to = new Date(Date.now() + 3_600_000).toISOString();
    const from = new Date(Date.now() - 5 * 3_600_000).toISOString();
    const { body } = await insist((at) =>
      serverApi(at.url, name)('GET', `/v1/analytics?granularity=hour&from=${from}&to=${to}`),
    );
    const [env] = await cluster.sql('SELECT no FROM environments WHERE id = $1', [environments[name].id]);
    const no = env!['no'];
    const count = async (table: string, where = 'true'): Promise<number> =>
      Number(
        (await cluster.sql(`SELECT count(*) AS n FROM ${table} WHERE env = $1 AND ${where}`, [no]))[0]!['n'],
      );
    const senders = await cluster.sql(
      'SELECT u.id, count(*)::int AS n FROM messages m JOIN users u ON u.no = m.sender WHERE m.env = $1 GROUP BY u.id',
      [no],
    );
    const callers = await cluster.sql(
      `SELECT DISTINCT u.id FROM call_participants p JOIN calls c ON c.no = p.call JOIN users u ON u.no = p.usr
       WHERE p.env = $1 AND (p.joined_at IS NOT NULL OR p.usr <> c.created_by AND p.state IN ('joining', 'joined', 'left'))`,
      [no],
    );
    const [calls] = await cluster.sql(
      `SELECT round(avg(floor(extract(epoch FROM ended_at - answered_at))), 3)::float8 AS seconds,
         (SELECT round(sum(seconds) / 60.0, 3)::float8 FROM call_participants WHERE env = $1) AS minutes
       FROM calls WHERE env = $1 AND answered_at IS NOT NULL`,
      [no],
    );
    const active = new Set([...tenant.active, ...[...senders, ...callers].map((s) => String(s['id']))]);
    const expected = {
      calls: await count('calls'),
      videoCalls: await count('calls', `kind = 'video'`),
      callsAnswered: await count('calls', 'answered_at IS NOT NULL'),
      callsMissed: await count('calls', `end_reason = 'missed'`),
      callMinutes: calls!['minutes'],
      avgCallSeconds: calls!['seconds'],
      messages: await count('messages'),
      replies: tenant.replies,
      systemMessages: await count('messages', 'sender IS NULL'),
      edits: await count('events', `type = 'message.updated'`),
      deletions: await count('messages', 'deleted_at IS NOT NULL'),
      newUsers: await count('users'),
      conversations: await count('conversations'),
      activeUsers: active.size,
    };
    const { totals } = body;
    assert.deepEqual(
      Object.fromEntries(Object.keys(expected).map((key) => [key, totals[key]])),
      expected,
      name,
    );
    assert.equal(totals.textMessages + totals.customMessages + totals.attachmentMessages, expected.messages);
    assert.equal(totals.mauThisMonth, active.size);
    assert.ok(
      expected.messages > 20 && expected.deletions > 0 && expected.edits > 0 && expected.callsAnswered > 0,
      JSON.stringify(expected),
    );

    const hours = await cluster.sql(
      `SELECT to_char(date_trunc('hour', created_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD"T"HH24:MI:SS".000Z"') AS t, count(*)::int AS n
       FROM messages WHERE env = $1 GROUP BY 1 ORDER BY 1`,
      [no],
    );
    assert.deepEqual(
      body.series
        .filter((row: { messages: number }) => row.messages > 0)
        .map((row: { t: string; messages: number }) => ({ t: row.t, n: row.messages })),
      hours,
    );
    const conversations = await cluster.sql(
      `SELECT c.id, count(*)::int AS messages, count(DISTINCT m.sender)::int AS senders FROM messages m JOIN conversations c ON c.no = m.conv
       WHERE m.env = $1 GROUP BY c.no, c.id ORDER BY 2 DESC, c.no LIMIT 10`,
      [no],
    );
    assert.deepEqual(
      body.topConversations.map(({ id, messages, senders: n }: Record<string, unknown>) => ({
        id,
        messages,
        senders: n,
      })),
      conversations,
    );
    const sent = new Map(senders.map((s) => [s['id'], s['n']]));
    assert.ok(body.topSenders.length > 0);
    for (const { userId, messages } of body.topSenders) assert.equal(messages, sent.get(userId));
    const heat = body.heatmap.flat().reduce((a: number, b: number) => a + b, 0);
    assert.equal(heat, expected.messages);
  }
});
