import { Derived } from '../store.ts';
import type { EphemeralFrames, EventFrame, Member } from '../types.ts';

const maxMembers = 1_000;

type Receipt = EphemeralFrames['receipt'];

/**
 * Members of an open conversation with their marks. Marks only move forward (sdk#delivered), so receipts and list
 * pages may arrive in any order. Events that arrive during a load are applied after it.
 */
export class Members {
  readonly store: Derived<readonly Member[]>;
  #members: Map<string, Member> | null = null;
  #marks = new Map<string, { read: number; delivered: number }>();
  #log: EventFrame[] | null = null;
  /** True if somebody asked for the members, and they are not known, or some of their events may have been missed. */
  stale = false;
  constructor() {
    this.store = new Derived(() => [...(this.#members?.values() ?? [])]);
  }
  async load(
    page: (cursor?: string) => Promise<{ data: Member[]; nextCursor: string | null }>,
  ): Promise<readonly Member[]> {
    const log: EventFrame[] = (this.#log = []);
    this.stale = false;
    const members: Member[] = [];
    try {
      let cursor: string | null = null;
      do {
        const { data, nextCursor } = await page(cursor ?? undefined);
        members.push(...data);
        cursor = nextCursor;
      } while (cursor !== null && members.length < maxMembers);
    } catch (e) {
      this.stale = true; // A refused user may be added later; a lost network comes back.
      throw e;
    }
    if (this.#log !== log) return this.store.get(); // A later load has taken over.
    this.#members = new Map(members.map((m) => [m.userId, m]));
    for (const { userId, lastReadSeq, lastDeliveredSeq } of members)
      this.#raise(userId, lastReadSeq, lastDeliveredSeq);
    this.#log = null;
    for (const event of log) this.event(event);
    this.store.touch();
    return this.store.get();
  }
  /** The stream was interrupted and continued further on. */
  missed(): void {
    this.stale ||= this.#members !== null;
  }
  receipt({ userId, lastReadSeq = 0, lastDeliveredSeq = 0 }: Receipt): void {
    this.#raise(userId, lastReadSeq, lastDeliveredSeq);
    this.store.touch();
  }
  event(event: EventFrame): void {
    this.#log?.push(event);
    const members = this.#members;
    if (!members) return;
    if (event.e === 'member.added') {
      for (const userId of event.d.userIds) {
        // A new member starts with everything read, up to the joining itself.
        this.#marks.delete(userId);
        members.set(userId, { userId, role: 'member', lastReadSeq: event.seq, lastDeliveredSeq: 0 });
      }
    } else if (event.e === 'member.removed') members.delete(event.d.userId);
    else if (event.e === 'member.updated') {
      const member = members.get(event.d.userId);
      if (member) members.set(member.userId, { ...member, role: event.d.role });
    } else if (event.e === 'message.new' && event.d.message.senderId !== null) {
      this.#raise(event.d.message.senderId, event.d.message.seq, 0);
    } else return;
    this.store.touch();
  }
  #raise(userId: string, read: number, delivered: number): void {
    const mark = this.#marks.get(userId);
    const raised = {
      read: Math.max(read, mark?.read ?? 0),
      delivered: Math.max(delivered, mark?.delivered ?? 0),
    };
    this.#marks.set(userId, raised);
    const member = this.#members?.get(userId);
    if (!member) return;
    const lastReadSeq = Math.max(member.lastReadSeq, raised.read);
    const lastDeliveredSeq = Math.max(member.lastDeliveredSeq, raised.delivered);
    this.#members!.set(userId, { ...member, lastReadSeq, lastDeliveredSeq });
  }
}
