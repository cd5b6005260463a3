import { delivery, other } from './wire.ts';
import type { Speaker, Wire } from './wire.ts';

/** XMPP over WebSocket (RFC 7395) with group chat (XEP-0045). */

const domain = 'localhost';
const rooms = 'conference.localhost';
const open = `<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='${domain}' version='1.0'/>`;
const m = 0x6d;

const joined = new WeakMap<Speaker, number>();

function join(client: Speaker): void {
  client.send(`<presence xmlns='jabber:client'/>`);
  if (client.account.rooms.length === 0) return client.ready();
  joined.set(client, 0);
  for (const room of client.account.rooms)
    client.send(
      `<presence xmlns='jabber:client' to='${room}@${rooms}/${client.account.name}'>` +
        `<x xmlns='http://jabber.org/protocol/muc'><history maxstanzas='0'/></x></presence>`,
    );
}

export const xmppWire: Wire = {
  path: '/ws',
  subprotocol: 'xmpp',
  reflected: true,
  opened: (client) => client.send(open),
  login(client, text) {
    if (text.includes('mechanisms')) {
      const plain = Buffer.from(`\0${client.account.name}\0${client.account.secret}`).toString('base64');
      client.send(`<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>${plain}</auth>`);
    } else if (text.startsWith('<success')) client.send(open);
    else if (text.includes('urn:ietf:params:xml:ns:xmpp-bind') && text.includes('features'))
      client.send(
        `<iq xmlns='jabber:client' type='set' id='bind'>` +
          `<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>bench</resource></bind></iq>`,
      );
    else if (text.startsWith('<iq') && /id=.bind/.test(text)) join(client);
    else if (text.startsWith('<presence') && /code=.110/.test(text)) {
      const count = (joined.get(client) ?? 0) + 1;
      joined.set(client, count);
      if (count === client.account.rooms.length) client.ready();
    } else if (text.startsWith('<failure') || /type=.error/.test(text)) client.fail(text);
    else this.other(client, text);
  },
  message: (client, room, text) =>
    `<message xmlns='jabber:client' type='groupchat' to='${room}@${rooms}' id='${++client.requests}'>` +
    `<body>${text}</body></message>`,
  kind: (bytes, start) => (bytes[start + 1] === m ? delivery : other),
  other(client, text) {
    const ping =
      /^<iq[^>]*id='([^']+)'[^>]*>\s*<ping/.exec(text) ?? /^<iq[^>]*id="([^"]+)"[^>]*>\s*<ping/.exec(text);
    if (ping) client.send(`<iq xmlns='jabber:client' type='result' id='${ping[1]}'/>`);
    else if (text.startsWith('<r ')) client.send(`<a xmlns='urn:xmpp:sm:3' h='0'/>`);
  },
};
