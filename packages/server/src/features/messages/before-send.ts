import { ApiError } from '@parley/protocol';
import type { BeforeSend } from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import type { Context } from '../context.ts';
import { badAnswer, beforeSendType, readBeforeSend } from '../hooks/before-send.ts';
import type { BeforeSendVerdict, Rewrite } from '../hooks/before-send.ts';
import { HookFailed } from '../hooks/call.ts';
import type { LiveHook } from '../hooks/call.ts';
import type { Looked } from '../hooks/sql/look.ts';
import { parseMetadata } from '../metadata.ts';
import { rejected } from '../words/check.ts';
import { repeatKey } from './draft.ts';
import type { Draft } from './draft.ts';

/**
 * hooks#before-send: what the customer's server decides about a message before it is stored. The store is asked before
 * the call and after it; during the call nothing of it is held.
 */

/** The hook that decides on what this caller writes; null if none does. */
export async function hookFor(ctx: Context, edit: boolean): Promise<LiveHook | null> {
  const hook = await ctx.services.hooks.of(ctx.env, 'before-send');
  if (!hook || (edit && !hook.edits) || (!ctx.caller.user && !hook.servers)) return null;
  return hook;
}

export const concerns = (hook: LiveHook, { type }: { type: string }): boolean =>
  hook.types === null || hook.types === type;

/**
 * Asks the hook about a message or an edit.
 * @param accept makes what is stored from a rewrite; an ApiError of it means that the rewrite is not valid.
 * @returns null if what was given is stored as it is.
 */
export async function decide<T>(
  ctx: Context,
  hook: LiveHook,
  data: BeforeSend,
  accept: (rewrite: Rewrite) => Promise<T>,
): Promise<T | null> {
  const { hooks, analytics } = ctx.services;
  const { tally } = analytics;
  tally.add(ctx.env.no, 'hookCalls');
  let verdict: BeforeSendVerdict & { made?: T };
  try {
    verdict = await hooks.call(hook, {
      type: beforeSendType,
      data,
      read: async (answer) => {
        const given = readBeforeSend(answer);
        if (given.verdict !== 'rewrite') return given;
        return { ...given, made: await accept(given.rewrite).catch(asBadAnswer) };
      },
    });
  } catch (error) {
    if (!(error instanceof HookFailed)) throw error;
    tally.add(ctx.env.no, 'hookFailures');
    if (hook.onFailure === 'reject')
      throw new ApiError(
        'hook_unavailable',
        error.waitMs === undefined ? {} : { retryAfterMs: Math.max(1, Math.ceil(error.waitMs)) },
      );
    tally.add(ctx.env.no, 'hooksFailedOpen');
    hooks.failedOpen(hook.kind);
    return null;
  }
  if (verdict.verdict === 'reject') throw rejected(ctx, verdict.reason);
  return verdict.made ?? null;
}

function asBadAnswer(error: unknown): never {
  if (error instanceof ApiError && (error.row.http ?? 500) < 500)
    throw badAnswer(`the rewrite is not valid: ${error.message}`);
  throw error;
}

/**
 * The policy of a send. A message that was stored before is not asked about: its repetition is answered as at first.
 * @param check what is checked of a message that a client sends.
 */
export async function askBeforeSend(
  ctx: Context,
  draft: Draft,
  check: (rewritten: Draft) => Promise<Draft>,
): Promise<Draft> {
  const hook = await hookFor(ctx, false);
  if (!hook) return draft;
  const { input, sender } = draft;
  const found = await ctx.services.hooks.look({
    env: ctx.env.no,
    conversationId: input.conversationId,
    sender: sender?.no ?? null,
    clientMsgId: input.clientMsgId ?? repeatKey(ctx),
    attachments: input.attachments ?? [],
  });
  // Refused here, not in the commit: what is not asked about must not be stored.
  if (!found) throw notFound('Conversation');
  if (found.sent || !concerns(hook, found)) return draft;
  if (sender && !found.member) throw new ApiError('not_member');
  const decided = await decide(ctx, hook, dataOf(draft, found), (rewrite) =>
    check(rewritten(draft, rewrite)),
  );
  return decided ?? draft;
}

function dataOf({ input, sender }: Draft, found: Looked): BeforeSend {
  const { poll } = input;
  return {
    conversation: conversationOf(found),
    senderId: sender?.id ?? null,
    clientMsgId: input.clientMsgId ?? null,
    edit: null,
    message: {
      text: input.text ?? null,
      replyTo: input.replyTo ?? null,
      threadId: null,
      mentions: input.mentions ?? [],
      attachments: (input.attachments ?? []).flatMap(
        (id) => found.files.find((file) => file.id === id) ?? [],
      ),
      metadata: input.metadata ?? {},
      ...(poll
        ? { poll: { question: poll.question, options: poll.options.map(({ text }) => ({ text })) } }
        : {}),
    },
  };
}

export const conversationOf = ({
  id,
  type,
  name,
  metadata,
}: Pick<Looked, 'id' | 'type' | 'name' | 'metadata'>): BeforeSend['conversation'] => ({
  id,
  type,
  name,
  metadata: parseMetadata(metadata),
});

/** Where the text changes without the mentions, who is mentioned stays, and the ranges go. */
function rewritten(draft: Draft, rewrite: Rewrite): Draft {
  const kept = draft.input.mentions;
  const input = {
    ...draft.input,
    ...rewrite,
    ...(kept && rewrite.text !== undefined && !rewrite.mentions
      ? { mentions: kept.map(({ offset: _, length: __, ...mention }) => mention) }
      : {}),
  };
  const { mentions: _, ...extras } = draft.extras;
  return { ...draft, input, extras };
}
