import { limits } from '@parley/protocol';
import { lockConversationByNo } from '../../log/sql/lock.ts';
import { record } from '../../log/record.ts';
import type { Recorder } from '../../log/record.ts';
import type { Db } from '../../platform/postgres/db.ts';
import { viewReactions } from '../sql/reaction-reader.ts';
import { wantMessage } from '../storage/sql/thaw.ts';
import { clearReactions, dueReactions, lockDue, markTold, putOff } from './sql.ts';
import type { DueMessages, DueReactions } from './sql.ts';

/**
 * The events of reactions. A message whose reactions changed has an event at once if none was in the window before, else
 * at its end, with the counts of that moment. `waiting` in its row is the note of what is left to tell, so the
 * last state is always told, whatever crashes.
 */

/** Milliseconds between two events of a message, by how many reactions it has. */
const windowMs = (total: number): number => (total < 100 ? 1_000 : total < 1_000 ? 3_000 : 10_000);

/** Messages that one look takes, and conversations that are told at the same time. */
const mostMessages = 500;
const atOnce = 4;
/** Rows of deleted messages that one transaction removes. */
const clearBatch = 1_000;
/** Milliseconds for which a conversation that cannot be locked is left alone. */
const putOffMs = 2_000;
/** Milliseconds for which a message is left alone that the customer's database has not given back. */
const awayMs = 5 * 60_000;
/** Milliseconds until those are looked at again that a running commit of reactions had locked. */
const againMs = 50;

/**
 * Tells what is due. Any number of processes may do so at the same time.
 * @returns milliseconds until there is more to do; null if nothing is known to wait.
 */
export async function tellReactions(
  db: Db,
  log: Recorder,
  onFailure: (error: unknown) => void,
): Promise<number | null> {
  const { due, nextMs } = await dueReactions(db, mostMessages);
  const queue = [...due];
  let leftOut = false;
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift())
      try {
        if (!(await tellOf(db, log, next))) leftOut = true;
      } catch (error) {
        onFailure(error);
        await putOff(db, next, putOffMs);
      }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, due.length) }, work));
  return leftOut ? Math.min(againMs, nextMs ?? againMs) : nextMs;
}

/** Returns false if it left some out because others had locked them. */
const tellOf = (db: Db, log: Recorder, due: DueMessages): Promise<boolean> =>
  db.tx(async (tx) => {
    const { env, conv } = due;
    const held = await lockConversationByNo(tx, env, conv);
    if (!held) return true;
    const rows = await lockDue(tx, due);
    for (const { message } of rows.filter((row) => row.gone))
      await clearReactions(tx, env, conv, message, clearBatch);
    const rest = rows.filter((row) => !row.gone);
    // A message that only the customer's database has, which an erasure could not bring back: it is told when the sink has done so.
    const away = held.deletedAt ? [] : rest.filter((row) => row.id === null).map(({ message }) => message);
    if (away.length > 0) {
      await putOff(tx, { env, conv, messages: away }, awayMs);
      await wantMessage(tx, env, conv, away[0]!);
    }
    const told = rest.filter(({ message }) => !away.includes(message));
    await record(log, tx, held, held.deletedAt ? [] : told.map(eventOf));
    if (told.length > 0)
      await markTold(
        tx,
        env,
        conv,
        told.map(({ message, total }) => ({ message, windowMs: windowMs(total) })),
      );
    return rows.length === due.messages.length;
  });

const eventOf = ({ message, id, revision, total, counts, changes }: DueReactions) => ({
  type: 'message.reactions' as const,
  actor: null,
  message: { id: id!, seq: message },
  reactions: viewReactions({ revision, total, counts, own: null }),
  changes: (changes ?? []).slice(-limits.reactionChanges),
  more: (changes ?? []).length > limits.reactionChanges,
});
