import { realtime } from '@parley/protocol';
import type { EphemeralFrames } from '@parley/protocol';
import type { Signals } from '../features/context.ts';

type Mark = Parameters<Signals['receipt']>[0];
type Receipt = EphemeralFrames['receipt'];

interface Entry {
  dueAt: number;
  /** What the sockets on this node were sent last. */
  sent: Receipt;
  /** Marks that still have to be sent to the sockets on this node, wherever they were moved. */
  waiting: Receipt | null;
  /** Marks moved on this node that still have to be sent to the other nodes. */
  own: Receipt | null;
}

/** At most this many (conversation, user) pairs are remembered; receipts of further ones go out at once. */
const maxEntries = 100_000;

export interface ReceiptRelayOptions {
  /** Sends to the sockets of this node. */
  deliver(cid: string, frame: string): void;
  /** Sends to the relays of the other nodes. */
  publish(receipt: Receipt): void;
  now(): number;
}

/**
 * receipts#receipt: a receipt at most once per second per (conversation, user), and the last value always goes
 * out. Marks of one user may move on several nodes. Each node delays what its own sockets get, wherever it comes
 * from, so that no socket gets more. `tick` is called a few times a second.
 */
export class ReceiptRelay {
  readonly #entries = new Map<string, Entry>();
  readonly #options: ReceiptRelayOptions;

  constructor(options: ReceiptRelayOptions) {
    this.#options = options;
  }

  /** A mark was moved on this node. */
  add({ cid, userId, lastReadSeq, lastDeliveredSeq }: Mark): void {
    const receipt = {
      cid,
      userId,
      ...(lastReadSeq === undefined ? {} : { lastReadSeq }),
      ...(lastDeliveredSeq === undefined ? {} : { lastDeliveredSeq }),
    };
    this.#take(receipt, receipt);
  }

  /** Another node published the receipt. */
  heard(receipt: Receipt): void {
    this.#take(receipt, null);
  }

  /** Entries are in the order of their due times: each is put at the end again when it is sent. */
  tick(): void {
    const now = this.#options.now();
    for (const [key, entry] of this.#entries) {
      if (entry.dueAt > now) return;
      this.#entries.delete(key);
      if (!entry.waiting) continue;
      this.#send(entry.waiting, entry.own);
      this.#remember(key, later(entry.sent, entry.waiting));
    }
  }

  /** Sends everything that waits, at shutdown. */
  flush(): void {
    for (const { waiting, own } of this.#entries.values()) if (waiting) this.#send(waiting, own);
    this.#entries.clear();
  }

  /** Forgets the marks that were sent, because they are no longer valid. */
  forget(): void {
    this.#entries.clear();
  }

  #take(receipt: Receipt, own: Receipt | null): void {
    const key = `${receipt.cid} ${receipt.userId}`;
    const entry = this.#entries.get(key);
    if (entry) {
      // A receipt that another node delayed may arrive after a newer one.
      const news = newsIn(receipt, entry.sent);
      if (!news) return;
      entry.waiting = later(entry.waiting, news);
      if (own) entry.own = later(entry.own, news);
      return;
    }
    this.#send(receipt, own);
    if (this.#entries.size < maxEntries) this.#remember(key, receipt);
  }

  #remember(key: string, sent: Receipt): void {
    const dueAt = this.#options.now() + realtime.receiptMs;
    this.#entries.set(key, { dueAt, sent, waiting: null, own: null });
  }

  #send(receipt: Receipt, own: Receipt | null): void {
    this.#options.deliver(receipt.cid, `{"t":"receipt","d":${JSON.stringify(receipt)}}`);
    if (own) this.#options.publish(own);
  }
}

const marks = ['lastReadSeq', 'lastDeliveredSeq'] as const;

/** The marks that are beyond what was sent, or null if none are. */
function newsIn({ cid, userId, ...given }: Receipt, sent: Receipt): Receipt | null {
  const further = marks.filter((mark) => (given[mark] ?? -1) > (sent[mark] ?? -1));
  if (further.length === 0) return null;
  return { cid, userId, ...Object.fromEntries(further.map((mark) => [mark, given[mark]])) };
}

/** Combines two receipts; marks only move forward, whichever came first. */
function later(a: Receipt | null, b: Receipt): Receipt {
  if (!a) return b;
  const both = { ...a, ...b };
  for (const mark of marks)
    if (a[mark] !== undefined && b[mark] !== undefined) both[mark] = Math.max(a[mark], b[mark]);
  return both;
}
