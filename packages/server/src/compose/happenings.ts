import { forgetBlocks } from '../features/blocks/sql.ts';
import { endCallOf, leaveCalls } from '../features/calls/moves.ts';
import type { CallContext } from '../features/calls/moves.ts';
import { forgetInvites } from '../features/conversations/sql/invites.ts';
import { forgetRestrictions } from '../features/conversations/sql/restrictions.ts';
import type { Happenings } from '../features/happenings.ts';
import { forgetAnswers } from '../features/idempotency/sql.ts';
import { dropPins } from '../features/pins/sql.ts';
import { dropDevicesOf } from '../features/push/sql.ts';
import { dropReactions } from '../features/reactions/sql.ts';
import { emptySnapshots, forgetReports } from '../features/reports/sql.ts';
import { hasPins, hasReactions } from '../features/sql/flags.ts';
import { eraseInSinks } from '../features/storage/erasures.ts';
import { wantLatestMessage } from '../features/storage/sql/thaw.ts';
import { dropOfMessages, dropUnusedOf } from '../features/uploads/sql.ts';
import { forgetMessages, forgetUser, keepMessageCreated } from '../features/webhooks/sql/payloads.ts';
import type { Services } from '../features/context.ts';

type Needed = CallContext['services'] & Pick<Services, 'media' | 'reactions' | 'signals' | 'vault'>;

/** Who listens to what happens inside a transaction, in the order in which they run. */
export const createHappenings = (services: Needed): Happenings => ({
  messageChanges: [(tx, { env, row }) => keepMessageCreated(tx, env, row)],
  messagesEmptied: [
    async (tx, { env, conv, emptied }) => {
      if (emptied.length > 0 && (await dropOfMessages(tx, env, conv, emptied)) > 0)
        tx.afterCommit(() => services.media.wake());
    },
    async (tx, { env, conv, emptied }) => emptied.length > 0 && wantLatestMessage(tx, env, conv),
    async (tx, { env, conv, flags, seqs }) => {
      // A moment later and in batches (features/reactions/tell.ts); a tombstone shows none from now on.
      if (hasReactions({ flags }) && (await dropReactions(tx, env, conv, seqs)))
        tx.afterCommit(() => services.reactions.changed());
    },
    async (tx, { env, conv, flags, seqs }) => hasPins({ flags }) && dropPins(tx, env, conv, seqs),
    async (tx, { env, ids, hard }) => hard && forgetAnswers(tx, env, ids),
    async (tx, { env, conv, seqs, hard }) => hard && forgetMessages(tx, env, conv, seqs),
    async (tx, { env, conv, seqs, hard }) => hard && emptySnapshots(tx, env, conv, seqs),
  ],
  memberRemoved: [(tx, { env, conv, user }) => leaveCalls({ services }, tx, env, user, conv)],
  pairBlocked: [(tx, { env, conv, user }) => leaveCalls({ services }, tx, env, user, conv)],
  userSilenced: [
    (tx, { env, conv, user }) => leaveCalls({ services }, tx, env, user, conv ?? undefined),
    async (tx, { user }) => tx.afterCommit(() => services.signals.silenced(user)),
  ],
  conversationDeleted: [(tx, conv) => endCallOf({ services }, tx, conv)],
  userCutOff: [(tx, { env, user }) => leaveCalls({ services }, tx, env, user)],
  userErased: [
    (tx, { env, user }) => dropUnusedOf(tx, env, user),
    (tx, { env, user }) => dropDevicesOf(tx, env, user),
    (tx, { env, user }) => forgetBlocks(tx, env, user),
    (tx, { env, user }) => forgetRestrictions(tx, env, user),
    (tx, { env, user }) => forgetReports(tx, env, user),
    (tx, { env, user }) => forgetInvites(tx, env, user),
    (tx, { env, user }) => leaveCalls({ services }, tx, env, user),
    (tx, erased) => eraseInSinks(services.vault, tx, erased),
  ],
  userIdErased: [
    (tx, { env, userId }) => forgetAnswers(tx, env, [userId]),
    (tx, { env, userId, convs }) => forgetUser(tx, env, convs, userId),
  ],
});
