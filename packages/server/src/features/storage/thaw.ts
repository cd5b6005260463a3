import type { History, MessageRecord } from '../../platform/history/port.ts';
import type { Db, Queryable } from '../../platform/postgres/db.ts';
import type { ColdRow, MessageRow } from '../sql/message-reader.ts';
import { clearWanted, holdConversation, restoreMessages, wantedMessages } from './sql/thaw.ts';

/**
 * Messages from a customer's database: completed with what our store knows about them, or put back into our store
 * because they are needed here, or because history comes back.
 */

const json = (text: string | null): string | null => {
  if (text === null) return null;
  try {
    JSON.parse(text);
    return text;
  } catch {
    // Somebody changed it there: unreadable JSON is not shown.
    return null;
  }
};

/** The sender, the deletion and the extras come from our own store: names may have been erased since, and extras stay here. */
export const warmRow = (cold: ColdRow, found: MessageRecord): MessageRow => ({
  ...cold,
  id: found.id,
  text: found.text,
  replyTo: found.replyTo,
  metadata: json(found.metadata),
  attachments: json(found.attachments),
  version: found.version,
  createdAt: found.createdAt,
  editedAt: found.editedAt,
  hard: false,
});

/**
 * Puts messages back into our store. The conversation must be locked, unless nothing else can change these rows. Its
 * `cold_seq` stays (`keepsCold`) until a copy has passed it, because it tells which conversations must be copied. Returns
 * how many messages came back.
 */
export async function thawMessages(
  db: Queryable,
  env: number,
  conv: number,
  records: readonly MessageRecord[],
  keepsCold = false,
): Promise<number> {
  if (records.length === 0) return 0;
  const valid = records.map((r) => ({ ...r, metadata: json(r.metadata), attachments: json(r.attachments) }));
  return restoreMessages(db, env, conv, valid, keepsCold);
}

/** How many messages of one conversation one look brings back. */
const mostOfOne = 100;

export async function thawWanted(db: Db, env: number, histories: readonly History[]): Promise<void> {
  for (const { conv, id, seq } of await wantedMessages(db, env)) {
    let next: number | null = seq;
    for (let n = 0; next !== null && n < mostOfOne; n++)
      next = await thawOne(db, env, histories, conv, id, next);
  }
}

/** Returns the message of the conversation that is needed next. */
async function thawOne(
  db: Db,
  env: number,
  histories: readonly History[],
  conv: number,
  id: string,
  seq: number,
): Promise<number | null> {
  let found: MessageRecord[] = [];
  for (const history of histories) {
    found = (await history.read({ conversationId: id, before: seq + 1, after: seq - 1, limit: 1 })).data;
    if (found.length > 0) break;
  }
  return db.tx(async (tx) => {
    await holdConversation(tx, env, conv);
    await thawMessages(tx, env, conv, found);
    return clearWanted(tx, env, conv, seq);
  });
}
