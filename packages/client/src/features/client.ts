import type { Clock } from '../clock.ts';
import type { ParleyError } from '../errors.ts';
import type { CallOptions } from '../http.ts';
import type { ConversationList } from '../state/conversation-list.ts';
import type { ConversationHandle } from '../state/conversation.ts';
import type { MessageItem } from '../state/message-item.ts';
import type { ReportTarget } from '../client-types.ts';
import type { ConversationPreview, EphemeralFrames, Notifications, Report, ReportReason } from '../types.ts';
import type { BlocksFeature } from './blocks.ts';
import type { DiscoverPage, JoiningHost } from './joining.ts';
import type { Mentions, MentionsHost } from './mentions.ts';

/**
 * What extensions do beside conversations: what belongs to the user alone, and its mentions. It is loaded when somebody
 * first uses one, or when the user has changed something of its own.
 */

export interface ClientExtensionHost extends Omit<MentionsHost, 'isBlocked'>, JoiningHost {
  clock: Clock;
  list: ConversationList;
  /** Those that are on; null before the first `hello`. */
  features(): readonly string[] | null;
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
  /** By how much the server's clock is ahead. */
  clockOffset(): number;
  /** There is a connection. */
  isOn(): boolean;
  onError(error: ParleyError): void;
  /** Asks the server soon what has changed. */
  soon(): void;
  /** What messages show has changed. */
  changed(): void;
}

export type ClientExtension = ReturnType<typeof extend>;

export function extend(host: ClientExtensionHost) {
  let rev = 0;
  let blocked: BlocksFeature | undefined;
  let levels: (() => void) | undefined;

  const isBlocked = (userId: string | null): boolean => !!blocked?.has(userId);
  async function blocks(): Promise<BlocksFeature> {
    const { bindBlocks } = await import('./blocks.ts');
    return (blocked ??= bindBlocks(host));
  }
  const loadBlocks = (): void =>
    void blocks()
      .then((of) => of.load())
      .catch(host.onError);

  const joining = async () => (await import('./joining.ts')).bindJoining(host);

  return {
    blocks,
    isBlocked,
    join: async (cid: string): Promise<ConversationHandle> => (await joining()).join(cid),
    acceptInvite: async (token: string): Promise<ConversationHandle> => (await joining()).acceptInvite(token),
    previewInvite: async (token: string): Promise<ConversationPreview> =>
      (await joining()).previewInvite(token),
    discover: async (q?: string, cursor?: string): Promise<DiscoverPage> =>
      (await joining()).discover(q, cursor),
    mentions: async (): Promise<Mentions> =>
      (await import('./mentions.ts')).bindMentions({ ...host, isBlocked }),

    report(target: ReportTarget, reason: ReportReason, note?: string): Promise<Report> {
      host.check('reports');
      return host.http<Report>('POST', '/reports', {
        body: { ...target, reason, ...(note ? { note } : {}) },
      });
    },

    /** The message, marked if the user blocks its sender. */
    mark: (item: MessageItem): MessageItem => blocked?.mark(item) ?? item,

    /** What `hello` says: something may have changed while this client was away. */
    hello(now: number): void {
      if (now !== rev && host.features()?.includes('blocks')) loadBlocks();
      rev = now;
    },

    personal({ kind, rev: now, d }: EphemeralFrames['personal']): void {
      // Two nodes may report changes in a different order.
      if (kind === 'level' && now > rev) host.list.level(d as Notifications);
      if (kind === 'block') loadBlocks();
      rev = Math.max(rev, now);
    },

    /** A level came in that ends by itself. */
    async levelEnds(): Promise<void> {
      const { watchLevels } = await import('./levels.ts');
      if (!levels) {
        levels = watchLevels({ ...host, offset: host.clockOffset, ended: host.soon });
        host.on('state', levels);
      }
      levels();
    },
  };
}
