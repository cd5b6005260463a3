import { useMemo, useSyncExternalStore } from 'react';
import type { Client, ConversationEvent, Member } from '@parley/client';
import { useClient } from './context.ts';

const pageSize = 200;
/** A group has up to 500 members. */
const maxPages = 3;
const maxRequests = 2;
const maxKept = 500;
const nobody: readonly Member[] = [];

interface Interest {
  changed: () => void;
  /** Whether marks that moved while there was no connection matter. */
  marks: boolean;
}

/**
 * Members and marks of conversations that need not be open, for rows of a list. A conversation is asked for once, two at
 * a time; events keep it up to date. After a lost connection only those are asked for again that show a receipt.
 * States of a conversation: unknown --asked--> waiting --answer--> known --reconnect, marks wanted--> waiting.
 */
class Rosters {
  #client: Client;
  #known = new Map<string, readonly Member[]>();
  #interests = new Map<string, Set<Interest>>();
  #waiting = new Set<string>();
  #running = 0;
  #offs: (() => void)[] = [];
  #lost = false;
  constructor(client: Client) {
    this.#client = client;
  }
  get = (id: string): readonly Member[] => this.#known.get(id) ?? nobody;
  subscribe(id: string, interest: Interest): () => void {
    if (this.#interests.size === 0) this.#start();
    const own = this.#interests.get(id) ?? new Set();
    this.#interests.set(id, own.add(interest));
    if (!this.#known.has(id)) this.#ask(id);
    return () => {
      own.delete(interest);
      if (own.size === 0 && this.#interests.get(id) === own) this.#interests.delete(id);
      if (this.#interests.size === 0) this.#stop();
    };
  }
  #start(): void {
    const { on } = this.#client;
    this.#offs = [
      on('receipt', ({ conversationId, userId, lastReadSeq = 0, lastDeliveredSeq = 0 }) =>
        this.#mark(conversationId, userId, lastReadSeq, lastDeliveredSeq),
      ),
      on('event', (event) => this.#event(event)),
      on('state', ({ state }) => {
        if (state !== 'connected') this.#lost = true;
        else if (this.#lost) this.#again();
      }),
    ];
  }
  /** Without a listener nothing is kept up to date, so nothing is kept. */
  #stop(): void {
    for (const off of this.#offs.splice(0)) off();
    this.#known.clear();
    this.#waiting.clear();
    this.#lost = false;
  }
  #again(): void {
    this.#lost = false;
    for (const [id, interests] of this.#interests)
      if (!this.#known.has(id) || [...interests].some(({ marks }) => marks)) this.#ask(id);
  }
  #ask(id: string): void {
    this.#waiting.add(id);
    this.#next();
  }
  #next(): void {
    for (const id of this.#waiting) {
      if (this.#running >= maxRequests) return;
      this.#waiting.delete(id);
      if (!this.#interests.has(id)) continue;
      this.#running++;
      this.#load(id)
        .catch(() => undefined) // The next connection asks again; a conversation that is gone leaves the list.
        .finally(() => {
          this.#running--;
          this.#next();
        });
    }
  }
  async #load(id: string): Promise<void> {
    const members: Member[] = [];
    let cursor: string | null | undefined;
    for (let page = 0; page < maxPages && cursor !== null; page++) {
      const path = `/conversations/${encodeURIComponent(id)}/members`;
      const query = { limit: pageSize, cursor };
      const answer = await this.#client.wire.http<{ data: Member[]; nextCursor: string | null }>(
        'GET',
        path,
        { query },
      );
      members.push(...answer.data);
      cursor = answer.nextCursor;
    }
    // Marks only move forward: newer marks from receipts stay.
    const before = new Map(this.get(id).map((member) => [member.userId, member]));
    this.#set(
      id,
      members.map((member) => raised(member, before.get(member.userId))),
    );
  }
  #event({ conversationId, type, data, seq }: ConversationEvent): void {
    const members = this.#known.get(conversationId);
    if (!members) return;
    if (type === 'message.new') {
      const { senderId } = data.message;
      if (senderId !== null) this.#mark(conversationId, senderId, seq, 0);
    } else if (type === 'member.removed')
      this.#set(
        conversationId,
        members.filter(({ userId }) => userId !== data.userId),
      );
    else if (type === 'member.added') {
      const added = data.userIds.filter((id) => !members.some(({ userId }) => userId === id));
      const one = (userId: string): Member => ({
        userId,
        role: 'member',
        lastReadSeq: seq,
        lastDeliveredSeq: 0,
      });
      this.#set(conversationId, [...members, ...added.map(one)]);
    }
  }
  #mark(id: string, userId: string, lastReadSeq: number, lastDeliveredSeq: number): void {
    const members = this.#known.get(id);
    const mark = { lastReadSeq, lastDeliveredSeq };
    if (members)
      this.#set(
        id,
        members.map((m) => (m.userId === userId ? raised(m, mark) : m)),
      );
    // The answer that is on its way may be older than this mark.
    else if (this.#interests.has(id)) this.#ask(id);
  }
  #set(id: string, members: readonly Member[]): void {
    if (!this.#interests.has(id)) return;
    this.#known.delete(id);
    this.#known.set(id, members);
    if (this.#known.size > maxKept) this.#known.delete(this.#known.keys().next().value!);
    for (const { changed } of [...(this.#interests.get(id) ?? [])]) changed();
  }
}

const raised = (
  member: Member,
  mark: Pick<Member, 'lastReadSeq' | 'lastDeliveredSeq'> | undefined,
): Member => ({
  ...member,
  lastReadSeq: Math.max(member.lastReadSeq, mark?.lastReadSeq ?? 0),
  lastDeliveredSeq: Math.max(member.lastDeliveredSeq, mark?.lastDeliveredSeq ?? 0),
});

const all = new WeakMap<Client, Rosters>();
const initial = (): readonly Member[] => nobody;

/**
 * The members of a conversation that need not be open; empty until they are known, and with null as its id.
 * @param marks whether what they have read matters: it is then asked for again after a lost connection.
 */
export function useRoster(id: string | null, marks = false): readonly Member[] {
  const client = useClient();
  const subscribe = useMemo(() => {
    let rosters = all.get(client);
    if (!rosters) all.set(client, (rosters = new Rosters(client)));
    return (changed: () => void) =>
      id === null ? () => undefined : rosters.subscribe(id, { changed, marks });
  }, [client, id, marks]);
  return useSyncExternalStore(
    subscribe,
    () => (id === null ? nobody : (all.get(client)?.get(id) ?? nobody)),
    initial,
  );
}
