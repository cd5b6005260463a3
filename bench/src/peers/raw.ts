import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { createRooms } from './rooms.ts';
import type { Incoming } from './rooms.ts';

/** The limit of fan-out: frames built once as bytes, and what one turn of the event loop brings a socket is one write. */

interface Socket {
  stream: Duplex;
  waiting: Buffer[];
}

const rooms = createRooms<Socket>();
const dirty: Socket[] = [];

function textFrame(payload: string): Buffer {
  const length = Buffer.byteLength(payload);
  if (length > 65_535) throw new Error('too large');
  const head = length < 126 ? 2 : 4;
  const frame = Buffer.allocUnsafe(head + length);
  frame[0] = 0x81;
  frame[1] = head === 2 ? length : 126;
  if (head === 4) frame.writeUInt16BE(length, 2);
  frame.write(payload, head);
  return frame;
}

function push(socket: Socket, frame: Buffer): void {
  if (socket.waiting.length === 0) {
    if (dirty.length === 0) setImmediate(flush);
    dirty.push(socket);
  }
  socket.waiting.push(frame);
}

function flush(): void {
  for (const socket of dirty.splice(0)) {
    const frames = socket.waiting;
    socket.waiting = [];
    socket.stream.write(frames.length === 1 ? frames[0]! : Buffer.concat(frames));
  }
}

const websockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
const server = createServer();
server.on('upgrade', (request, stream, head) => {
  websockets.handleUpgrade(request, stream, head, (ws) => {
    const socket: Socket = { stream, waiting: [] };
    let name = '';
    ws.on('error', () => undefined);
    ws.on('close', () => rooms.leave(socket));
    ws.on('message', (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as Incoming;
      if (frame.t === 'auth') {
        name = frame.d.name;
        rooms.join(socket, frame.d.rooms);
        push(socket, textFrame('{"t":"hello","d":{}}'));
      } else if (frame.t === 'message.send') {
        const { ack, event } = rooms.frames(name, frame);
        push(socket, textFrame(ack));
        const bytes = textFrame(event);
        for (const member of rooms.members(frame.d.cid)) push(member, bytes);
      }
    });
  });
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () =>
  console.log(`listening on ${(server.address() as AddressInfo).port}`),
);
