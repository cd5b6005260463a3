import type { Clock } from '../clock.ts';
import { backoff } from '../connection/backoff.ts';
import { asError, isTransient, ParleyError } from '../errors.ts';
import type { ErrorInfo } from '../errors.ts';
import type { Draft, OutboxEntry, Storage } from './storage.ts';

export interface SendResult {
  id: string;
  seq: number;
  createdAt: string;
}

export interface OutboxOptions {
  storage: Storage;
  clock: Clock;
  random(): number;
  newId(): string;
  /** Makes one attempt; rejects with `disconnected` if there is no connection. */
  send(entry: OutboxEntry): Promise<SendResult>;
  onChange(conversationId: string): void;
  /** The entry was sent, or failed. */
  onEnd(entry: OutboxEntry): void;
  onError(error: ParleyError): void;
}

export const resendWindowMs = 24 * 3_600_000;
const keepSentMs = 60_000;
const maxEntries = 1_000;

const live = (entry: OutboxEntry) => entry.status === 'pending' || entry.status === 'failed';
const inOrder = (a: OutboxEntry, b: OutboxEntry) =>
  a.createdAt - b.createdAt || a.order - b.order || (a.clientMsgId < b.clientMsgId ? -1 : 1);

/**
 * Messages on their way: one queue per conversation, and one message in flight per queue.
 *
 *   pending --acked--> sent --seen in the stream--> (gone)
 *   pending --transient error--> pending after a delay;  --connection lost--> pending until online
 *   pending --final error, or 24 h old--> failed --retry--> pending
 *   pending (not in flight) | failed --discard--> discarded
 *
 * A failed entry holds back all later ones of its conversation, which show as failed with `blocked`.
 */
export class Outbox {
  #o: OutboxOptions;
  #queues = new Map<string, OutboxEntry[]>();
  #prefix: string | null = null;
  #online = false;
  #epoch = 0;
  #order = 0;
  #flushing = new Set<string>();
  #inFlight = new Map<string, OutboxEntry>();
  #sleepers = new Map<() => void, unknown>();
  #writes: Promise<unknown> = Promise.resolve();
  #changes = 0;

  constructor(options: OutboxOptions) {
    this.#o = options;
  }

