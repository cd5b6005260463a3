/** Rooms in memory and the frames of chat.v1, for the bare peers. */

export type Incoming =
  | { t: 'auth'; d: { name: string; rooms: string[] } }
  | { t: 'message.send'; id: number; d: { cid: string; clientMsgId: string; text: string } };

export interface SendFields {
  cid: string;
  clientMsgId: string;
  text: string;
}

/** A message with every field that Parley's has, so that frames are as large. */
export const messageOf = (sender: string, fields: SendFields, seq: number) => ({
  id: `msg_01k00000000000${String(seq).padStart(12, '0')}`,
  conversationId: fields.cid,
  seq,
  senderId: sender,
  text: fields.text,
  replyTo: null,
  attachments: [],
  metadata: {},
  version: 1,
  createdAt: new Date().toISOString(),
  editedAt: null,
  deletedAt: null,
});

export function createRooms<Socket>() {
  const members = new Map<string, Set<Socket>>();
  const joined = new Map<Socket, string[]>();
  let seq = 0;
  return {
    join(socket: Socket, rooms: string[]): void {
      joined.set(socket, rooms);
      for (const room of rooms) {
        const set = members.get(room) ?? new Set<Socket>();
        members.set(room, set.add(socket));
      }
    },
    leave(socket: Socket): void {
      for (const room of joined.get(socket) ?? []) members.get(room)?.delete(socket);
      joined.delete(socket);
    },
    members: (room: string): Iterable<Socket> => members.get(room) ?? [],
    frames(sender: string, frame: Extract<Incoming, { t: 'message.send' }>): { ack: string; event: string } {
      const message = messageOf(sender, frame.d, ++seq);
      const { id, createdAt } = message;
      const d = { clientMsgId: frame.d.clientMsgId, id, seq, createdAt };
      return {
        ack: JSON.stringify({ t: 'ack', re: frame.id, d }),
        event: JSON.stringify({ t: 'event', e: 'message.new', cid: frame.d.cid, seq, d: { message } }),
      };
    },
  };
}
