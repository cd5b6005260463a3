import {
  infiniteQueryOptions,
  queryOptions,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import type { Input, Output } from '@parley/protocol';
import { useParams } from 'wouter';
import type { CallName } from './address.ts';
import { call } from './call.ts';
import type { ApiFailure } from './call.ts';
import { withFreshSignIn } from './reauth.tsx';
import { shownError } from './session.ts';

/** The environment that the address names; null outside of one. */
export const useEnv = (): string | null => useParams<{ env?: string }>().env ?? null;

interface CallOptions {
  enabled?: boolean;
  /** Looks again this often while the page is visible. */
  everyMs?: number;
}

const keyOf = (env: string | null, name: CallName, input: unknown) => [env, name, input] as const;

export const callQuery = <N extends CallName>(name: N, input: Input<N>, env: string | null) =>
  queryOptions<Output<N>, ApiFailure>({
    queryKey: keyOf(env, name, input),
    queryFn: ({ signal }) => call(name, input, env, signal),
  });

/** What is on the screen, kept fresh. */
export function useCall<N extends CallName>(name: N, input: Input<N>, options: CallOptions = {}) {
  const env = useEnv();
  const { data, error, refetch } = useQuery({
    ...callQuery(name, input, env),
    enabled: options.enabled ?? true,
    ...(options.everyMs === undefined ? {} : { refetchInterval: options.everyMs }),
  });
  return { data, error: shownError(error, data), refetch };
}

/** A list that comes whole, in the form of `usePages`. */
export function useRows<N extends CallName>(name: N, input: Input<N>, options: CallOptions = {}) {
  const query = useCall(name, input, options);
  return {
    items: (query.data as { data: ItemOf<Output<N>>[] } | undefined)?.data,
    error: query.error,
    more: null,
    loadingMore: false,
    refresh: () => void query.refetch(),
  };
}

type Paged = { data: readonly unknown[]; nextCursor: string | null };
type ItemOf<O> = O extends { data: readonly (infer I)[] } ? I : never;

export const pagesQuery = <N extends CallName>(name: N, input: Input<N>, env: string | null) =>
  infiniteQueryOptions({
    queryKey: [...keyOf(env, name, input), 'pages'],
    queryFn: ({ signal, pageParam }) =>
      call(
        name,
        { ...(input as object), ...(pageParam === null ? {} : { cursor: pageParam }) } as Input<N>,
        env,
        signal,
      ) as Promise<Paged & Output<N>>,
    initialPageParam: null as string | null,
    getNextPageParam: (last: Paged) => last.nextCursor,
  });

/** A list by cursor, one page after the other. */
export function usePages<N extends CallName>(name: N, input: Input<N>, options: CallOptions = {}) {
  const env = useEnv();
  const query = useInfiniteQuery({
    ...pagesQuery(name, input, env),
    enabled: options.enabled ?? true,
    ...(options.everyMs === undefined ? {} : { refetchInterval: options.everyMs }),
  });
  return {
    items: query.data?.pages.flatMap((page) => page.data as ItemOf<Output<N>>[]),
    error: shownError(query.error as ApiFailure | null, query.data),
    more: query.hasNextPage ? () => void query.fetchNextPage() : null,
    loadingMore: query.isFetchingNextPage,
    refresh: () => void query.refetch(),
  };
}

/** A change. What the environment shows is looked at again when it succeeded. */
export function useChange<N extends CallName>(name: N, options: { done?: (output: Output<N>) => void } = {}) {
  const env = useEnv();
  const client = useQueryClient();
  return useMutation<Output<N>, ApiFailure, Input<N>>({
    mutationFn: (input) => withFreshSignIn(() => call(name, input, env)),
    onSuccess: async (output) => {
      options.done?.(output);
      await client.invalidateQueries();
    },
  });
}
