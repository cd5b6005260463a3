import { realtime } from '@parley/protocol';
import type { EphemeralFrames } from '@parley/protocol';
import type { Signals } from '../../features/context.ts';

type Mark = Parameters<Signals['receipt']>[0];
type Receipt = EphemeralFrames['receipt'];

interface Entry {
  dueAt: number;
  /** What the sockets here were told last. */
  sent: Receipt;
  /** For the sockets here: marks that were moved here or elsewhere. */
  waiting: Receipt | null;
  /** For the other nodes: marks that were moved here. */
  own: Receipt | null;
}

/** At most this many (conversation, user) pairs are remembered; beyond, receipts go out at once. */
const maxEntries = 100_000;

export interface ReceiptRelayOptions {
  /** To the sockets of this node. */
  deliver(cid: string, frame: string): void;
  /** To the other nodes, whose relays hear it. */
  publish(receipt: Receipt): void;
  now(): number;
}

/**
 * SPEC 4, socket rule 5: a receipt at most once per second per (conversation, user), with a trailing edge: the last
 * value always goes out. Marks of one user may move on several nodes; each node holds back what its own sockets get, from
 * wherever it comes, so no socket gets more. `tick` is called a few times a second.
 */
export class ReceiptRelay {
  readonly #entries = new Map<string, Entry>();
  readonly #options: ReceiptRelayOptions;

  constructor(options: ReceiptRelayOptions) {
    this.#options = options;
  }

  /** A mark was moved here. */
  add({ cid, userId, lastReadSeq, lastDeliveredSeq }: Mark): void {
    const receipt = {
      cid,
      userId,
      ...(lastReadSeq === undefined ? {} : { lastReadSeq }),
      ...(lastDeliveredSeq === undefined ? {} : { lastDeliveredSeq }),
    };
    this.#take(receipt, receipt);
  }

  /** Another node published it. */
  heard(receipt: Receipt): void {
    this.#take(receipt, null);
  }

  /** Entries are in the order of their due times: each is re-entered at the end when it is sent. */
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

  /** Sends what waits, at shutdown. */
  flush(): void {
    for (const { waiting, own } of this.#entries.values()) if (waiting) this.#send(waiting, own);
    this.#entries.clear();
  }

  #take(receipt: Receipt, own: Receipt | null): void {
    const key = `${receipt.cid} ${receipt.userId}`;
    const entry = this.#entries.get(key);
    if (entry) {
      // Held back on another node, it may be overtaken.
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

/** The marks that are further than what was sent; null: none. */
function newsIn({ cid, userId, ...given }: Receipt, sent: Receipt): Receipt | null {
  const further = marks.filter((mark) => (given[mark] ?? -1) > (sent[mark] ?? -1));
  if (further.length === 0) return null;
  return { cid, userId, ...Object.fromEntries(further.map((mark) => [mark, given[mark]])) };
}

/** Both marks of both; they only move forward, whichever node's came first. */
function later(a: Receipt | null, b: Receipt): Receipt {
  if (!a) return b;
  const both = { ...a, ...b };
  for (const mark of marks)
    if (a[mark] !== undefined && b[mark] !== undefined) both[mark] = Math.max(a[mark], b[mark]);
  return both;
}
