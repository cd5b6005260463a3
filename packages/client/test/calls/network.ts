import { createSocket } from 'node:dgram';
import type { Socket as Datagrams } from 'node:dgram';
import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';
import { once } from 'node:events';

/**
 * A network between browsers and the service that can be cut: proxies of its chat port (TCP) and of its media ports (UDP). While it is
 * cut, datagrams are lost and streams stand still, as they do when packets are dropped.
 */
export interface Network {
  /** Of chat, behind the proxy. */
  url: string;
  /** Added to a media port it gives that of its proxy. */
  offset: number;
  cut(): void;
  mend(): void;
  close(): void;
}

export async function startNetwork(to: {
  chat: number;
  media: { first: number; count: number };
  /** The first of as many free ports as there are media ports. */
  port: number;
}): Promise<Network> {
  let isCut = false;
  const streams = new Set<Socket>();
  const datagrams: Datagrams[] = [];

  const chat = createServer((client) => {
    const server = connect(to.chat, '127.0.0.1');
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      streams.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        streams.delete(one);
        other.destroy();
      });
      one.pipe(other);
      if (isCut) one.pause();
    }
  });
  chat.listen(0, '127.0.0.1');
  await once(chat, 'listening');

  for (let i = 0; i < to.media.count; i++) {
    const outside = createSocket('udp4');
    datagrams.push(outside);
    /** By client, its way to the media server. */
    const inside = new Map<string, Datagrams>();
    outside.on('message', (packet, { address, port }) => {
      if (isCut) return;
      const key = `${address}:${port}`;
      let way = inside.get(key);
      if (!way) {
        way = createSocket('udp4');
        inside.set(key, way);
        datagrams.push(way);
        way.on('message', (back) => {
          if (!isCut) outside.send(back, port, address);
        });
      }
      way.send(packet, to.media.first + i, '127.0.0.1');
    });
    outside.bind(to.port + i, '127.0.0.1');
    await once(outside, 'listening');
  }

  const { port } = chat.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    offset: to.port - to.media.first,
    cut: () => {
      isCut = true;
      for (const stream of streams) stream.pause();
    },
    mend: () => {
      isCut = false;
      for (const stream of streams) stream.resume();
    },
    close: () => {
      chat.close();
      for (const stream of streams) stream.destroy();
      for (const socket of datagrams) socket.close();
    },
  };
}
