import { part } from './frames.ts';
import type { WireFrame } from './wire.ts';

/** A message on its way between people. */
export interface Passage {
  key: string;
  /** The index of the sender. */
  from: number;
  /** Null until the service has numbered it. */
  seq: number | null;
  /** The indexes of the others whose socket has brought it. */
  heard: readonly number[];
}

interface Side {
  userId: string;
  frames: readonly WireFrame[];
}

const maxPassages = 6;

/** The messages of one conversation in the order of the service, from the sockets of these people. */
export function passagesOf(cid: string, people: readonly Side[]): Passage[] {
  const numbered = new Map<number, { from: number; heard: Set<number> }>();
  const waiting = new Map<string, Passage>();
  /** The delivery mark of each person, from receipts: also for messages from before this page was open. */
  const heardTo = people.map(() => 0);
  const numberOf = (seq: number, from: number): Set<number> => {
    const known = numbered.get(seq) ?? { from, heard: new Set() };
    numbered.set(seq, known);
    return known.heard;
  };
  people.forEach(({ frames }, side) => {
    for (const { way, data } of frames) {
      const d = part(data['d']);
      const clientMsgId = String(d['clientMsgId']);
      if (way === 'out' && data['t'] === 'message.send' && d['cid'] === cid)
        waiting.set(clientMsgId, { key: clientMsgId, from: side, seq: null, heard: [] });
      else if (data['t'] === 'ack' && waiting.has(clientMsgId)) {
        waiting.delete(clientMsgId);
        numberOf(Number(d['seq']), side);
      } else if (data['t'] === 'receipt' && d['cid'] === cid) {
        const reader = people.findIndex(({ userId }) => userId === d['userId']);
        const seqs = [d['lastReadSeq'], d['lastDeliveredSeq']].map((seq) => Number(seq ?? 0));
        if (reader >= 0) heardTo[reader] = Math.max(heardTo[reader]!, ...seqs);
      } else if (data['e'] === 'message.new' && data['cid'] === cid) {
        const from = people.findIndex(({ userId }) => userId === part(d['message'])['senderId']);
        if (from < 0) continue;
        const heard = numberOf(Number(data['seq']), from);
        if (from !== side) heard.add(side);
      }
    }
  });
  const inOrder = [...numbered]
    .sort(([x], [y]) => x - y)
    .map(([seq, { from, heard }]) => ({
      key: String(seq),
      from,
      seq,
      heard: people.flatMap((_, i) => (i !== from && (heard.has(i) || heardTo[i]! >= seq) ? [i] : [])),
    }));
  return [...inOrder, ...waiting.values()].slice(-maxPassages);
}
