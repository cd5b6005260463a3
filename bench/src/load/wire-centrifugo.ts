import { ack, delivery, failure, other } from './wire.ts';
import type { Wire } from './wire.ts';

/** Centrifugo's protocol in JSON: one frame can carry several messages, each on a line of its own. */

const comma = 0x2c;
const e = 0x65;
const i = 0x69;
const p = 0x70;

export const centrifugoWire: Wire = {
  path: '/connection/websocket',
  subprotocol: null,
  reflected: false,
  lines: true,
  opened: (client) => client.send(`{"id":1,"connect":{"token":"${client.account.secret}"}}`),
  login(client, text) {
    if (text.startsWith('{"id":1,"connect"')) {
      client.requests = 1;
      client.ready();
    } else if (text.includes('"error"')) client.fail(text);
  },
  message(client, room, text) {
    return `{"id":${++client.requests},"publish":{"channel":"${room}","data":{"text":"${text}"}}}`;
  },
  // `{"push":`, `{"id":7,"publish"`, `{"id":7,"error"`
  kind(bytes, start) {
    const letter = bytes[start + 2];
    if (letter === p) return delivery;
    if (letter !== i) return other;
    let at = start + 6;
    while (bytes[at] !== comma && at < start + 20) at++;
    return bytes[at + 2] === e ? failure : ack;
  },
  other(client, text) {
    if (text === '{}') client.send('{}');
  },
};
