import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setUp, use, useService } from '../support/use.ts';
import { ok, silent, startReceiver, status } from './receiver.ts';
import { addEndpoint, delivery } from './tools.ts';

/** What takes its time, all at once: each has a receiver and a type of event of its own. */

const { server } = useService();
const receivers = ['never answers', 'fails once', 'drips'].map(() => use(startReceiver, (r) => r.close()));
let conversation: string;
setUp(async () => {
  conversation = (await server('POST', '/v1/conversations', { type: 'group', members: ['a'] })).body.id;
});

describe('webhooks#schedule, without help from a clock', { concurrency: true }, () => {
  const [never, once, drips] = receivers as [
    (typeof receivers)[0],
    (typeof receivers)[0],
    (typeof receivers)[0],
  ];

  it('rule 1: no answer within 10 s is a failure', async () => {
    never.answer = silent;
    const { id } = await addEndpoint(server, never.url, ['message.created']);
    await server('POST', `/v1/conversations/${conversation}/messages`, { text: 'x' });
    const failed = await delivery(server, id, (d) => d.attempts.length === 1);
    assert.equal(failed.attempts[0]!.status, null);
    assert.ok(failed.attempts[0]!.durationMs >= 9_900);
    assert.match(failed.attempts[0]!.error!, /10 s/);
  });

  it('rule 2: the second attempt comes after 8 to 12 s', async () => {
    once.answer = (r, res) => (once.received.length === 1 ? status(500)(r, res) : ok(r, res));
    const { id } = await addEndpoint(server, once.url, ['conversation.updated']);
    await server('PATCH', `/v1/conversations/${conversation}`, { name: 'x' });
    const [first, second] = await once.wait(2);
    assert.equal(second!.id, first!.id);
    assert.ok(second!.at - first!.at >= 8_000);
    const record = await delivery(server, id, (d) => d.status === 'succeeded');
    assert.deepEqual(
      record.attempts.map((a) => a.status),
      [500, 204],
    );
  });

  it('webhooks#bounded-answer: an answer that drips is cut off, with the status it had given', async () => {
    let drip: NodeJS.Timeout | undefined;
    drips.answer = (_, res) => {
      res.writeHead(500);
      drip = setInterval(() => res.write('.'), 500);
      res.on('close', () => clearInterval(drip));
    };
    const { id } = await addEndpoint(server, drips.url, ['member.added']);
    await server('POST', `/v1/conversations/${conversation}/members`, { userIds: ['b'] });
    const failed = await delivery(server, id, (d) => d.attempts.length === 1 && d.status === 'pending');
    assert.equal(failed.attempts[0]!.status, 500);
  });
});
