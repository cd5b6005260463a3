import { ack, delivery, other } from './wire.ts';
import type { Wire } from './wire.ts';

/** Socket.IO protocol 5 over Engine.IO 4, WebSocket transport from the start. */

const two = 0x32;
const three = 0x33;
const four = 0x34;

export const socketIoWire: Wire = {
  path: '/socket.io/?EIO=4&transport=websocket',
  subprotocol: null,
  reflected: false,
  opened: () => undefined,
  login(client, text) {
    if (text.startsWith('0'))
      client.send(`40${JSON.stringify({ name: client.account.name, rooms: client.account.rooms })}`);
    else if (text.startsWith('42["hello"')) client.ready();
    else if (text.startsWith('44')) client.fail(text);
    else this.other(client, text);
  },
  message(client, room, text) {
    const id = ++client.requests;
    return `42${id}["message.send",{"cid":"${room}","clientMsgId":"${client.number}-${id}","text":"${text}"}]`;
  },
  kind(bytes, start) {
    if (bytes[start] !== four) return other;
    return bytes[start + 1] === two ? delivery : bytes[start + 1] === three ? ack : other;
  },
  other(client, text) {
    if (text === '2') client.send('3');
  },
};
