import type { BeforeSend } from '@parley/protocol';
import { atAppend } from '../../../log/sql/append.ts';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { arraysOf } from '../../../platform/postgres/rows.ts';
import type { ConversationRow } from '../../conversations/sql.ts';
import { memberOf } from '../../sql/lookups.ts';

/** What is asked about a message before its hook is. */
export interface Question {
  env: number;
  conversationId: string;
  sender: number | null;
  clientMsgId: string | null;
  attachments: readonly string[];
}

export interface Looked extends Pick<ConversationRow, 'id' | 'type' | 'name' | 'metadata'> {
  /** It was stored before, under this clientMsgId. */
  sent: boolean;
  member: boolean;
  files: BeforeSend['message']['attachments'];
}

/** Looks for many at once; the answer is null if there is no such conversation. */
export async function lookAt(db: Queryable, questions: readonly Question[]): Promise<(Looked | null)[]> {
  const rows = await db.query<Looked & { ord: number }>(
    `SELECT w.ord, c.id, c.type, c.name, c.metadata,
       EXISTS (SELECT 1 FROM sent_before(c.env, c.no, w.usr, w.cmid, ${atAppend})) AS sent,
       EXISTS (SELECT FROM ${memberOf('c.env', 'c.no', 'w.usr')} m OFFSET 0) AS member,
       coalesce((SELECT jsonb_agg(jsonb_build_object('id', a.id, 'name', a.name, 'size', a.size, 'mimeType', coalesce(a.mime_type, a.content_type)))
         FROM jsonb_array_elements_text(w.files) f JOIN attachments a ON a.env = c.env AND a.conv = c.no AND a.id = f), '[]') AS files
     FROM unnest($1::int[], $2::text[], $3::bigint[], $4::text[], $5::jsonb[]) WITH ORDINALITY AS w(env, cid, usr, cmid, files, ord)
     CROSS JOIN LATERAL (SELECT * FROM conversations WHERE env = w.env AND id = w.cid AND deleted_at IS NULL LIMIT 1) c`,
    [
      ...arraysOf(questions, 'env', 'conversationId', 'sender', 'clientMsgId'),
      questions.map((q) => JSON.stringify(q.attachments)),
    ],
  );
  const found = new Array<Looked | null>(questions.length).fill(null);
  for (const { ord, ...row } of rows) found[ord - 1] = row;
  return found;
}
