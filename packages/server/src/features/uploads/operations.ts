import { ApiError, limits } from '@parley/protocol';
import { invalid, notFound } from '../../platform/api-errors.ts';
import type { Context, Operation } from '../context.ts';
import { readable, requireWritingIn } from '../conversations/access.ts';
import { requirePosting } from '../conversations/rules.ts';
import type { SeenConversation } from '../conversations/sql.ts';
import { allowedType, essence, resourceOf, ruleOf } from './content/allowed.ts';
import { verify } from './content/verify.ts';
import * as sql from './sql.ts';
import type { AttachmentRow } from './sql.ts';

/**
 * uploads#direct: the service signs tickets, checks objects and deletes them; the bytes go directly
 * to the storage.
 */

const hour = 3_600;
/**
 * Seconds. An upload that is not completed within an hour after its ticket ended, and an attachment that no message
 * uses within a day, are deleted.
 */
const keepPending = limits.uploadTicketSeconds + hour;
const keepReady = 24 * hour;

const missing = () => notFound('Attachment');

export const create: Operation<Context, 'uploads.create'> = async (ctx, input) => {
  const { ids, clock, media, plans } = ctx.services;
  const conv = await readable(ctx, ctx.db, input.conversationId);
  if (conv.deletedAt) throw notFound('Conversation');
  await requireWritingIn(ctx, ctx.db, conv);
  requirePosting(conv, { role: conv.role, actor: ctx.caller.user });
  if (input.size > limits.fileBytes) throw new ApiError('file_too_large', { param: 'size' });
  const verdict = allowedType(input.contentType, input.filename);
  if (!verdict.ok)
    throw invalid(
      ruleOf(input.contentType) ? 'filename' : 'contentType',
      `The upload is refused: ${verdict.reason}.`,
    );
  const voice = (['durationMs', 'waveform'] as const).find((field) => input[field] !== undefined);
  if (voice && ruleOf(input.contentType)?.kind !== 'audio')
    throw invalid(voice, `${voice} is for audio types only.`);
  const id = ids.make('attachment');
  const contentType = essence(input.contentType);
  const object = { key: `${ctx.env.id}/${id}`, contentType, resource: resourceOf(contentType) };
  const expiresAt = new Date(clock.now() + limits.uploadTicketSeconds * 1000);
  const { filename, size } = input;
  const place = await media.placeFor(ctx.env.no);
  const upload = await media.reach(ctx.env.no, place, (storage) =>
    storage.ticket({ ...object, filename, size, expiresAt }),
  );
  const announced = await sql.insertUpload(ctx.db, ctx.env.no, conv.no, plans[ctx.env.plan].mediaBytes, {
    ...object,
    storage: place,
    id,
    uploader: ctx.caller.user?.no ?? null,
    name: filename,
    size,
    width: input.width || null,
    height: input.height || null,
    durationMs: input.durationMs ?? null,
    waveform: input.waveform ?? null,
    keepSeconds: keepPending,
  });
  if (!announced)
    throw new ApiError('plan_limit_reached', {
      message: 'The files of this environment fill what its plan allows: delete some first.',
    });
  return { attachmentId: id, upload, expiresAt: expiresAt.toISOString() };
};

export const complete: Operation<Context, 'uploads.complete'> = async (ctx, input) => {
  const { media } = ctx.services;
  const env = ctx.env.no;
  const { row, conv } = await found(ctx, input.attachmentId);
  await requireWritingIn(ctx, ctx.db, conv);
  if (ctx.caller.user && row.uploader !== ctx.caller.user.no)
    throw new ApiError('forbidden', { message: 'Only the uploader may complete an upload.' });
  if (row.readyAt) return sql.viewReady(row);
  const stored = await media.reach(env, row.storage, (storage) => storage.inspect(row.key, row.resource));
  if (!stored) throw new ApiError('attachment_not_ready', { message: 'The file is not uploaded yet.' });
  const verified = verify(row.contentType, row.name, row.size, stored);
  if (!verified.ok) {
    await media.discard(env, row.id);
    throw new ApiError('invalid_request', { message: `The upload is refused: ${verified.reason}.` });
  }
  const announced = verified.mimeType.startsWith('image/') ? row : null;
  const ready = await sql.markReady(ctx.db, env, row.id, {
    mimeType: verified.mimeType,
    width: verified.width ?? announced?.width ?? null,
    height: verified.height ?? announced?.height ?? null,
    keepSeconds: keepReady,
  });
  if (!ready) throw missing();
  return sql.viewReady(ready);
};

export const url: Operation<Context, 'attachments.url'> = async (ctx, input) => {
  const { clock, media } = ctx.services;
  const { row } = await found(ctx, input.attachmentId);
  if (!row.readyAt) throw new ApiError('attachment_not_ready');
  const expiresIn = input.expiresIn ?? limits.downloadUrlSeconds.default;
  const expiresAt = new Date(clock.now() + expiresIn * 1000).toISOString();
  const contentType = row.mimeType!;
  const address = await media.reach(ctx.env.no, row.storage, (storage) =>
    storage.downloadUrl({
      key: row.key,
      resource: row.resource,
      filename: row.name,
      contentType,
      disposition: contentType.startsWith('image/') ? 'inline' : 'attachment',
      expiresIn,
    }),
  );
  return { url: address, expiresAt };
};

/** The attachment, if the caller may see its conversation; otherwise it counts as not found. */
async function found(ctx: Context, id: string): Promise<{ row: AttachmentRow; conv: SeenConversation }> {
  const row = await sql.findAttachment(ctx.db, ctx.env.no, id);
  if (!row) throw missing();
  try {
    return { row, conv: await readable(ctx, ctx.db, row.cid) };
  } catch (error) {
    throw error instanceof ApiError && error.code === 'not_found' ? missing() : error;
  }
}
