import { limits } from '@parley/protocol';
import type { MessageOrTombstone } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { hasPins } from './flags.ts';

/** What shows of pins. The table is that of features/pins; conversations without the flag are not asked about. */

interface PinRow {
  /** Of the message. */
  seq: number;
  pinnedAt: string;
  /** Null: the server. */
  pinnedBy: string | null;
}

/** The pins of messages from one seq to another, the newest pin first. */
export const pinsBetween = (db: Queryable, env: number, conv: number, from: number, to: number) =>
  db.query<PinRow>(
    `SELECT p.message AS seq, p.at AS "pinnedAt", u.id AS "pinnedBy"
     FROM pins p LEFT JOIN LATERAL (SELECT id FROM users WHERE no = p.by AND env = p.env LIMIT 1) u ON true
     WHERE p.conv = $2 AND p.message >= $3 AND p.message <= $4 AND p.env = $1
     ORDER BY p.at DESC, p.message DESC LIMIT ${limits.pinsPerConversation}`,
    [env, conv, from, to],
  );

/** Adds what shows of pins to messages of one conversation, in any order of seq. */
export async function withPins(
  db: Queryable,
  env: number,
  conversation: { no: number; flags: number },
  messages: MessageOrTombstone[],
): Promise<MessageOrTombstone[]> {
  if (!hasPins(conversation) || messages.length === 0) return messages;
  const seqs = messages.map(({ seq }) => seq);
  const rows = await pinsBetween(db, env, conversation.no, Math.min(...seqs), Math.max(...seqs));
  if (rows.length === 0) return messages;
  const pins = new Map(rows.map(({ seq, ...pin }) => [seq, pin]));
  return messages.map((m) => (m.deletedAt ? m : { ...m, ...pins.get(m.seq) })) as MessageOrTombstone[];
}
