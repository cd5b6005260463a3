import type { Socket } from 'node:net';
import { Caller, dial, group, looped, messages, names, prepared, Tally, tokenOf, unique } from '../kit.ts';
import type { Attack, Target } from '../kit.ts';

/** Against what answers cost. */

const page = (cid: string): string => `/v1/conversations/${cid}/messages?limit=200`;

async function history(target: Target, users: string[], fields: object): Promise<string> {
  return prepared(target, async (caller) => {
    const cid = await group(caller, users);
    await messages(caller, cid, users[0]!, 200, fields);
    return cid;
  });
}

const unreadConnections = 150;

/** Pages asked for at once on each connection: more than the kernel takes off the service's hands. */
const unreadPagesEach = 8;

/** History pages of 4.85 MB (cut at 1 MB by now) asked for on 150 connections, of which not a byte is read. */
export const unreadPages: Attack = async (target) => {
  const users = names(unique('reader'), 10);
  const metadata = { filler: 'x'.repeat(4_000) };
  const cid = await history(target, users, { text: '😀'.repeat(5_000), metadata });
  const asks = users.map(
    (user) =>
      `GET ${page(cid)} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${tokenOf(target, user)}\r\n\r\n`,
  );
  return async (deadline) => {
    const open = new Set<Socket>();
    let asked = 0;
    let cut = 0;
    while (!deadline.over) {
      for (let i = 0; open.size < unreadConnections && i < unreadConnections; i++) {
        const socket = dial(target, () => {
          open.delete(socket);
          if (!deadline.over) cut++;
        });
        open.add(socket);
        socket.pause();
        socket.write(asks[asked++ % asks.length]!.repeat(unreadPagesEach));
      }
      await deadline.pause(1_000);
      // Between requests this means nothing; to a connection that was cut it shows that it was.
      for (const socket of open) socket.write('\r\n');
    }
    for (const socket of open) socket.destroy();
    const pages = asked * unreadPagesEach;
    return { count: pages, text: `${pages} pages asked for, ${cut} connections cut by the service` };
  };
};

/** Pages of 1 MB, read as fast as they come. */
export const largePages: Attack = async (target) => {
  const cid = await history(target, names(unique('pages'), 2), { text: 'x'.repeat(5_000) });
  return async (deadline) => {
    const caller = new Caller(target, 16, deadline);
    const tally = new Tally();
    await looped(deadline, 16, async () => {
      const { status } = await caller.call('GET', page(cid));
      tally.add(status);
      if (status !== 200) await deadline.pause(100);
    });
    return tally.done('pages of 1 MB');
  };
};

/** The reference page and paths that are not there, without a credential, on 64 connections. */
export const anonymousPages: Attack = async (target) => {
  await Promise.resolve();
  return async (deadline) => {
    const caller = new Caller(target, 64, deadline);
    const tally = new Tally();
    let asked = 0;
    await looped(deadline, 64, async () => {
      const path = asked++ % 2 === 0 ? '/docs' : `/nothing-${asked}`;
      const { status } = await caller.call('GET', path, { token: '' });
      tally.add(status);
      if (status === 0 || status === 429) await deadline.pause(20);
    });
    return tally.done('pages');
  };
};

/** Groups of 500 made by the key, eight at a time. */
export const largeGroups: Attack = async (target) => {
  const members = names(unique('crowd'), 500);
  await prepared(target, (caller) => group(caller, members));
  return async (deadline) => {
    const caller = new Caller(target, 8, deadline);
    const tally = new Tally();
    await looped(deadline, 8, async () => {
      const body = { type: 'group', name: 'Crowd', members };
      const { status } = await caller.call('POST', '/v1/conversations', { body });
      tally.add(status);
      if (status !== 201) await deadline.pause(100);
    });
    return tally.done('groups of 500');
  };
};
