import type { Clock } from '../clock.ts';
import type { CallOptions } from '../http.ts';
import type { ConversationList } from '../state/conversation-list.ts';
import type { MessageItem } from '../state/message-item.ts';
import type { MessageWindow } from '../state/message-window.ts';
import type { Applied, Told } from '../state/told.ts';
import type { Store } from '../store.ts';
import type { Member, NotificationLevel, Notifications, Poll, Reactions, Restriction } from '../types.ts';
import { changeMessage } from './changes.ts';
import type { ModerationFeature, RestrictOptions } from './moderation.ts';
import type { PinsFeature, PinsSnapshot } from './pins.ts';
import type { ReactionsFeature, ReactorsPage } from './reactions.ts';
import type { Action, Rules, RulesFeature } from './rules.ts';
import type { SendableConversation, SendableHost } from './sendable.ts';

/** What extensions do with an open conversation. It is loaded when somebody first uses one, and loads that one alone. */

export interface ExtensionHost extends SendableHost {
  clock: Clock;
  list: ConversationList;
  /** Those that are on; null before the first `hello`. */
  features(): readonly string[] | null;
  /** Throws `feature_disabled` if the environment has it off. */
  check(feature: string): void;
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
}

export interface ExtendedConversation extends SendableConversation {
  /** An answer of the server, for all that shows messages. */
  tell(what: Told): void;
  loadMembers(): Promise<readonly Member[]>;
}

export interface Extension {
  react(messageId: string, emoji: string): Promise<Reactions>;
  unreact(messageId: string, emoji: string): Promise<Reactions>;
  reactors(messageId: string, emoji?: string, cursor?: string): Promise<ReactorsPage>;
  vote(messageId: string, options: readonly number[]): Promise<Reactions>;
  closePoll(messageId: string): Promise<Poll>;
  pin(messageId: string): Promise<void>;
  unpin(messageId: string): Promise<void>;
  setRole(userId: string, role: 'moderator' | 'member'): Promise<Member>;
  silence(userId: string, options?: RestrictOptions): Promise<Restriction>;
  ban(userId: string, options?: RestrictOptions): Promise<Restriction>;
  unrestrict(userId: string): Promise<void>;
  restrictions(): Promise<Restriction[]>;
  setRules: RulesFeature['setRules'];
  createInvite: RulesFeature['createInvite'];
  invites: RulesFeature['invites'];
  revokeInvite: RulesFeature['revokeInvite'];
  can: RulesFeature['can'];
  rules(): Promise<Store<Rules>>;
  allowed(): Promise<Store<readonly Action[]>>;
  mute(muted?: boolean): Promise<void>;
  unmute(): Promise<void>;
  setLevel(level: NotificationLevel, options?: { until?: Date | string }): Promise<void>;
  /** The list of pins, which is loaded and kept from now on. */
  pins(): Promise<Store<PinsSnapshot>>;
  /** From when on the user may send again. */
  sendable(): Promise<Store<number | null>>;
  /** The message with what the user wants; the same object as long as nothing changed. */
  show(item: MessageItem): MessageItem;
  /** Something that was applied to the conversation's window. */
  event(event: Applied): void;
  /** The stream was interrupted and continued further on. */
  missed(): void;
  /** What could not be loaded may be asked for again. */
  retry(): void;
}

/** @param changed what is shown of the conversation has changed. */
export function extend(
  host: ExtensionHost,
  conversation: ExtendedConversation,
  window: MessageWindow,
  changed: () => void,
): Extension {
  const { list } = host;
  const { id } = conversation;
  const path = `/conversations/${encodeURIComponent(id)}`;
  let reactions: ReactionsFeature | undefined;
  let pins: PinsFeature | undefined;

  // Answers show at once from now on, so that nothing flickers.
  window.use(changeMessage);

  async function reacting(): Promise<ReactionsFeature> {
    const { bindReactions } = await import('./reactions.ts');
    return (reactions ??= bindReactions({
      ...host,
      changed,
      told: (messageId, of) => conversation.tell({ e: 'reaction.own', d: { id: messageId, ...of } }),
      closed: (messageId, poll) => conversation.tell({ e: 'message.enriched', d: { id: messageId, poll } }),
    }));
  }
  async function pinning(): Promise<PinsFeature> {
    const { bindPins } = await import('./pins.ts');
    return (pins ??= bindPins({
      ...host,
      id,
      changed,
      find: (messageId) => window.items.find((m) => m.id === messageId),
      told: (pin) => void window.apply(pin),
    }));
  }
  async function mute(muted = true): Promise<void> {
    await host.http(muted ? 'PUT' : 'DELETE', `${path}/mute`);
    // The frame `personal` says which level holds after unmuting; without a socket the next sync does.
    if (list.item(id)?.muted === muted) return;
    const level = muted ? 'none' : (list.item(id)?.rules?.defaultLevel ?? list.defaultLevel);
    list.level({ conversationId: id, level, until: null, muted });
    list.markStale(id);
  }
  let rules: RulesFeature | undefined;
  async function ruling(): Promise<RulesFeature> {
    const { bindRules } = await import('./rules.ts');
    return (rules ??= bindRules(host, conversation));
  }
  const moderating = async (): Promise<ModerationFeature> =>
    (await import('./moderation.ts')).bindModeration(host, id);

  return {
    react: async (messageId, emoji) => (await reacting()).set(messageId, emoji, true),
    unreact: async (messageId, emoji) => (await reacting()).set(messageId, emoji, false),
    reactors: async (messageId, emoji, cursor) => (await reacting()).list(messageId, emoji, cursor),
    vote: async (messageId, options) => (await reacting()).vote(messageId, options),
    closePoll: async (messageId) => (await reacting()).close(messageId),
    pin: async (messageId) => (await pinning()).set(messageId, true),
    unpin: async (messageId) => (await pinning()).set(messageId, false),
    setRole: async (userId, role) => (await moderating()).setRole(userId, role),
    silence: async (userId, options) => (await moderating()).restrict(userId, 'silence', options),
    ban: async (userId, options) => (await moderating()).restrict(userId, 'ban', options),
    unrestrict: async (userId) => (await moderating()).unrestrict(userId),
    restrictions: async () => (await moderating()).restrictions(),
    setRules: async (change) => (await ruling()).setRules(change),
    createInvite: async (options) => (await ruling()).createInvite(options),
    invites: async () => (await ruling()).invites(),
    revokeInvite: async (inviteId) => (await ruling()).revokeInvite(inviteId),
    can: async (action) => (await ruling()).can(action),
    rules: async () => (await ruling()).rules,
    allowed: async () => (await ruling()).allowed(),

    mute,
    unmute: () => mute(false),
    async setLevel(level, { until } = {}) {
      host.check('mentions');
      const end = until === undefined ? {} : { until: new Date(until).toISOString() };
      const body = { level, ...end };
      list.level(await host.http<Notifications>('PUT', `${path}/notifications`, { body }));
    },

    pins: async () => (await pinning()).follow(),
    sendable: async () => (await import('./sendable.ts')).bindSendable(host, conversation),

    show(item) {
      const shown = reactions?.show(item) ?? item;
      return pins?.show(shown) ?? shown;
    },
    event: (event) => pins?.event(event),
    missed: () => pins?.missed(),
    retry: () => pins?.retry(),
  };
}
