import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { Caller, dial, from, group, looped, names, paced, prepared, Tally, tokenOf, unique } from '../kit.ts';
import type { Attack, Deadline } from '../kit.ts';
import { memberOfMany } from './presence.ts';

/** Against the disk. */

/** A member of 1,200 groups syncs from the beginning, each time under a fresh Idempotency-Key. */
export const syncWithKeys: Attack = async (target) => {
  const user = unique('syncer');
  await memberOfMany(target, user);
  return async (deadline) => {
    const caller = new Caller(target, 10, deadline);
    const token = tokenOf(target, user);
    const tally = new Tally();
    await paced(deadline, { perSecond: 20, waiting: 20 }, async () => {
      const headers = { 'idempotency-key': randomUUID() };
      tally.add((await caller.call('POST', '/v1/sync', { token, headers, body: { cursor: null } })).status);
    });
    return tally.done('syncs');
  };
};

const fileBytes = 25 * 1024 * 1024;
/** Of one strike: what it stores is 1.5 GB at most. */
const mostTickets = 60;
const filler = Buffer.alloc(64 * 1024);

interface Ticket {
  upload: { url: string; headers: Record<string, string> };
}

/** The whole file to one ticket; its status, or why there is none. */
const put = (ticket: Ticket, deadline: Deadline): Promise<number | string> =>
  new Promise((resolve) => {
    const sent = request(
      ticket.upload.url,
      {
        method: 'PUT',
        headers: { ...ticket.upload.headers, 'content-length': fileBytes },
        localAddress: from,
        agent: false,
      },
      (response) => {
        response.resume();
        resolve(response.statusCode!);
      },
    );
    const timer = setTimeout(() => sent.destroy(), deadline.left);
    sent.on('error', () => resolve('cut off'));
    sent.on('close', () => {
      clearTimeout(timer);
      resolve('cut off');
    });
    let left = fileBytes;
    const write = (): void => {
      while (left > 0 && !sent.destroyed) {
        left -= filler.length;
        if (!sent.write(filler)) return void sent.once('drain', write);
      }
      if (!sent.destroyed) sent.end();
    };
    write();
  });

const ticketFor = (caller: Caller, conversationId: string): Promise<Ticket> =>
  caller.must<Ticket>('POST', '/v1/uploads', {
    body: { conversationId, filename: 'film.mp4', size: fileBytes, contentType: 'video/mp4' },
  });

/** Twenty transfers of 25 MB at once, all to the same ticket. */
export const parallelPuts: Attack = async (target) => {
  const cid = await prepared(target, (caller) => group(caller, names(unique('files'), 2)));
  return async (deadline) => {
    const caller = new Caller(target, 1, deadline);
    const tally = new Tally();
    const pauseMs = Math.max(500, deadline.left / mostTickets);
    for (let tickets = 0; tickets < mostTickets && !deadline.over; tickets++) {
      const ticket = await ticketFor(caller, cid);
      const statuses = await Promise.all(Array.from({ length: 20 }, () => put(ticket, deadline)));
      for (const status of statuses) tally.add(status);
      await deadline.pause(pauseMs);
    }
    return tally.done('files of 25 MB stored');
  };
};

const drips = 200;

/** Uploads that were refused, whose senders go on a byte at a time. */
export const drippingUploads: Attack = async (target) => {
  await Promise.resolve();
  return async (deadline) => {
    const ask =
      'PUT /media/env_none/att_none?op=put&expires=1&type=video%2Fmp4&size=20000000&sig=none HTTP/1.1\r\n' +
      'Host: localhost\r\nContent-Type: video/mp4\r\nContent-Length: 20000000\r\n\r\n';
    let closed = 0;
    const open = Array.from({ length: drips }, () => {
      const socket = dial(target, () => closed++);
      socket.write(ask);
      socket.resume();
      return socket;
    });
    while (!deadline.over) {
      await deadline.pause(200);
      for (const socket of open) if (socket.writable) socket.write('x');
    }
    const left = drips - closed;
    for (const socket of open) socket.destroy();
    return { count: left, text: `${left} of ${drips} refused uploads still open at the end` };
  };
};

/** Users made by development tokens, each with a name of its own. */
export const developmentUsers: Attack = async (target) => {
  await Promise.resolve();
  return async (deadline) => {
    const caller = new Caller(target, 16, deadline);
    const tally = new Tally();
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const header = encode({ alg: 'none', typ: 'JWT' });
    const now = Math.floor(Date.now() / 1_000);
    await looped(deadline, 16, async () => {
      const token = `${header}.${encode({ sub: unique('made-up'), iat: now - 1, exp: now + 3_600 })}.`;
      const headers = { 'chat-env': target.development.id };
      const { status } = await caller.call('GET', '/v1/conversations?limit=1', { token, headers });
      tally.add(status);
      if (status !== 200) await deadline.pause(20);
    });
    return tally.done('users made');
  };
};
