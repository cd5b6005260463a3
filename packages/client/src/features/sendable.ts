import type { ErrorInfo } from '../errors.ts';
import { Value } from '../store.ts';
import type { Store } from '../store.ts';
import type { ConversationRules, Member } from '../types.ts';

/** From when on the user may send again: slow mode, silences, and groups in which only moderators write. It is loaded when somebody first asks. */

interface Sent {
  conversationId: string;
  senderId: string | null;
  status: string;
  createdAt: string;
  error?: ErrorInfo;
}

/** Those of the client's events that matter here. */
interface Heard {
  personal: { kind: string; d: unknown };
  failed: Sent;
  sent: Sent;
}

interface List {
  item(cid: string): { rules?: ConversationRules } | undefined;
  store: Pick<Store<unknown>, 'subscribe'>;
}

export interface SendableHost {
  list: List;
  clock: { now(): number };
  /** By how much the server's clock is ahead. */
  clockOffset(): number;
  me(): string | null;
  on<K extends keyof Heard>(name: K, fn: (value: Heard[K]) => void): () => void;
}

interface RestrictionChange {
  conversationId: string | null;
  kind: 'ban' | 'silence' | null;
  until: string | null;
}

/** Until when the user is silenced, by conversation; '' is everywhere. One for all conversations of a client. */
const silencesOf = new WeakMap<List, Value<ReadonlyMap<string, number>>>();

function follow(host: SendableHost): Value<ReadonlyMap<string, number>> {
  const known = silencesOf.get(host.list);
  if (known) return known;
  const silences = new Value<ReadonlyMap<string, number>>(new Map());
  silencesOf.set(host.list, silences);
  const set = (cid: string, until: number): void => silences.set(new Map(silences.get()).set(cid, until));
  host.on('personal', (told) => {
    if (told.kind !== 'restriction') return;
    const { conversationId, kind, until } = told.d as RestrictionChange;
    const end = until === null ? Infinity : Date.parse(until) - host.clockOffset();
    set(conversationId ?? '', kind === 'silence' ? end : 0);
  });
  host.on('failed', ({ conversationId, error }) => {
    // Where only moderators write the rule says so, and it may change.
    if (error?.code === 'restricted' && host.list.item(conversationId)?.rules?.posting === undefined)
      set(conversationId, host.clock.now() + (error.retryAfterMs ?? Infinity));
  });
  host.on('sent', ({ conversationId }) => {
    if (silences.get().get(conversationId)) set(conversationId, 0);
  });
  return silences;
}

export interface SendableConversation {
  id: string;
  messages: Store<{ items: readonly Sent[] }>;
  members: Store<readonly Member[]>;
}

export function bindSendable(host: SendableHost, conversation: SendableConversation): Store<number | null> {
  const { id, messages, members } = conversation;
  const silences = follow(host);

  /** 0 if the rules of the group do not make the user wait. */
  function ruledUntil(): number {
    const { slowModeSeconds: pause = 0, posting } = host.list.item(id)?.rules ?? {};
    const me = host.me();
    const role = members.get().find((m) => m.userId === me)?.role ?? 'member';
    if (role !== 'member') return 0;
    if (posting === 'moderators') return Infinity;
    if (pause === 0) return 0;
    const last = messages
      .get()
      .items.filter((m) => m.senderId === me && m.status === 'sent')
      .at(-1);
    return last ? Date.parse(last.createdAt) + pause * 1_000 - host.clockOffset() : 0;
  }

  return {
    get: () => {
      const ends = silences.get();
      const at = Math.max(ruledUntil(), ends.get(id) ?? 0, ends.get('') ?? 0);
      return at > host.clock.now() ? at : null;
    },
    subscribe: (listener) => {
      const ends = [messages, members, host.list.store, silences].map((store) => store.subscribe(listener));
      return () => ends.forEach((end) => end());
    },
  };
}
