import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@parley/protocol';
import { seed } from '../../../../scripts/seed.ts';
import { seeded } from '../gateway/fuzz-frames.ts';
import type { Answer, Api } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import type { Actor } from '../support/scene.ts';
import type { Service } from '../support/service.ts';
import { allMessages } from '../core/tools.ts';
import { useNodes } from './nodes.ts';

/** Mentions by two nodes, one of which is killed: badges equal those of a model that counts messages (core/model.test.ts has the rules). */

const { cluster, scene, nodes } = useNodes([{}, {}]);
const [a, b] = nodes as [Service, Service];
const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

test(
  'mentions#unread, T3.2: random sends, edits, deletes and reads by two nodes and a kill: every badge is exact, with one row for everyone',
  { timeout: 600_000 },
  async () => {
    const random = seeded(seed('mentions'));
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
    const people = await Promise.all(range(6).map((i) => scene.actor(`m${i}`)));
    const { id: cid } = await scene.group(people[0]!, people.slice(1));
    const path = `/v1/conversations/${cid}`;
    const mentions = () =>
      random() < 0.2
        ? [{ type: pick(['everyone', 'here']) }, ...(random() < 0.5 ? [named()] : [])]
        : random() < 0.3
          ? []
          : [named()];
    const named = () => ({ type: 'user', userId: pick(people).id });
    const servers = [a, b].map((node) => createScene(node.url).server);
    const sent: Message[] = [];
    type Act = (server: Api, at: (who: Actor) => Actor) => Promise<Answer | undefined>;
    const acts: readonly (() => Act)[] = [
      ...range(4).map(() => () => {
        const body = {
          text: 'x',
          senderId: pick([...people.map((p) => p.id), undefined]),
          mentions: mentions(),
        };
        return async (server: Api) => {
          const answer = await server('POST', `${path}/messages`, body);
          if (answer.status === 201) sent.push(answer.body as Message);
          return answer;
        };
      }),
      ...range(3).map(() => () => {
        const [which, list] = [random(), mentions()];
        return async (server: Api) => {
          const one = sent[Math.floor(which * sent.length)];
          if (!one) return undefined;
          const { body } = await server('GET', `/v1/messages/${one.id}`);
          const change = { expectedVersion: body.version ?? 1, mentions: list };
          return server('PATCH', `/v1/messages/${one.id}`, change);
        };
      }),
      () => {
        const [which, hard] = [random(), random() < 0.5];
        return async (server: Api) => {
          const one = sent[Math.floor(which * sent.length)];
          return one && server('DELETE', `/v1/messages/${one.id}?hard=${hard}`);
        };
      },
      ...range(2).map(() => () => {
        const [who, seq] = [pick(people), Math.floor(random() * 200)];
        return (_server: Api, at: (who: Actor) => Actor) => at(who).api('POST', `${path}/read`, { seq });
      }),
    ];
    // What is done is decided beforehand; in which order the nodes do it is not.
    const todo = range(240).map(() => ({ node: random() < 0.5 ? 0 : 1, act: pick(acts)() }));
    let left = todo.length;
    let dead = false;
    const work = async (): Promise<void> => {
      for (let one = todo.pop(); one; one = todo.pop()) {
        const node = dead ? 1 : one.node;
        try {
          await one.act(servers[node]!, (who) => cluster.at(nodes[node]!, who));
        } catch (error) {
          // Whether it was committed is not known: what the store has decides.
          if (!dead) throw error;
        }
        if (--left === 120) {
          dead = true;
          await a.kill();
        }
      }
    };
    await Promise.all(range(12).map(work));

    const server = servers[1]!;
    const messages = (await allMessages(server, cid)).filter((m) => !m.deletedAt) as Message[];
    assert.ok(
      messages.some((m) => m.mentions),
      'there are mentions to count',
    );
    const isForAll = (m: Message) => m.mentions?.some(({ type }) => type !== 'user') ?? false;
    const { data: members } = (await server('GET', `${path}/members`)).body as {
      data: { userId: string; lastReadSeq: number }[];
    };
    for (const { userId, lastReadSeq } of members) {
      const expected = messages.filter(
        (m) =>
          m.seq > lastReadSeq &&
          m.senderId !== userId &&
          (isForAll(m) || m.mentions?.some((one) => one.userId === userId)),
      ).length;
      const me = cluster.at(
        b,
        people.find((p) => p.id === userId)!,
      );
      const list = (await me.api('GET', '/v1/conversations')).body.data;
      const sync = (await me.api('POST', '/v1/sync', { cursor: null })).body.conversations;
      const read = (await me.api('POST', `${path}/read`, { seq: 0 })).body;
      assert.deepEqual(
        [list[0].mentionUnreadCount ?? 0, sync[0].mentionUnreadCount ?? 0, read.mentionUnreadCount],
        [expected, expected, expected],
        userId,
      );
      const inbox = (await me.api('GET', '/v1/mentions?limit=200')).body.data as Message[];
      assert.deepEqual(
        inbox.map((m) => m.seq).sort((x, y) => x - y),
        messages.filter((m) => m.mentions?.some((one) => one.userId === userId)).map((m) => m.seq),
      );
    }
    const [rows] = await cluster.sql(
      `SELECT count(*) FILTER (WHERE m.usr = 0)::int AS "all", count(*)::int AS n FROM mentions m
       JOIN conversations c ON c.env = m.env AND c.no = m.conv WHERE c.id = $1`,
      [cid],
    );
    const names = messages.flatMap((m) => m.mentions?.filter(({ type }) => type === 'user') ?? []);
    const forAll = messages.filter(isForAll).length;
    assert.deepEqual(rows, { all: forAll, n: forAll + names.length });
  },
);
