import type { CallOptions } from '../http.ts';
import type { Member, Restriction } from '../types.ts';

/** What owners and moderators of a group do; it is loaded when somebody first uses it. */

export interface ModerationHost {
  http<T>(method: string, path: string, options?: CallOptions): Promise<T>;
}

export interface RestrictOptions {
  /** When it ends; without, it has no end. */
  until?: Date | string | null;
  reason?: string;
}

export type ModerationFeature = ReturnType<typeof bindModeration>;

export const bindModeration = (host: ModerationHost, cid: string) => {
  const path = (of: string, userId: string): string =>
    `/conversations/${encodeURIComponent(cid)}/${of}/${encodeURIComponent(userId)}`;
  return {
    setRole: (userId: string, role: 'moderator' | 'member'): Promise<Member> =>
      host.http<Member>('PATCH', path('members', userId), { body: { role } }),
    restrict: (userId: string, kind: 'ban' | 'silence', { until, reason }: RestrictOptions = {}) =>
      host.http<Restriction>('PUT', path('restrictions', userId), {
        body: { kind, until: until instanceof Date ? until.toISOString() : until, reason },
      }),
    unrestrict: (userId: string): Promise<void> => host.http<void>('DELETE', path('restrictions', userId)),
    /** Newest first; the first 1,000. */
    async restrictions(): Promise<Restriction[]> {
      const all: Restriction[] = [];
      let cursor: string | undefined;
      do {
        const { data, nextCursor }: { data: Restriction[]; nextCursor: string | null } = await host.http(
          'GET',
          `/conversations/${encodeURIComponent(cid)}/restrictions`,
          { query: { limit: 200, cursor } },
        );
        all.push(...data);
        cursor = nextCursor ?? undefined;
      } while (cursor !== undefined && all.length < 1_000);
      return all;
    },
  };
};
