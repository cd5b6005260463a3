import type { Socket } from 'node:net';
import { maskedFrame } from '../../load/frames.ts';
import { dial, unique, upgrade, Wire } from '../kit.ts';
import type { Attack } from '../kit.ts';

/** Against the gateway. */

const ping = 9;
const pings = Buffer.concat(Array.from({ length: 1_000 }, () => maskedFrame('', ping)));

/** Pings on one socket, as fast as it takes them; where it is closed, on the next. */
export const pingFlood: Attack = async (target) => {
  const user = unique('pinger');
  await Promise.resolve();
  return async (deadline) => {
    let sent = 0;
    let sockets = 0;
    const begin = performance.now();
    while (!deadline.over) {
      const wire = new Wire(target, user);
      const ready = await Promise.race([wire.ready, deadline.pause(5_000)]);
      if (ready) sockets++;
      while (ready && !deadline.over && !wire.closed) {
        if (wire.socket.write(pings)) await new Promise(setImmediate);
        else
          await Promise.race([
            new Promise((done) => wire.socket.once('drain', done).once('close', done)),
            deadline.pause(deadline.left),
          ]);
      }
      sent += (wire.socket.bytesWritten - wire.socket.writableLength) / 6;
      wire.socket.destroy();
      await deadline.pause(100);
    }
    const rate = Math.round((sent * 1_000) / (performance.now() - begin));
    return {
      count: Math.round(sent),
      text: `${rate} pings/s written, on ${sockets} sockets one after the other`,
    };
  };
};

const silent = 5_000;

/** Sockets that are opened, never log in, and are opened again when they are closed. */
export const silentSockets: Attack = async (target) => {
  await Promise.resolve();
  return async (deadline) => {
    const open = new Set<Socket>();
    let accepted = 0;
    let most = 0;
    let live = 0;
    while (!deadline.over) {
      for (let i = 0; i < 200 && open.size < silent; i++) {
        let upgraded = false;
        const socket = dial(target, () => {
          open.delete(socket);
          if (upgraded) live--;
        });
        open.add(socket);
        socket.write(upgrade);
        socket.on('data', (chunk: Buffer) => {
          if (upgraded || !chunk.toString('latin1').startsWith('HTTP/1.1 101')) return;
          upgraded = true;
          accepted++;
          most = Math.max(most, ++live);
        });
      }
      await deadline.pause(20);
    }
    for (const socket of open) socket.destroy();
    return { count: accepted, text: `${accepted} sockets accepted, at most ${most} at once` };
  };
};
