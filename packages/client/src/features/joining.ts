import type { CallOptions } from '../http.ts';
import type { ConversationHandle } from '../state/conversation.ts';
import type { Conversation, ConversationPreview } from '../types.ts';

/** Groups that the user can join. It is loaded when somebody first uses it. */

export interface JoiningHost {
  /** Throws `feature_disabled` if the environment has it off. */
  check(feature: string): void;
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
  /** Opens a conversation that the list may not know yet. */
  enter(cid: string): ConversationHandle;
}

export interface DiscoverPage {
  data: ConversationPreview[];
  nextCursor: string | null;
}

const seg = encodeURIComponent;

export const bindJoining = (host: JoiningHost) => {
  const call = <T>(method: string, path: string, options?: CallOptions): Promise<T> => {
    host.check('rules');
    return host.http<T>(method, path, options);
  };
  const enter = async (path: string): Promise<ConversationHandle> =>
    host.enter((await call<Conversation>('POST', path)).id);
  return {
    join: (cid: string) => enter(`/conversations/${seg(cid)}/join`),
    acceptInvite: (token: string) => enter(`/invites/${seg(token)}`),
    previewInvite: (token: string): Promise<ConversationPreview> => call('GET', `/invites/${seg(token)}`),
    discover: (q?: string, cursor?: string): Promise<DiscoverPage> =>
      call('GET', '/conversations/public', { query: { q: q || undefined, cursor } }),
  };
};
