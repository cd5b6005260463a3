import type { Tx } from '../platform/postgres/db.ts';
import type { MessageRow } from './sql/message-reader.ts';

/**
 * What happens inside a transaction and concerns other features. `compose` lists who listens, in which order; the
 * listeners run in the same transaction, before it commits.
 */
export interface Happened {
  /** A message is about to be edited or deleted; the row is as it was. The conversation is locked. */
  messageChanges: { env: number; row: MessageRow };
  /**
   * Messages lost their content. The conversation is locked. `seqs` and `ids` are all of them; `emptied` are those
   * that were not deleted before. With `hard`, nothing of them may stay anywhere.
   */
  messagesEmptied: {
    env: number;
    conv: number;
    /** Those of the conversation. */
    flags: number;
    seqs: number[];
    ids: string[];
    emptied: number[];
    hard: boolean;
  };
  /** The conversation is locked. */
  memberRemoved: { env: number; conv: number; user: number };
  /** The user may write no more, in a conversation, which is locked, or (null) anywhere. */
  userSilenced: { env: number; conv: number | null; user: number };
  /** One of the two users of a direct conversation has blocked the other. The conversation is locked. */
  pairBlocked: { env: number; conv: number; user: number };
  /** The conversation is locked. */
  conversationDeleted: { env: number; conv: number };
  /** The user was deactivated, or the user's tokens were revoked. */
  userCutOff: { env: number; user: number };
  /** `replacement` is the id that the user has from now on; `messages` tells what happens to the user's messages. */
  userErased: {
    env: number;
    user: number;
    userId: string;
    replacement: string;
    messages: 'anonymize' | 'delete';
  };
  /**
   * An erased user's id must leave every row of the conversations `convs`. This happens twice: in the transaction of
   * the erasure and after it, because a change that was running may have written the id again.
   */
  userIdErased: { env: number; userId: string; convs: number[] };
}

export type Listener<K extends keyof Happened> = (tx: Tx, what: Happened[K]) => Promise<unknown>;

export type Happenings = { readonly [K in keyof Happened]: readonly Listener<K>[] };

export async function happened<K extends keyof Happened>(
  { services }: { services: { happenings: Happenings } },
  tx: Tx,
  name: K,
  what: Happened[K],
): Promise<void> {
  for (const listen of services.happenings[name]) await listen(tx, what);
}