  /** The user is known: loads what the user left unsent; from now on everything is stored. */
  async open(prefix: string): Promise<void> {
    if (this.#prefix) return void (await this.#writes);
    this.#prefix = prefix;
    for (const entry of this.#all()) this.#store(entry);
    const ids = new Set<string>();
    for (const record of await this.#list(prefix)) {
      ids.add(record.conversationId);
      this.#adopt(record);
    }
    for (const entry of this.#all()) this.#expire(entry);
    for (const id of ids) {
      this.#o.onChange(id);
      this.flush(id);
    }
    await this.#writes;
  }

  online(): void {
    this.#online = true;
    this.#epoch++;
    for (const conversationId of this.#queues.keys()) this.flush(conversationId);
  }

  offline(): void {
    this.#online = false;
    this.#epoch++;
    for (const [wake, handle] of this.#sleepers) {
      this.#o.clock.clearTimeout(handle);
      wake();
    }
    this.#sleepers.clear();
  }

  add(conversationId: string, draft: Draft): OutboxEntry {
    if (this.#all().length >= maxEntries) throw new ParleyError('outbox_full');
    const queue = this.#queue(conversationId);
    const entry: OutboxEntry = {
      clientMsgId: this.#o.newId(),
      conversationId,
      draft,
      createdAt: Math.max(this.#o.clock.now(), queue.at(-1)?.createdAt ?? 0),
      order: this.#order++,
      status: 'pending',
    };
    entry.since = entry.createdAt;
    queue.push(entry);
    this.#changed(entry);
    this.flush(conversationId);
    return entry;
  }

  /** Tries a failed entry again; to free a blocked entry, retry those before it. */
  retry(clientMsgId: string): boolean {
    const entry = this.#find(clientMsgId);
    if (!entry || !this.errorOf(entry)) return false;
    void this.#retry(entry);
    return true;
  }

  /** Gives up a message that is not in flight; returns false if it is too late. */
  discard(clientMsgId: string): boolean {
    const entry = this.#find(clientMsgId);
    if (!entry || !live(entry) || this.#inFlight.get(entry.conversationId) === entry) return false;
    this.#end(entry, 'discarded');
    this.flush(entry.conversationId);
    return true;
  }

  entries(conversationId: string): readonly OutboxEntry[] {
    return this.#queues.get(conversationId) ?? [];
  }

  inFlight(conversationId: string): OutboxEntry | undefined {
    return this.#inFlight.get(conversationId);
  }

  conversationsInFlight(): string[] {
    return [...this.#inFlight.keys()];
  }

  /** Why an entry is not being sent: its own error, or that of an earlier entry. */
  errorOf(entry: OutboxEntry): ErrorInfo | undefined {
    if (entry.status === 'failed') return entry.error;
    if (entry.status !== 'pending') return undefined;
    for (const other of this.#queue(entry.conversationId)) {
      if (other === entry) return undefined;
      if (other.status === 'failed') return { code: 'blocked', message: 'An earlier message failed.' };
    }
    return undefined;
  }

  /** The stream has shown everything up to `seq`, so sent entries up to there are done. */
  seen(conversationId: string, seq: number): void {
    const queue = this.#queue(conversationId);
    const rest = queue.filter((entry) => entry.status !== 'sent' || entry.seq! > seq);
    if (rest.length === queue.length) return;
    this.#queues.set(conversationId, rest);
    this.#o.onChange(conversationId);
  }

  flush(conversationId: string): void {
    if (!this.#online || this.#prefix === null || this.#flushing.has(conversationId)) return;
    if (!this.#next(conversationId)) return;
    void this.#flush(conversationId);
  }

  async #retry(entry: OutboxEntry): Promise<void> {
    if (this.#prefix !== null) await this.#merge(entry.conversationId); // Another tab may have discarded the entry.
    const queue = this.#queue(entry.conversationId);
    for (const earlier of queue.slice(0, queue.indexOf(entry) + 1)) {
      if (earlier.status !== 'failed') continue;
      earlier.status = 'pending';
      earlier.since = this.#o.clock.now();
      delete earlier.error;
      this.#changed(earlier);
    }
    this.flush(entry.conversationId);
  }

  async #flush(conversationId: string): Promise<void> {
    this.#flushing.add(conversationId);
    const epoch = this.#epoch;
    const drain = () => this.#drain(conversationId, epoch);
    const { lock } = this.#o.storage;
    let ran = false;
    try {
      if (lock)
        await lock(`${this.#prefix}${conversationId}`, () => {
          ran = true;
          return drain();
        });
      else await drain();
    } catch (e) {
      this.#o.onError(asError(e));
      if (!ran) await drain(); // If the storage cannot lock, messages are sent nevertheless.
    }
    this.#flushing.delete(conversationId);
    this.flush(conversationId);
  }

  async #drain(conversationId: string, epoch: number): Promise<void> {
    for (let tries = 0; ;) {
      await this.#merge(conversationId);
      const head = this.#next(conversationId);
      if (epoch !== this.#epoch || !head || this.#expire(head)) return;
      this.#inFlight.set(conversationId, head);
      try {
        const { id, seq, createdAt } = await this.#o.send(head);
        Object.assign(head, { id, seq, sentAt: createdAt });
        this.#inFlight.delete(conversationId);
        this.#end(head, 'sent');
        this.#o.onEnd(head);
        tries = 0;
      } catch (e) {
        this.#inFlight.delete(conversationId);
        const error = asError(e);
        if (error.code === 'disconnected') {
          if (epoch === this.#epoch) await this.#sleep(1_000);
        } else if (isTransient(error)) {
          if (epoch === this.#epoch)
            await this.#sleep(Math.max(error.retryAfterMs ?? 0, backoff(tries++, this.#o.random)));
        } else {
          const { code, message, retryAfterMs } = error;
          this.#fail(head, retryAfterMs ? { code, message, retryAfterMs } : { code, message });
        }
      }
      await this.#writes;
    }
  }

  /** The next entry to send, unless a failed one stands before it. */
  #next(conversationId: string): OutboxEntry | undefined {
    const head = this.#queue(conversationId).find(live);
    return head?.status === 'pending' ? head : undefined;
  }

  /** Takes over what other tabs wrote about this conversation. */
  async #merge(conversationId: string): Promise<void> {
    let records: OutboxEntry[];
    let changes: number;
    do {
      changes = this.#changes; // A list without a change that was made here meanwhile would undo that change.
      await this.#writes;
      records = await this.#list(`${this.#prefix}${conversationId}/`);
    } while (changes !== this.#changes);
    const before = JSON.stringify(this.entries(conversationId));
    const known = new Set<string>();
    for (const record of records) {
      known.add(record.clientMsgId);
      this.#adopt(record);
    }
    for (const entry of this.entries(conversationId))
      if (live(entry) && !known.has(entry.clientMsgId)) this.#store(entry);
    if (JSON.stringify(this.entries(conversationId)) !== before) this.#o.onChange(conversationId);
  }

  #adopt(record: OutboxEntry): void {
    const keepMs = record.status === 'sent' ? keepSentMs : resendWindowMs;
    if (!live(record) && this.#o.clock.now() - (record.endedAt ?? 0) > keepMs) this.#forget(record);
    const queue = this.#queue(record.conversationId);
    const mine = queue.find((entry) => entry.clientMsgId === record.clientMsgId);
    if (mine && live(mine)) {
      if (record.status !== 'failed') delete mine.error;
      Object.assign(mine, record);
      if (record.status === 'discarded') queue.splice(queue.indexOf(mine), 1);
    } else if (!mine && live(record)) {
      queue.push(record);
      queue.sort(inOrder);
    }
  }

  #expire(entry: OutboxEntry): boolean {
    const old = entry.status === 'pending' && this.#o.clock.now() - (entry.since ?? 0) > resendWindowMs;
    if (old) this.#fail(entry, { code: 'expired', message: 'Not sent within 24 hours.' });
    return old;
  }

  #fail(entry: OutboxEntry, error: ErrorInfo): void {
    entry.status = 'failed';
    entry.error = error;
    this.#changed(entry);
    this.#o.onEnd(entry);
  }

  #end(entry: OutboxEntry, status: 'sent' | 'discarded'): void {
    entry.status = status;
    entry.endedAt = this.#o.clock.now();
    const queue = this.#queue(entry.conversationId);
    if (status === 'discarded') queue.splice(queue.indexOf(entry), 1);
    if (this.#o.storage.lock) this.#store(entry);
    else this.#forget(entry);
    this.#o.onChange(entry.conversationId);
  }

  #changed(entry: OutboxEntry): void {
    this.#store(entry);
    this.#o.onChange(entry.conversationId);
  }

  #queue(conversationId: string): OutboxEntry[] {
    let queue = this.#queues.get(conversationId);
    if (!queue) this.#queues.set(conversationId, (queue = []));
    return queue;
  }

  #all(): OutboxEntry[] {
    return [...this.#queues.values()].flat();
  }

  #find(clientMsgId: string): OutboxEntry | undefined {
    return this.#all().find((entry) => entry.clientMsgId === clientMsgId);
  }

  #key = (entry: OutboxEntry): string => `${this.#prefix}${entry.conversationId}/${entry.clientMsgId}`;

  #store(entry: OutboxEntry): void {
    if (!this.#prefix) return;
    const [key, value] = [this.#key(entry), structuredCopy(entry)];
    this.#write(() => this.#o.storage.set(key, value));
  }

  #forget(entry: OutboxEntry): void {
    const key = this.#key(entry);
    this.#write(() => this.#o.storage.delete(key));
  }

  #write(fn: () => Promise<void>): void {
    this.#changes++;
    this.#writes = this.#writes.then(fn).catch((e: unknown) => this.#o.onError(asError(e)));
  }

  async #list(prefix: string): Promise<OutboxEntry[]> {
    try {
      return (await this.#o.storage.list(prefix)) as OutboxEntry[];
    } catch (e) {
      this.#o.onError(asError(e));
      return [];
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const handle = this.#o.clock.setTimeout(() => {
        this.#sleepers.delete(resolve);
        resolve();
      }, ms);
      this.#sleepers.set(resolve, handle);
    });
  }
}

const structuredCopy = (entry: OutboxEntry): OutboxEntry => JSON.parse(JSON.stringify(entry)) as OutboxEntry;
