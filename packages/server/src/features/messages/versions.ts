import type { Input, MessageVersion, Output } from '@parley/protocol';
import { ApiError } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { noteReading } from '../audit/content.ts';
import type { Context } from '../context.ts';
import { findMessage } from '../message-reader.ts';
import type { MessageRow } from '../message-reader.ts';

/**
 * The versions of a message. An edit leaves an event that says when and by whom, as long as events are stored. Texts
 * of earlier versions are known only from webhook payloads, as long as those are stored.
 */
export async function versions(
  ctx: Context,
  input: Input<'messages.versions'>,
): Promise<Output<'messages.versions'>> {
  const row = await findMessage(ctx.db, ctx.env.no, input.messageId);
  if (!row) throw new ApiError('not_found', { message: 'There is no such message.' });
  await noteReading(ctx, { no: row.conv, id: row.cid });
  const [changes, texts] = await Promise.all([
    changesOf(ctx.db, ctx.env.no, row),
    textsOf(ctx.db, ctx.env.no, row),
  ]);
  // A deleted message shows no text, and neither do its versions.
  if (row.deletedAt === null) texts.set(row.version, row.text);
  else texts.clear();
  const said = (version: number) => ({ text: texts.get(version) ?? null, kept: texts.has(version) });
  const edits = changes.filter((c) => c.type === 'edited');
  const data: MessageVersion[] = [
    {
      type: 'created',
      version: 1,
      seq: row.seq,
      at: row.createdAt,
      actorId: row.senderId,
      ...said(1),
    },
    // The last edit made the present version, so versions are numbered backwards from it.
    ...edits.map((edit, i) => {
      const version = row.version - (edits.length - 1 - i);
      return { ...edit, version, ...said(version) };
    }),
    ...changes
      .filter((c) => c.type === 'deleted')
      .map((deletion) => ({ ...deletion, version: row.version, text: null, kept: false })),
  ];
  return { data };
}

type Change = Pick<MessageVersion, 'type' | 'seq' | 'at' | 'actorId'>;

/** How many events after the message are searched, and how many changes are returned. */
const looked = 20_000;
const mostChanges = 200;

const changesOf = (db: Queryable, env: number, { conv, seq }: MessageRow): Promise<Change[]> =>
  db.query<Change>(
    `SELECT CASE e.type WHEN 'message.updated' THEN 'edited' ELSE 'deleted' END AS type, e.seq, e.created_at AS at, u.id AS "actorId"
     FROM (SELECT * FROM events WHERE env = $1 AND conv = $2 AND seq > $3 ORDER BY seq LIMIT ${looked}) e
     LEFT JOIN users u ON u.env = $1 AND u.no = e.actor
     WHERE e.message = $3 AND e.type IN ('message.updated', 'message.deleted') ORDER BY e.seq LIMIT ${mostChanges}`,
    [env, conv, seq],
  );

/** Texts by version, taken from webhook payloads. */
async function textsOf(
  db: Queryable,
  env: number,
  { conv, seq }: MessageRow,
): Promise<Map<number, string | null>> {
  const rows = await db.query<{ data: string }>(
    `SELECT data FROM webhook_payloads WHERE env = $1 AND conv = $2 AND message = $3 AND data IS NOT NULL LIMIT ${mostChanges}`,
    [env, conv, seq],
  );
  const texts = new Map<number, string | null>();
  for (const { data } of rows) {
    const { message } = JSON.parse(data) as { message?: { version?: number; text?: string | null } };
    if (message?.version !== undefined) texts.set(message.version, message.text ?? null);
  }
  return texts;
}
