import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { seed } from '../../../../scripts/seed.ts';
import { seeded } from '../gateway/fuzz-frames.ts';
import type { Service } from '../support/service.ts';
import { useNodes } from './nodes.ts';

/** Blocks by two nodes: nothing slips through, and the conversation's flag is never wrong. */

const { cluster, scene, nodes } = useNodes([{}, {}]);
const [a, b] = nodes as [Service, Service];
const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

test(
  'blocks#race: after the answer of a block nothing of either is committed, whichever node sends',
  { timeout: 600_000 },
  async () => {
    for (const round of range(4)) {
      const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
      const { id: cid } = await scene.direct(anna, ben);
      const sockets = await Promise.all([
        cluster.online(a, anna),
        cluster.online(b, anna),
        cluster.online(a, ben),
        cluster.online(b, ben),
      ]);
      let stopped = false;
      const codes = new Set<string>();
      let first = (): void => undefined;
      const begun = new Promise<void>((resolve) => (first = resolve));
      const send = async (socket: (typeof sockets)[number]): Promise<void> => {
        // A socket may send 20 at once, and 10 a second.
        for (let i = 0; i < 15; i++) {
          const answer = await socket.ask('message.send', { cid, text: 'x', clientMsgId: randomUUID() });
          codes.add(answer.t === 'ack' ? 'stored' : answer.code);
          first();
          if (stopped && answer.t !== 'ack') return;
        }
      };
      const sending = sockets.map(send);
      await begun;
      const by = cluster.at(round % 2 === 0 ? a : b, anna);
      assert.equal((await by.api('PUT', `/v1/blocks/${ben.id}`, {})).status, 200);
      const { lastSeq } = (await scene.server('GET', `/v1/conversations/${cid}`)).body;
      stopped = true;
      await Promise.all(sending);
      const late = await sockets[3]!.ask('message.send', { cid, text: 'x', clientMsgId: randomUUID() });
      assert.ok(['blocked', 'rate_limited'].includes(late.code), late.code);
      assert.equal((await scene.server('GET', `/v1/conversations/${cid}`)).body.lastSeq, lastSeq);
      assert.ok(codes.has('stored'));
      await Promise.all(sockets.map((socket) => socket.close()));
    }
  },
);

test(
  'blocks#both: whoever blocks, unblocks and creates at the same time, flags and rows agree',
  { timeout: 600_000 },
  async () => {
    const random = seeded(seed('blocks'));
    const pairs = await Promise.all(range(6).map(() => Promise.all([scene.actor(), scene.actor()])));
    const todo = pairs.flatMap(([x, y]) =>
      range(12).map(() => ({ x, y, swapped: random() < 0.5, node: random() < 0.5 ? a : b, how: random() })),
    );
    const work = async (): Promise<void> => {
      for (let one = todo.shift(); one; one = todo.shift()) {
        const [by, who] = one.swapped ? [one.y, one.x] : [one.x, one.y];
        const { api } = cluster.at(one.node, by);
        const run = () =>
          one.how < 0.45
            ? api('PUT', `/v1/blocks/${who.id}`, {})
            : one.how < 0.8
              ? api('DELETE', `/v1/blocks/${who.id}`)
              : scene.server('POST', '/v1/conversations', { type: 'direct', members: [by.id, who.id] });
        let answer = await run();
        for (let tries = 0; answer.status === 503 && tries < 20; tries++) answer = await run();
        assert.ok(answer.status < 300, JSON.stringify(answer.body));
      }
    };
    await Promise.all(range(12).map(work));
    for (const [x, y] of pairs) {
      const answer = await scene.server('POST', '/v1/conversations', {
        type: 'direct',
        members: [x.id, y.id],
      });
      assert.ok(answer.status < 300);
      const [row] = await cluster.sql(
        `SELECT c.flags & 256 <> 0 AS flag, EXISTS (
           SELECT 1 FROM blocks k JOIN users u ON u.no = k.usr JOIN users v ON v.no = k.blocked WHERE ARRAY[u.id, v.id] <@ $2
         ) AS rows FROM conversations c WHERE c.id = $1`,
        [answer.body.id, [x.id, y.id]],
      );
      assert.equal(row!['flag'], row!['rows']);
    }
  },
);
