import { ack, delivery, failure, other } from './wire.ts';
import type { Wire } from './wire.ts';

/** chat.v1 (socket#envelopes), and the same frames as the bare peers speak them. */

const a = 0x61;
const e = 0x65;
const v = 0x76;
/** Of this process; counted on over all sockets, so that no clientMsgId comes twice and is taken for a duplicate. */
const run = `${Date.now().toString(16)}-${process.pid.toString(16)}`;
let sent = 0;

const chat: Omit<Wire, 'path' | 'opened' | 'login'> = {
  subprotocol: 'chat.v1',
  reflected: false,
  message(client, room, text) {
    const id = ++client.requests;
    return `{"t":"message.send","id":${id},"d":{"cid":"${room}","clientMsgId":"${run}-${++sent}","text":"${text}"}}`;
  },
  // `{"t":"ack"`, `{"t":"event"`, `{"t":"error"`
  kind(bytes, start) {
    const letter = bytes[start + 6];
    if (letter === e) return bytes[start + 7] === v ? delivery : failure;
    return letter === a ? ack : other;
  },
  other(client, text) {
    if (text.startsWith('{"t":"hb"')) client.send('{"t":"hb"}');
  },
};

export const parleyWire: Wire = {
  ...chat,
  path: '/v1?sdk=bench/1',
  opened: (client) => client.send(`{"t":"auth","d":{"token":"${client.account.secret}"}}`),
  login(client, text) {
    if (text.startsWith('{"t":"hello"')) client.send('{"t":"sync","id":0,"d":{"cursor":null}}');
    else if (text.startsWith('{"t":"ack","re":0')) client.ready();
    else if (text.startsWith('{"t":"error"')) client.fail(text);
  },
};

export const plainWire: Wire = {
  ...chat,
  path: '/',
  opened: (client) =>
    client.send(JSON.stringify({ t: 'auth', d: { name: client.account.name, rooms: client.account.rooms } })),
  login(client, text) {
    if (text.startsWith('{"t":"hello"')) client.ready();
  },
};
