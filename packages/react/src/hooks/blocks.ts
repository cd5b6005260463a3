import { useCallback, useMemo } from 'react';
import { useClient } from './context.ts';
import { useStore } from './store.ts';

export interface BlocksView {
  /** The ids of the users whom this user blocks. */
  userIds: readonly string[];
  /** It shows at once; what is refused is taken back, and rejects. */
  block(userId: string): Promise<void>;
  unblock(userId: string): Promise<void>;
}

const nobody: readonly string[] = [];

export function useBlocks(): BlocksView {
  const { blocks } = useClient();
  const userIds = useStore(blocks, nobody);
  const block = useCallback((userId: string) => blocks.add(userId), [blocks]);
  const unblock = useCallback((userId: string) => blocks.remove(userId), [blocks]);
  return useMemo(() => ({ userIds, block, unblock }), [userIds, block, unblock]);
}
