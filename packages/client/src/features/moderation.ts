import type { CallOptions } from '../http.ts';
import type { Member } from '../types.ts';

/** What owners and moderators of a group do; it is loaded when somebody first uses it. */

export interface ModerationHost {
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
}

export const bindModeration = (host: ModerationHost, cid: string) => {
  const path = (of: string, userId: string): string =>
    `/conversations/${encodeURIComponent(cid)}/${of}/${encodeURIComponent(userId)}`;
  return {
    setRole: (userId: string, role: 'moderator' | 'member'): Promise<Member> =>
      host.http<Member>('PATCH', path('members', userId), { body: { role } }),
  };
};
