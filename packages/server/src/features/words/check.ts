import { ApiError, idPrefixes } from '@parley/protocol';
import type { Context } from '../context.ts';
import type { Automaton } from './automaton.ts';

/** The lists that bind the caller; null if none do. Servers are not bound. */
export const listsFor = (ctx: Context): Promise<Automaton> | null =>
  ctx.caller.user ? ctx.services.words.of(ctx.env) : null;

export const rejected = (): ApiError =>
  new ApiError('message_rejected', { message: 'The message has words that are not allowed here.' });

export const isDirect = (conversationId: string): boolean =>
  conversationId.startsWith(idPrefixes.directConversation);
