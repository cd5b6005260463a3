import { ApiError } from '@parley/protocol';
import type { Input } from '@parley/protocol';
import { wasSent } from '../../log/sql/append.ts';
import type { Context } from '../context.ts';
import { readable } from '../conversations/access.ts';
import { userNumbers } from '../users/sql.ts';
import { isDirect, listsFor, rejected } from '../words/check.ts';

/**
 * What happens to a message before it is appended. The policies run in the order of the list; each refuses the message
 * by throwing an ApiError, or passes it on, changed or not. A rule that needs the conversation's lock belongs into
 * `append_verdict` (log/sql/append_rules.sql).
 */

export type SendInput = Input<'messages.send'>;

export interface Draft {
  readonly input: SendInput;
  /** null for a system message, and before the policy `sender`. */
  readonly sender: { no: number; id: string } | null;
}

type Policy = (ctx: Context, draft: Draft) => Draft | Promise<Draft>;

const attachmentsOnce: Policy = (_ctx, draft) => {
  const files = draft.input.attachments;
  if (files && new Set(files).size < files.length)
    throw new ApiError('invalid_request', {
      param: 'attachments',
      message: 'An attachment can be used once.',
    });
  return draft;
};

const content: Policy = (_ctx, draft) => {
  const { text, attachments, metadata } = draft.input;
  if (!text && !attachments?.length && Object.keys(metadata ?? {}).length === 0)
    throw new ApiError('invalid_request', {
      param: 'text',
      message: 'A message needs text, an attachment or metadata.',
    });
  return draft;
};

/** A user sends for itself; a server for a user whom it names, or a system message. */
const sender: Policy = async (ctx, draft) => {
  const { senderId, clientMsgId, conversationId } = draft.input;
  const { user } = ctx.caller;
  if (user) {
    if (senderId !== undefined)
      throw new ApiError('forbidden', { param: 'senderId', message: 'Only a server may name the sender.' });
    if (clientMsgId === undefined)
      throw new ApiError('invalid_request', { param: 'clientMsgId', message: 'clientMsgId is required.' });
    return { ...draft, sender: user };
  }
  if (senderId === undefined) return draft;
  const no = (await userNumbers(ctx.db, ctx.env.no, [senderId])).get(senderId);
  if (no !== undefined) return { ...draft, sender: { no, id: senderId } };
  await readable(ctx, ctx.db, conversationId);
  throw new ApiError('not_member');
};

/** The plan's ceiling of monthly active users. */
const plan: Policy = async (ctx, draft) => {
  if (draft.sender) await ctx.services.analytics.active.admit(ctx.env, draft.sender.no);
  return draft;
};

/** words#send. A repetition of what was stored before is answered as at first, whatever the lists say now. */
const words: Policy = async (ctx, draft) => {
  const { text, conversationId, clientMsgId } = draft.input;
  const lists = text === undefined ? null : listsFor(ctx);
  if (!lists) return draft;
  const found = (await lists).find(text!, isDirect(conversationId));
  if (found.reject) {
    const sent = { env: ctx.env.no, conversationId, sender: draft.sender!.no, clientMsgId: clientMsgId! };
    if (!(await wasSent(ctx.db, sent))) throw rejected();
  }
  return { ...draft, input: { ...draft.input, text: found.text } };
};

const policies: readonly Policy[] = [attachmentsOnce, content, sender, plan, words];

export async function applyPolicies(ctx: Context, input: SendInput): Promise<Draft> {
  let draft: Draft = { input, sender: null };
  for (const policy of policies) draft = await policy(ctx, draft);
  return draft;
}
