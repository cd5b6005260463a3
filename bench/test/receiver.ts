import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { WebSocketServer } from 'ws';

/** What a real WebSocket server makes of a client's bytes. */
export const Receiver = {
  async texts(frames: Buffer[]): Promise<string[]> {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    try {
      const received: string[] = [];
      const all = new Promise<void>((resolve, reject) => {
        server.on('connection', (ws) => {
          ws.on('error', reject);
          ws.on('message', (data: Buffer) => {
            received.push(data.toString());
            if (received.length === frames.length) resolve();
          });
        });
      });
      socket.write(
        'GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
          'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n',
      );
      for (const frame of frames) socket.write(frame);
      await all;
      return received;
    } finally {
      socket.destroy();
      for (const client of server.clients) client.terminate();
      server.close();
    }
  },
};
