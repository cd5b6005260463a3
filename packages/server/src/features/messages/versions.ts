import type { Input, MessageVersion, Output } from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import { noteReading } from '../audit/content.ts';
import type { Context } from '../context.ts';
import { findMessage } from '../sql/message-reader.ts';
import { changesOf, textsOf } from './sql.ts';

/**
 * The versions of a message. An edit leaves an event that says when and by whom, as long as events are stored. Texts
 * of earlier versions are known only from webhook payloads, as long as those are stored.
 */
export async function versions(
  ctx: Context,
  input: Input<'messages.versions'>,
): Promise<Output<'messages.versions'>> {
  const row = await findMessage(ctx.db, ctx.env.no, input.messageId);
  if (!row) throw notFound('Message');
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
