import type { CallOptions } from '../http.ts';
import type { Store } from '../store.ts';
import type {
  ConversationListItem,
  ConversationRules,
  ConversationRulesChange,
  InviteLink,
  Member,
  CreatedInviteLink,
} from '../types.ts';

/** The rules of a group, what they let the user do, and its links. It is loaded when somebody first asks. */

/** All rules; `defaultLevel` is missing where the environment decides. */
export type Rules = Required<Omit<ConversationRules, 'defaultLevel'>> &
  Pick<ConversationRules, 'defaultLevel'>;
export type Action = 'send' | 'react' | 'pin' | 'mentionEveryone' | 'invite' | 'moderate' | 'setRules';

export interface NewInvite {
  /** How many may join by it; without, as many as like. */
  maxUses?: number;
  /** Seconds: a minute to 30 days; without, 7 days. */
  expiresIn?: number;
}

export interface RulesHost {
  list: {
    item(cid: string): ConversationListItem | undefined;
    store: Pick<Store<unknown>, 'subscribe'>;
  };
  me(): string | null;
  /** Throws `feature_disabled` if the environment has it off. */
  check(feature: string): void;
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
}

interface RuledConversation {
  id: string;
  members: Store<readonly Member[]>;
  loadMembers(): Promise<readonly Member[]>;
}

const defaults: Rules = {
  posting: 'all',
  joining: 'closed',
  listed: false,
  slowModeSeconds: 0,
  pinning: 'all',
  mentionEveryone: 'moderators',
  reacting: 'all',
};
const none: readonly Action[] = [];

/** What somebody may do in a group; null: nobody of it. */
function allowedTo(rules: Rules, role: Member['role'] | null): readonly Action[] {
  if (role === null) return none;
  const moderates = role !== 'member';
  const may: Record<Action, boolean> = {
    send: moderates || rules.posting === 'all',
    react: rules.reacting === 'all',
    pin: moderates || rules.pinning === 'all',
    mentionEveryone: moderates || rules.mentionEveryone === 'all',
    invite: moderates && rules.joining !== 'closed',
    moderate: moderates,
    setRules: role === 'owner',
  };
  return (Object.keys(may) as Action[]).filter((action) => may[action]);
}
const direct: readonly Action[] = ['send', 'react', 'pin'];

export type RulesFeature = ReturnType<typeof bindRules>;

export function bindRules(host: RulesHost, conversation: RuledConversation) {
  const { id, members } = conversation;
  const path = `/conversations/${encodeURIComponent(id)}`;
  let known: { of: ConversationRules | undefined; all: Rules } = { of: undefined, all: defaults };
  let may = { of: '', list: none };

  const rules = (): Rules => {
    const of = host.list.item(id)?.rules;
    if (of !== known.of) known = { of, all: { ...defaults, ...of } };
    return known.all;
  };
  const allowed = (): readonly Action[] => {
    const me = host.me();
    const role = members.get().find((m) => m.userId === me)?.role ?? null;
    const list = host.list.item(id)?.type === 'direct' ? direct : allowedTo(rules(), role);
    const of = list.join();
    if (of !== may.of) may = { of, list };
    return may.list;
  };
  const load = async (): Promise<void> => {
    if (members.get().length === 0) await conversation.loadMembers();
  };
  const changes =
    (...stores: Pick<Store<unknown>, 'subscribe'>[]) =>
    (listener: () => void) => {
      const ends = stores.map((store) => store.subscribe(listener));
      return () => ends.forEach((end) => end());
    };
  const call = <T>(method: string, rest: string, body?: unknown): Promise<T> => {
    host.check('rules');
    return host.http<T>(method, path + rest, body === undefined ? {} : { body });
  };

  const rulesStore: Store<Rules> = { get: rules, subscribe: changes(host.list.store) };
  const allowedStore: Store<readonly Action[]> = {
    get: allowed,
    subscribe: changes(host.list.store, members),
  };
  return {
    rules: rulesStore,
    async allowed(): Promise<Store<readonly Action[]>> {
      await load();
      return allowedStore;
    },
    async can(action: Action): Promise<boolean> {
      await load();
      return allowed().includes(action);
    },
    setRules: (change: ConversationRulesChange): Promise<void> => call('PATCH', '', { rules: change }),
    createInvite: (options: NewInvite = {}): Promise<CreatedInviteLink> => call('POST', '/invites', options),
    invites: async (): Promise<InviteLink[]> => (await call<{ data: InviteLink[] }>('GET', '/invites')).data,
    revokeInvite: (inviteId: string): Promise<void> =>
      call('DELETE', `/invites/${encodeURIComponent(inviteId)}`),
  };
}
