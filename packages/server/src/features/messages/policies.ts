import { ApiError } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import { wasSent } from '../../log/sql/append.ts';
import type { Context } from '../context.ts';
import { readable } from '../conversations/access.ts';
import { userNumbers } from '../users/sql.ts';
import { badWords, isDirect, listsFor, rejected } from '../words/check.ts';
import { askBeforeSend } from './before-send.ts';
import type { Draft, SendInput } from './draft.ts';
import { allowAll, checkMentions, isForAll, storedMentions } from './mentions.ts';
import { newPoll } from './polls.ts';

/**
 * What happens to a message before it is appended. The policies run in the order of the list; each refuses the message
 * by throwing an ApiError, or passes it on, changed or not. A rule that needs the conversation's lock belongs into
 * `append_verdict` (log/sql/append_rules.sql.ts).
 */

type Policy = (ctx: Context, draft: Draft) => Draft | Promise<Draft>;

/** Whether the draft repeats a message that was stored before: it is answered as at first, whatever changed since. */
async function wasRepeated(ctx: Context, { input, sender }: Draft): Promise<boolean> {
  const { conversationId, clientMsgId } = input;
  if (clientMsgId === undefined) return false;
  return wasSent(ctx.db, { env: ctx.env.no, conversationId, sender: sender?.no ?? null, clientMsgId });
}

const attachmentsOnce: Policy = (_ctx, draft) => {
  const files = draft.input.attachments;
  if (files && new Set(files).size < files.length)
    throw invalid('attachments', 'An attachment can be used once.');
  return draft;
};

const content: Policy = (_ctx, draft) => {
  const { text, attachments, metadata, poll } = draft.input;
  if (!text && !attachments?.length && Object.keys(metadata ?? {}).length === 0 && !poll)
    throw invalid('text', 'A message needs text, an attachment, metadata or a poll.');
  return draft;
};

const ranges: Policy = (ctx, draft) => {
  const { text, mentions } = draft.input;
  if (mentions) checkMentions(ctx, text ?? null, mentions);
  return draft;
};

/** Who is mentioned, and whether the sender may mention all together. */
const mentions: Policy = async (ctx, draft) => {
  const { conversationId, mentions: given = [] } = draft.input;
  if (given.length === 0) return draft;
  try {
    if (given.some(isForAll)) {
      const conversation = await readable(ctx, ctx.db, conversationId);
      allowAll(conversation, { role: conversation.role, actor: ctx.caller.user });
    }
    return {
      ...draft,
      extras: { ...draft.extras, mentions: await storedMentions(ctx.db, ctx.env.no, given) },
    };
  } catch (error) {
    if (!(await wasRepeated(ctx, draft))) throw error;
    return draft;
  }
};

/** A user sends for itself; a server for a user whom it names, or a system message. */
const sender: Policy = async (ctx, draft) => {
  const { senderId, clientMsgId, conversationId } = draft.input;
  const { user } = ctx.caller;
  if (user) {
    if (senderId !== undefined)
      throw new ApiError('forbidden', { param: 'senderId', message: 'Only a server may name the sender.' });
    if (clientMsgId === undefined) throw invalid('clientMsgId', 'clientMsgId is required.');
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

/** words#send: the text, and what a poll asks. */
const words: Policy = async (ctx, draft) => {
  const { text, poll, conversationId } = draft.input;
  const lists = text || poll ? listsFor(ctx) : null;
  if (!lists) return draft;
  const automaton = await lists;
  let refused = false;
  let reported = false;
  const look = (said: string): string => {
    const found = automaton.find(said, isDirect(conversationId));
    refused ||= found.reject;
    reported ||= found.report;
    return found.text;
  };
  const input = {
    ...draft.input,
    ...(text ? { text: look(text) } : {}),
    ...(poll
      ? {
          poll: {
            ...poll,
            question: look(poll.question),
            options: poll.options.map((option) => ({ ...option, text: look(option.text) })),
          },
        }
      : {}),
  };
  if (refused && !(await wasRepeated(ctx, draft))) throw rejected(ctx, badWords);
  return { ...draft, input, reported };
};

const poll: Policy = async (ctx, draft) => {
  if (!draft.input.poll) return draft;
  const made = await newPoll(ctx, draft.input.poll, () => wasRepeated(ctx, draft));
  return { ...draft, extras: { ...draft.extras, poll: made } };
};

const policies: readonly Policy[] = [attachmentsOnce, content, ranges, sender, plan, words, mentions, poll];
/** What the hook says instead of the sender is checked as if the sender had said it. */
const hook: Policy = (ctx, draft) =>
  askBeforeSend(ctx, draft, async (rewritten) => {
    let checked = rewritten;
    for (const policy of [content, ranges, mentions]) checked = await policy(ctx, checked);
    return checked;
  });
const hooked: readonly Policy[] = [...policies, hook];

export async function applyPolicies(ctx: Context, input: SendInput): Promise<Draft> {
  let draft: Draft = { input, sender: null, extras: {}, reported: false };
  for (const policy of ctx.env.hooks === 0 ? policies : hooked) draft = await policy(ctx, draft);
  return draft;
}
