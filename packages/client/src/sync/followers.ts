import type { Clock } from '../clock.ts';
import { ParleyError } from '../errors.ts';
import type { ConversationList } from '../state/conversation-list.ts';
import type { EventFrame } from '../types.ts';
import { GapRepair } from './gap-repair.ts';

export interface FollowersOptions {
  clock: Clock;
  random(): number;
  list: ConversationList;
  fetch(cid: string, after: number): Promise<{ data: EventFrame[]; hasMore: boolean }>;
  /** Called with each event, once and in order. */
  onEvent(event: EventFrame): void;
  onError(error: ParleyError): void;
}

/**
 * For bots: the streams of all conversations without gaps, open or not. A stream begins at the stored position; for
 * conversations that exist at the very first start, at the present seq; for later ones, where the user joined.
 */
export class Followers {
  /** Positions of an earlier launch; null if there was none, so that existing events are not reported. */
  stored: Map<string, number> | null = null;
  #o: FollowersOptions;
  #streams = new Map<string, GapRepair<EventFrame>>();
  constructor(options: FollowersOptions) {
    this.#o = options;
  }

  /** The list is up to date again. */
  synced(): void {
    for (const cid of this.#o.list.ids()) {
      const lastSeq = this.#o.list.lastSeq(cid)!;
      const joined = this.#o.list.item(cid)?.lastReadSeq ?? lastSeq;
      const stream = this.#stream(cid, this.stored ? joined : lastSeq, lastSeq);
      stream.resume();
      stream.reach(lastSeq);
    }
    this.stored ??= new Map();
  }
  push(event: EventFrame): void {
    const { cid, e, d } = event;
    const joins =
      e === 'conversation.created' || (e === 'member.added' && d.userIds.includes(this.#o.list.me));
    // It is not known yet where the user joined: the sync that follows tells, and this event is read then.
    if (this.stored && !this.stored.has(cid) && !this.#streams.has(cid) && !joins) return;
    const stream = this.#stream(event.cid, event.seq - 1);
    stream.resume();
    stream.push(event);
  }
  /** The conversation is gone: reports its last event, and then no more. */
  end(event: EventFrame): void {
    const stream = this.#stream(event.cid, event.seq - 1);
    stream.push(event);
    if (stream.lastSeq < event.seq) this.#o.onEvent(event); // Earlier events can no longer be read.
    this.drop(event.cid);
  }
  pause(): void {
    for (const stream of this.#streams.values()) stream.pause();
  }
  /** The server's streams may have gone back: those that were further on continue from where the server is. */
  wentBack(): void {
    for (const [cid, at] of this.positions()) {
      const lastSeq = this.#o.list.lastSeq(cid);
      if (lastSeq !== undefined && at <= lastSeq) continue;
      this.drop(cid);
      if (lastSeq !== undefined) this.stored?.set(cid, lastSeq);
    }
  }
  drop(cid: string): void {
    this.#streams.get(cid)?.pause();
    this.#streams.delete(cid);
    this.stored?.delete(cid);
  }
  positions(): [string, number][] {
    return [...this.#streams].map(([cid, { lastSeq }]) => [cid, lastSeq]);
  }

  /**
   * @param end the seq that the server's stream has reached at least; a stored position may be from a time that the
   * server has lost.
   */
  #stream(cid: string, from: number, end = from): GapRepair<EventFrame> {
    let stream = this.#streams.get(cid);
    if (stream) return stream;
    const { clock, random, list, fetch, onEvent, onError } = this.#o;
    stream = new GapRepair<EventFrame>(
      {
        clock,
        random,
        fetch: (after) => fetch(cid, after),
        reload: () => {
          onError(
            new ParleyError('resync_required', `Events of ${cid} were missed: they are no longer kept.`),
          );
          return Promise.resolve(() => list.lastSeq(cid) ?? 0);
        },
        apply: onEvent,
        onProgress() {},
        onGone: () => this.drop(cid),
      },
      Math.min(this.stored?.get(cid) ?? from, end),
    );
    this.#streams.set(cid, stream);
    return stream;
  }
}
