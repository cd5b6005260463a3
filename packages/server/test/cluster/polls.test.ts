import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seed } from '../../../../scripts/seed.ts';
import { seeded } from '../gateway/fuzz-frames.ts';
import { createApi } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import type { Service } from '../support/service.ts';
import { signToken } from '../support/tokens.ts';
import { until, useNodes } from './nodes.ts';

/** Votes by two nodes: exact results, and anonymity. */

const { cluster, scene, nodes } = useNodes([{}, {}]);
const [a, b] = nodes as [Service, Service];
const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

test(
  'polls#votes, T10.3: 500 members vote and change their vote by two nodes: counts are voters, and an anonymous poll names nobody',
  { timeout: 600_000 },
  async () => {
    const random = seeded(seed('polls'));
    const pick = (n: number): number => Math.floor(random() * n);
    const watcher = await scene.actor('watcher');
    const people = range(499).map((i) => `voter-${i}-${watcher.id}`);
    const conv = await scene.group(null, [watcher, ...people.map((id) => ({ id, api: watcher.api }))]);
    const socket = await cluster.online(b, watcher);
    const options = range(5).map((i) => ({ text: `option ${i}` }));
    const ask = (fields: object) =>
      scene.send(null, conv.id, { poll: { question: 'Which?', options, ...fields } });
    const polls = [await ask({ anonymous: true }), await ask({ multiple: true })] as {
      id: string;
      seq: number;
    }[];
    // Everybody votes in the first poll and changes the vote; a tenth does so in the second.
    const todo = people.flatMap((id, i) =>
      (i % 10 === 0 ? [0, 1] : [0]).map((poll) => {
        const votes = range(2).map(() =>
          poll === 0 ? [1 + pick(5)] : range(5).flatMap((o) => (random() < 0.4 ? [o + 1] : [])),
        );
        return { id, poll, votes, url: random() < 0.5 ? [a.url, b.url] : [b.url, a.url] };
      }),
    );
    const last = todo.map(({ poll, votes }) => ({ poll, options: votes[1]! }));
    const work = async (): Promise<void> => {
      for (let one = todo.pop(); one; one = todo.pop())
        for (const [i, wanted] of one.votes.entries()) {
          const api = createApi(one.url[i]!, signToken({ sub: one.id }));
          const act = (): Promise<Answer> =>
            api('PUT', `/v1/messages/${polls[one!.poll]!.id}/votes`, { options: wanted });
          let answer = await act();
          // A busy machine may refuse; the same again changes nothing that is done already.
          for (let tries = 0; answer.status === 503 && tries < 20; tries++) answer = await act();
          assert.equal(answer.status, 200, JSON.stringify(answer.body));
        }
    };
    await Promise.all(range(24).map(work));

    for (const [poll, { id, seq }] of polls.entries()) {
      const expected = range(5)
        .map((o) => last.filter((one) => one.poll === poll && one.options.includes(o + 1)).length)
        .flatMap((count, o) => (count > 0 ? [{ option: o + 1, count }] : []));
      const { reactions } = (await watcher.api('GET', `/v1/messages/${id}`)).body;
      const plain = (votes: any[]) => votes.map(({ option, count }) => ({ option, count }));
      assert.deepEqual(plain(reactions.votes), expected);
      const rows = await cluster.sql(
        `SELECT count(*)::int AS n, count(DISTINCT r.usr)::int AS voters FROM reactions r
         JOIN conversations c ON c.env = r.env AND c.no = r.conv WHERE c.id = $1 AND r.message = $2`,
        [conv.id, seq],
      );
      assert.equal(
        rows[0]!['n'],
        expected.reduce((sum, { count }) => sum + count, 0),
      );
      if (poll === 0) assert.deepEqual([rows[0]!['n'], rows[0]!['voters']], [499, 499]);
      const told = () => socket.events(conv.id).filter((f) => f.e === 'message.reactions' && f.d.id === id);
      await until(() => told().at(-1)?.d.revision === reactions.revision);
      assert.deepEqual(told().at(-1)!.d.votes, reactions.votes);
      const named = JSON.stringify([
        told(),
        reactions,
        (await scene.server('GET', `/v1/messages/${id}`)).body,
        (await scene.server('GET', `/v1/messages/${id}/reactions?limit=200`)).body,
        (await scene.events(conv.id)).filter((e) => e.id === id),
      ]).includes('voter-');
      assert.equal(named, poll === 1);
    }
  },
);
