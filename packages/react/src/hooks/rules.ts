import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import type { Action, ConversationPreview, Rules } from '@parley/client';
import { useClient } from './context.ts';
import { useConversation } from './open.ts';
import { useModerates } from './people.ts';
import { nothing, useStore } from './store.ts';

const unknown: Partial<Rules> = {};
const noRules = { get: () => unknown, subscribe: nothing };

/** The rules of a group; empty until they are known. */
export function useRules(id: string | null | undefined): Partial<Rules> {
  return useStore<Partial<Rules>>(useConversation(id)?.rules ?? noRules, unknown);
}

const nowhere: readonly Action[] = [];
const noActions = { get: () => nowhere, subscribe: nothing };
const no = (): boolean => false;

/** Whether the user may do this here, by its role and the rules; false until that is known. Renders when it changes. */
export function useCan(id: string | null | undefined, action: Action): boolean {
  const { subscribe, get } = useConversation(id)?.allowed ?? noActions;
  return useSyncExternalStore(subscribe, () => get().includes(action), no);
}

/** Whether only moderators write here, and the user is none. */
export function useAnnouncement(id: string): boolean {
  const { subscribe, get } = useClient().conversations;
  const restricted = () => get().items.some((i) => i.id === id && i.rules?.posting === 'moderators');
  const announcing = useSyncExternalStore(subscribe, restricted, no);
  return !useModerates(announcing ? id : null) && announcing;
}

export interface DiscoverView {
  items: readonly ConversationPreview[];
  hasMore: boolean;
  status: 'loading' | 'ready' | 'failed';
  loadMore(): Promise<void>;
}

const nothingFound = { items: [] as readonly ConversationPreview[], cursor: null as string | null };

/** Listed groups: all, or those with these words in their name. Ask for what somebody types when it pauses. */
export function useDiscover(q = ''): DiscoverView {
  const { discover } = useClient().conversations;
  const [found, setFound] = useState({ ...nothingFound, status: 'loading' as DiscoverView['status'] });
  /** What is asked for now: an answer to something else comes too late. */
  const asked = useRef(q);
  const load = useCallback(
    async ({ items, cursor }: typeof nothingFound) => {
      asked.current = q;
      setFound((was) => ({ ...was, status: 'loading' }));
      const [page, status] = await discover(q, cursor ?? undefined).then(
        ({ data, nextCursor }) => [{ items: [...items, ...data], cursor: nextCursor }, 'ready'] as const,
        () => [null, 'failed'] as const,
      );
      if (asked.current === q) setFound((was) => ({ ...was, ...page, status }));
    },
    [discover, q],
  );
  useEffect(() => void load(nothingFound), [load]);
  return useMemo(() => {
    const { items, cursor, status } = found;
    return {
      items,
      status,
      hasMore: cursor !== null,
      loadMore: async () => void (cursor && (await load(found))),
    };
  }, [found, load]);
}
