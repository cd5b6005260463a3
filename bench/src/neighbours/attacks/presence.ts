import { Caller, group, names, paced, prepared, Tally, unique, wires } from '../kit.ts';
import type { Attack, Target } from '../kit.ts';

/** Against presence. */

const ownGroups = 1_200;
const groupSize = 40;
const socketsPerUser = 10;

/** A user in this many groups of some size. */
export const memberOfMany = (target: Target, user: string): Promise<void> =>
  prepared(target, async (caller) => {
    const peers = names(`${user}-peer`, groupSize - 1);
    let made = 0;
    const lane = async (): Promise<void> => {
      while (made++ < ownGroups) await group(caller, [user, ...peers]);
    };
    await Promise.all(Array.from({ length: 16 }, lane));
  });

/** A member of many groups asks for the presence of 200 people it shares none with, as often as it may. */
export const watchStrangers: Attack = async (target) => {
  const user = unique('watcher');
  const strangers = names(unique('stranger'), 200);
  await memberOfMany(target, user);
  await prepared(target, async (caller) => {
    for (const stranger of strangers) await caller.must('PUT', `/v1/users/${stranger}`, { body: {} });
  });
  return async (deadline) => {
    const open = await wires(target, new Array<string>(socketsPerUser).fill(user));
    const tally = new Tally();
    for (const wire of open) wire.onFrame = ({ t, code }) => t !== 'event' && tally.add(code ?? 200);
    await paced(deadline, { perSecond: 20 }, (i) => {
      const wire = open[i % open.length]!;
      if (!wire.closed) wire.send('presence.watch', { userIds: strangers });
    });
    for (const wire of open) wire.socket.destroy();
    return tally.done('watches');
  };
};

/** 500 members, each with a socket that watches 200 of the others; then their conversation is deleted. */
export const deleteWatched: Attack = async (target) => {
  const members = names(unique('watched'), 500);
  const cid = await prepared(target, (caller) => group(caller, members));
  const open = await wires(target, members);
  await Promise.all(
    open.map(
      (wire, i) =>
        new Promise<void>((resolve) => {
          wire.onFrame = ({ t }) => t !== 'event' && resolve();
          wire.socket.once('close', () => resolve());
          wire.send('presence.watch', {
            userIds: Array.from({ length: 200 }, (_, n) => members[(i + n + 1) % members.length]),
          });
        }),
    ),
  );
  return async (deadline) => {
    const caller = new Caller(target, 1, deadline);
    const tally = new Tally();
    const { status } = await caller.call('DELETE', `/v1/conversations/${cid}`);
    tally.add(status);
    await deadline.pause(8_000);
    for (const wire of open) wire.socket.destroy();
    return tally.done(`conversation of ${open.length} watched members deleted`);
  };
};
