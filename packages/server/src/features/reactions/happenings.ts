import type { Tx } from '../../platform/postgres/db.ts';
import type { Happened } from '../happenings.ts';
import { hasReactions } from '../sql/flags.ts';
import type { ReactionService } from './service.ts';
import { dropReactions } from './sql.ts';

/** Reactions go with their messages, a moment later and in batches (tell.ts); a tombstone shows none from now on. */
export async function reactionsEmptied(
  reactions: Pick<ReactionService, 'changed'>,
  tx: Tx,
  { env, conv, flags, seqs }: Happened['messagesEmptied'],
): Promise<void> {
  if (hasReactions({ flags }) && (await dropReactions(tx, env, conv, seqs)))
    tx.afterCommit(() => reactions.changed());
}
