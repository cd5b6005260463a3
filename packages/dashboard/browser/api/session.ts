import { QueryCache, QueryClient, queryOptions, useQuery } from '@tanstack/react-query';
import type { Output } from '@parley/protocol';
import { isAway, refreshOnReturn } from './away.ts';
import { ApiFailure, call } from './call.ts';

export type Session = Output<'session.get'>;
export const sessionKey = ['session'] as const;

const signedOut = (error: unknown): boolean => error instanceof ApiFailure && error.status === 401;

/** A session that ended on any call leads to the sign-in page, which leads back. */
export function createQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        if (signedOut(error)) client.setQueryData(sessionKey, null);
      },
    }),
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        retry: (count, error) =>
          count < 2 && error instanceof ApiFailure && (error.status === 0 || error.status >= 500),
      },
    },
  });
  refreshOnReturn(client);
  return client;
}

export const sessionQuery = queryOptions<Session | null, ApiFailure>({
  queryKey: sessionKey,
  queryFn: async ({ signal }) => {
    try {
      return await call('session.get', {}, null, signal);
    } catch (error) {
      if (signedOut(error)) return null;
      throw error;
    }
  },
});

/** The session, or null when nobody is signed in. */
export const useSession = () => useQuery(sessionQuery);

/** What is on the screen stays there while the service is away: the banner says so. */
export const shownError = (error: ApiFailure | null, data: unknown): ApiFailure | null =>
  error && data !== undefined && isAway(error.status) ? null : error;
