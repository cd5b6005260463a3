import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seed } from '../../../../scripts/seed.ts';
import type { Service } from '../support/service.ts';
import { createScene } from '../support/scene.ts';
import type { Answer } from '../support/api.ts';
import { seeded } from '../gateway/fuzz-frames.ts';
import { until, useNodes } from './nodes.ts';

/** Reactions by several nodes: exact counts, and events that no crash loses. */

const { cluster, scene, nodes } = useNodes([{}, {}, {}]);
const [a, b, c] = nodes as [Service, Service, Service];
const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const path = (id: string, emoji: string) => `/v1/messages/${id}/reactions/${encodeURIComponent(emoji)}`;

test(
  'reactions#set, T1.1: 500 members react at random by two nodes, one of which is killed: counts are rows, and the last event shows them',
  { timeout: 600_000 },
  async () => {
    const random = seeded(seed('reactions'));
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
    const watcher = await scene.actor('watcher');
    const people = range(499).map((i) => `reactor-${i}-${watcher.id}`);
    const conv = await scene.group(null, [watcher, ...people.map((id) => ({ id, api: watcher.api }))]);
    const socket = await cluster.online(b, watcher);
    const messages: { id: string; seq: number }[] = [];
    for (const _ of range(4)) messages.push(await scene.send(null, conv.id));
    const servers = [b, c].map((node) => createScene(node.url).server);
    const emoji = ['👍', '🎉', ':a:', ':b:', '👀'];
    // What is done is decided beforehand; in which order the nodes do it is not. Everybody reacts, then most of what follows
    // takes something back, or away by another one.
    const first = people.map((userId) => ({ userId, id: pick(messages).id, emoji: pick(emoji), how: 0.5 }));
    const then = range(400).map(() => {
      const how = random();
      return { ...pick(first), ...(how < 0.4 ? {} : { emoji: pick(emoji) }), how };
    });
    const all = [...first, ...then].map((one) => ({ ...one, node: random() < 0.5 ? 0 : 1 }));
    const todo = all.toReversed();
    let dead = false;
    const work = async (): Promise<void> => {
      for (let one = todo.pop(); one; one = todo.pop()) {
        const { userId, id, how, node } = one;
        const at = path(id, one.emoji);
        const act = (): Promise<Answer> => {
          const server = servers[dead ? 0 : node]!;
          return how < 0.4
            ? server('DELETE', `${at}?userId=${userId}`)
            : server('PUT', at, { userId, replace: how > 0.8 });
        };
        // A busy machine may refuse, and a killed node does not answer; the same again changes nothing that is done already.
        let answer: Answer | undefined;
        for (let tries = 0; tries < 20 && answer?.status !== 200; tries++)
          answer = await act().catch((error: unknown) => {
            if (!dead) throw error;
            return undefined;
          });
        assert.equal(answer?.status, 200, JSON.stringify(answer?.body));
        if (!dead && todo.length < all.length / 2) {
          dead = true;
          await c.kill();
        }
      }
    };
    await Promise.all(range(24).map(work));

    for (const { id, seq } of messages) {
      const rows = await cluster.sql(
        `SELECT r.emoji, count(*)::int AS n FROM reactions r JOIN conversations c ON c.env = r.env AND c.no = r.conv
       WHERE c.id = $1 AND r.message = $2 GROUP BY 1`,
        [conv.id, seq],
      );
      const kept = new Map(rows.map((r) => [r['emoji'], r['n']]));
      const { reactions } = (await watcher.api('GET', `/v1/messages/${id}`)).body;
      const counted = new Map(reactions.counts.map((c: any) => [c.emoji, c.count]));
      assert.deepEqual(new Map([...counted].sort()), new Map([...kept].sort()));
      assert.equal(
        reactions.total,
        [...kept.values()].reduce((sum: number, n) => sum + (n as number), 0),
      );
      const last = () => socket.events(conv.id).findLast((f) => f.e === 'message.reactions' && f.d.id === id);
      await until(() => last()?.d.revision === reactions.revision);
      assert.deepEqual(last().d.counts, reactions.counts);
      assert.equal(last().d.total, reactions.total);
    }
  },
);

test(
  'reactions#event, T1.5: kill -9 right after the ack: the event arrives with the acknowledged state',
  { timeout: 600_000 },
  async () => {
    const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
    const conv = await scene.group(anna, [ben]);
    const { id } = await scene.send(anna, conv.id);
    const watcher = await cluster.online(b, ben);
    assert.equal((await anna.api('PUT', path(id, '👍'), {})).status, 200);
    await watcher.event('message.reactions', conv.id);
    // In the window after the first event, so that the second one is still to come.
    const { status, body } = await anna.api('PUT', path(id, '🎉'), {});
    assert.equal(status, 200);
    await a.kill();
    const { d } = await watcher.event('message.reactions', conv.id);
    assert.deepEqual(
      { revision: d.revision, counts: d.counts },
      { revision: 2, counts: body.reactions.counts },
    );
    // An event that was committed and not yet published is read later, without what changed.
    if (d.changes.length > 0) assert.deepEqual(d.changes, [{ userId: anna.id, emoji: '🎉', on: true }]);
  },
);
