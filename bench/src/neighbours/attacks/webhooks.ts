import { Caller, group, names, paced, prepared, Tally, unique } from '../kit.ts';
import type { Attack } from '../kit.ts';

/** Against what leaves the service. */

const endpoints = 20;

/** Endpoints whose names the resolver never answers for, and twenty messages a second for them. */
export const unresolvedWebhooks: Attack = async (target) => {
  const cid = await prepared(target, async (caller) => {
    for (const name of names(unique('never'), endpoints))
      await caller.must('POST', '/v1/webhooks', {
        body: { url: `http://${name}.test/hook`, events: ['message.created'] },
      });
    return group(caller, names(unique('hooked'), 2));
  });
  return async (deadline) => {
    const caller = new Caller(target, 20, deadline);
    const tally = new Tally();
    await paced(deadline, { perSecond: 20, waiting: 20 }, async () => {
      const body = { text: 'for endpoints that cannot be found' };
      tally.add((await caller.call('POST', `/v1/conversations/${cid}/messages`, { body })).status);
    });
    return tally.done(`messages for ${endpoints} endpoints`);
  };
};
