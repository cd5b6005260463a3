import { ApiError, idPrefixes } from '@parley/protocol';
import type { Context } from '../context.ts';
import type { Automaton } from './automaton.ts';

/** The lists that bind the caller; null if none do. Servers are not bound. */
export const listsFor = (ctx: Context): Promise<Automaton> | null =>
  ctx.caller.user ? ctx.services.words.of(ctx.env) : null;

/** The refusal of what somebody wrote, which is counted. */
export function rejected(ctx: Context, message: string): ApiError {
  ctx.services.analytics.tally.add(ctx.env.no, 'rejected');
  return new ApiError('message_rejected', { message });
}

/** Whether word lists report. */
export const reportsOn = ({ settings }: Context['env']): boolean =>
  !settings.disabledFeatures.includes('reports');

export const badWords = 'The message has words that are not allowed here.';

export const isDirect = (conversationId: string): boolean =>
  conversationId.startsWith(idPrefixes.directConversation);
