import { realtime } from '@parley/protocol';
import type { EphemeralFrames } from '@parley/protocol';
import type { Signals } from '../../features/context.ts';

type Mark = Parameters<Signals['receipt']>[0];

interface Entry {
  dueAt: number;
  waiting: Mark | null;
}

/** At most this many (conversation, user) pairs are remembered; beyond, receipts go out at once. */
const maxEntries = 100_000;

/**
 * SPEC 4, socket rule 5: a receipt at most once per second per (conversation, user), with a trailing edge: the last
 * value always goes out. `tick` is called a few times a second.
 */
export class ReceiptRelay {
  readonly #entries = new Map<string, Entry>();
  readonly #relay: (cid: string, frame: string) => void;
  readonly #now: () => number;

  constructor(relay: (cid: string, frame: string) => void, now: () => number) {
    this.#relay = relay;
    this.#now = now;
  }

  add(mark: Mark): void {
    const key = `${mark.cid} ${mark.user}`;
    const entry = this.#entries.get(key);
    if (entry) {
      entry.waiting = { ...entry.waiting, ...mark };
      return;
    }
    this.#send(mark);
    if (this.#entries.size < maxEntries)
      this.#entries.set(key, { dueAt: this.#now() + realtime.receiptMs, waiting: null });
  }

  /** Entries are in the order of their due times: each is re-entered at the end when it is sent. */
  tick(): void {
    const now = this.#now();
    for (const [key, entry] of this.#entries) {
      if (entry.dueAt > now) return;
      this.#entries.delete(key);
      if (!entry.waiting) continue;
      this.#send(entry.waiting);
      this.#entries.set(key, { dueAt: now + realtime.receiptMs, waiting: null });
    }
  }

  /** Sends what waits, at shutdown. */
  flush(): void {
    for (const entry of this.#entries.values()) if (entry.waiting) this.#send(entry.waiting);
    this.#entries.clear();
  }

  #send({ cid, userId, lastReadSeq, lastDeliveredSeq }: Mark): void {
    const d: EphemeralFrames['receipt'] = {
      cid,
      userId,
      ...(lastReadSeq === undefined ? {} : { lastReadSeq }),
      ...(lastDeliveredSeq === undefined ? {} : { lastDeliveredSeq }),
    };
    this.#relay(cid, `{"t":"receipt","d":${JSON.stringify(d)}}`);
  }
}
