import { useCallback, useEffect, useMemo, useState } from 'react';
import type { ConnectionState, ParleyError } from '@parley/client';
import { useClient } from './context.ts';
import { useConversation } from './open.ts';
import { useStore } from './store.ts';

export interface ConnectionView {
  state: ConnectionState;
  /** Why it failed, or was lost. */
  error: ParleyError | null;
  /** Connects again at once instead of waiting for the next attempt. */
  retry(): void;
}

export function useConnection(): ConnectionView {
  const client = useClient();
  const state = useStore<ConnectionState>(client.stateStore, 'idle');
  const [error, setError] = useState<ParleyError | null>(null);
  useEffect(() => client.on('state', (change) => setError(change.error)), [client]);
  const retry = useCallback(() => {
    client.disconnect();
    client.connect().catch(() => undefined); // The state says so.
  }, [client]);
  return useMemo(() => ({ state, error, retry }), [state, error, retry]);
}

const nobody: readonly string[] = [];
const silent = { get: () => nobody, subscribe: () => () => undefined };

export interface TypingView {
  /** The other users who type now. */
  userIds: readonly string[];
  /** Call it on every key press: a frame is sent at most every three seconds. */
  start(): void;
  stop(): void;
}

export function useTyping(id: string | null | undefined): TypingView {
  const conversation = useConversation(id);
  const userIds = useStore(conversation?.typing ?? silent, nobody);
  const start = useCallback(() => conversation?.startTyping(), [conversation]);
  const stop = useCallback(() => conversation?.stopTyping(), [conversation]);
  return useMemo(() => ({ userIds, start, stop }), [userIds, start, stop]);
}
