import { Caller, Deadline, group, messages, names, paced, prepared, Tally, tokenOf, unique } from '../kit.ts';
import type { Attack, Target } from '../kit.ts';

/** Against the counters of large groups. */

interface Large {
  author: string;
  cid: string;
  ids: string[];
}

async function largeGroup(target: Target, count: number): Promise<Large> {
  const members = names(unique('large'), 500);
  const author = members[0]!;
  return prepared(target, async (caller) => {
    const cid = await group(caller, members);
    return { author, cid, ids: await messages(caller, cid, author, count, { text: 'to be deleted' }) };
  });
}

/** While the group is alive: five messages a second go into it until the work is done. */
async function amidChatter(
  { target, deadline, cid }: { target: Target; deadline: Deadline; cid: string },
  work: (caller: Caller) => Promise<void>,
): Promise<void> {
  const caller = new Caller(target, 60, deadline);
  const done = new Deadline(deadline.left);
  const talking = paced(done, { perSecond: 5, waiting: 20 }, async () => {
    await caller.call('POST', `/v1/conversations/${cid}/messages`, { body: { text: 'life goes on' } });
  });
  await work(caller);
  done.end();
  await talking;
  caller.end();
}

/** A user deletes its own messages in a group of 500, as often as it may. */
export const deleteMessages: Attack = async (target) => {
  const { author, cid, ids } = await largeGroup(target, 400);
  return async (deadline) => {
    const token = tokenOf(target, author);
    const tally = new Tally();
    await amidChatter({ target, deadline, cid }, (caller) =>
      paced(deadline, { perSecond: 20, waiting: 40, times: ids.length }, async (i) => {
        tally.add((await caller.call('DELETE', `/v1/messages/${ids[i]!}`, { token })).status);
      }),
    );
    return tally.done('messages deleted');
  };
};

/** A server erases a user who wrote 400 messages in a group of 500. */
export const eraseAuthor: Attack = async (target) => {
  const { author, cid } = await largeGroup(target, 400);
  return async (deadline) => {
    const begin = performance.now();
    const tally = new Tally();
    let seconds = 0;
    await amidChatter({ target, deadline, cid }, async (caller) => {
      tally.add((await caller.call('DELETE', `/v1/users/${author}?messages=delete`)).status);
      seconds = (performance.now() - begin) / 1_000;
    });
    return tally.done(`users erased in ${seconds.toFixed(1)} s`);
  };
};
