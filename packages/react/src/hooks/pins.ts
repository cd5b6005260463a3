import { useMemo, useSyncExternalStore } from 'react';
import type { PinsSnapshot } from '@parley/client';
import { useParley } from './context.ts';
import { useConversation } from './open.ts';
import { nothing } from './store.ts';

export interface PinsView extends PinsSnapshot {
  /** Both show at once; what is refused is taken back, and the call rejects. */
  pin(messageId: string): Promise<void>;
  unpin(messageId: string): Promise<void>;
}

const loading: PinsSnapshot = { items: [], status: 'loading' };
const initial = (): PinsSnapshot => loading;
const idle = (): Promise<void> => Promise.resolve();

/** The pinned messages of a conversation, the newest pin first. They are loaded when the first component asks. */
export function usePins(id: string | null | undefined): PinsView {
  const conversation = useConversation(id);
  const { subscribe, get } = conversation?.pins ?? { subscribe: nothing, get: initial };
  const snapshot = useSyncExternalStore(subscribe, get, initial);
  return useMemo(
    () => ({ ...snapshot, pin: conversation?.pin ?? idle, unpin: conversation?.unpin ?? idle }),
    [snapshot, conversation],
  );
}

/** Whether the environment has pins on. */
export function useCanPin(): boolean {
  const { client } = useParley();
  return client.features?.includes('pins') === true;
}
