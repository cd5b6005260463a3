import { catalogue } from '../../../log/catalogue.ts';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { viewLive } from '../../sql/message-reader.ts';
import type { MessageRow } from '../../sql/message-reader.ts';

/**
 * Stored `data` of events that show something that can change (migrations/0013). `record` stores it when an event is
 * committed; this file changes it later. All functions run in the transaction of the change; those marked "locked"
 * need the conversation's lock.
 */

/**
 * Stores the data of message.created before the message changes for the first time, if an endpoint may still get it.
 * Locked.
 */
export async function keepMessageCreated(tx: Queryable, env: number, row: MessageRow): Promise<void> {
  if (row.version > 1 || row.deletedAt !== null) return;
  const { data } = catalogue['message.new'].webhook!;
  const shown = data({ cid: row.cid, seq: row.seq, actorId: row.senderId, message: viewLive(row) });
  await tx.query(
    `INSERT INTO webhook_payloads (event_id, env, conv, message, data, event_at)
     SELECT 'evt_' || substr($4, 5), $1, $2, $3, $5, $6::timestamptz
     WHERE EXISTS (SELECT 1 FROM webhook_endpoints WHERE env = $1) AND $6::timestamptz > now() - interval '${longestDays} days'
     ON CONFLICT (event_id) DO NOTHING`,
    [env, row.conv, row.seq, row.id, JSON.stringify(shown), row.createdAt],
  );
}

/** After a hard deletion, the events of these messages can no longer be delivered. Locked. */
export const forgetMessages = (tx: Queryable, env: number, conv: number, seqs: number[]) =>
  tx.query(
    'UPDATE webhook_payloads SET data = NULL WHERE env = $1 AND conv = $2 AND message = ANY($3) AND data IS NOT NULL',
    [env, conv, seqs],
  );

/** After an erasure, removes data that names the user. A user id has no character that JSON would escape. */
export async function forgetUser(tx: Queryable, env: number, convs: number[], userId: string): Promise<void> {
  await tx.query(
    'UPDATE webhook_payloads SET data = NULL WHERE env = $1 AND conv = ANY($2) AND strpos(data, $3) > 0',
    [env, convs, JSON.stringify(userId)],
  );
  // A message may mention somebody who was never in its conversation.
  await tx.query(
    `UPDATE webhook_payloads SET data = NULL WHERE env = $1 AND strpos(data, '"mentions":') > 0 AND strpos(data, $2) > 0`,
    [env, JSON.stringify(userId)],
  );
}

/** Stored data by event id; null if it was removed. */
export async function loadPayloads(
  db: Queryable,
  eventIds: readonly string[],
): Promise<Map<string, string | null>> {
  const rows = await db.query<{ id: string; data: string | null }>(
    'SELECT event_id AS id, data FROM webhook_payloads WHERE event_id = ANY($1)',
    [eventIds],
  );
  return new Map(rows.map((r) => [r.id, r.data]));
}

/** A payload of an environment that was suspended stays for so long at most. */
export const longestDays = 30;
