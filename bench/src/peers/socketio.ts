import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { Server } from 'socket.io';
import { messageOf } from './rooms.ts';
import type { SendFields } from './rooms.ts';

/**
 * A Socket.IO server as people write it by hand: a message is stored, then acknowledged and sent to the room.
 * `row`: one INSERT each, through a pool. `group`: all that arrive while a commit is under way go into the next one.
 */

const mode = process.argv[2];
const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 10 });
pool.on('error', () => undefined);

interface Item {
  sender: string;
  fields: SendFields;
  done: (no: number) => void;
}

const maxBatch = 1_000;
const queue: Item[] = [];
let flushing = false;

async function flush(): Promise<void> {
  flushing = true;
  while (queue.length > 0) {
    const items = queue.splice(0, maxBatch);
    const { rows } = await pool.query<{ no: string }>({
      name: 'group',
      text: `INSERT INTO messages (room, sender, client_msg_id, text)
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) RETURNING no`,
      values: [
        items.map((i) => i.fields.cid),
        items.map((i) => i.sender),
        items.map((i) => i.fields.clientMsgId),
        items.map((i) => i.fields.text),
      ],
    });
    items.forEach((item, i) => item.done(Number(rows[i]!.no)));
  }
  flushing = false;
}

async function store(sender: string, fields: SendFields): Promise<number> {
  if (mode === 'group')
    return new Promise((done) => {
      queue.push({ sender, fields, done });
      if (!flushing) void flush();
    });
  const { rows } = await pool.query<{ no: string }>({
    name: 'row',
    text: 'INSERT INTO messages (room, sender, client_msg_id, text) VALUES ($1, $2, $3, $4) RETURNING no',
    values: [fields.cid, sender, fields.clientMsgId, fields.text],
  });
  return Number(rows[0]!.no);
}

const http = createServer();
const io = new Server(http, { transports: ['websocket'], perMessageDeflate: false, serveClient: false });

io.on('connection', (socket) => {
  const { name, rooms } = socket.handshake.auth as { name: string; rooms: string[] };
  void socket.join(rooms);
  socket.emit('hello', {});
  socket.on('message.send', (fields: SendFields, acknowledge: (answer: object) => void) => {
    void store(name, fields).then((seq) => {
      const message = messageOf(name, fields, seq);
      acknowledge({ clientMsgId: fields.clientMsgId, id: message.id, seq, createdAt: message.createdAt });
      io.to(fields.cid).emit('message.new', { cid: fields.cid, seq, d: { message } });
    });
  });
});

http.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () =>
  console.log(`listening on ${(http.address() as AddressInfo).port}`),
);
