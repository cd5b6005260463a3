import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';
import { createRooms } from './rooms.ts';
import type { Incoming } from './rooms.ts';

/** The limit of the transport: a bare `ws` server in memory, which encodes once and sends a string to each. */

const rooms = createRooms<WebSocket>();
const server = new WebSocketServer(
  { port: 0, host: '127.0.0.1', perMessageDeflate: false, backlog: 4_096 },
  () => {
    const address = server.address();
    if (typeof address === 'object' && address) console.log(`listening on ${address.port}`);
  },
);

server.on('connection', (socket) => {
  let name = '';
  socket.on('error', () => undefined);
  socket.on('close', () => rooms.leave(socket));
  socket.on('message', (data: Buffer) => {
    const frame = JSON.parse(data.toString()) as Incoming;
    if (frame.t === 'auth') {
      name = frame.d.name;
      rooms.join(socket, frame.d.rooms);
      socket.send('{"t":"hello","d":{}}');
    } else if (frame.t === 'message.send') {
      const { ack, event } = rooms.frames(name, frame);
      socket.send(ack);
      for (const member of rooms.members(frame.d.cid)) member.send(event);
    }
  });
});
