import { ApiError } from '@parley/protocol';
import { invalid, notFound } from '../platform/api-errors.ts';

/** The errors for what the log's SQL functions answer instead of `ok`. */
export const refusals = {
  not_found: () => notFound('Conversation'),
  not_member: () => new ApiError('not_member'),
  pair_blocked: () => new ApiError('blocked'),
  restricted: (ms?: number) => restricted('The user is silenced.', ms),
  posting: () => ruledOut('posting', 'Only moderators can write here.'),
  reacting: () => ruledOut('reacting', 'Nobody can react to messages here.'),
  slow: (ms?: number) =>
    new ApiError('rate_limited', {
      message: 'Slow mode is on: wait before the next message.',
      retryAfterMs: ms!,
      details: { slowMode: true },
    }),
  reply_not_found: () => invalid('replyTo', 'replyTo must be a message of the same conversation.'),
  attachment_not_ready: () =>
    new ApiError('attachment_not_ready', {
      param: 'attachments',
      message: 'An attachment is not ready, is used already, or is not of this conversation and sender.',
    }),
} as const;

const ruledOut = (rule: string, message: string): ApiError =>
  new ApiError('restricted', { message, details: { rule } });

/** A refusal that may end: after `ms` milliseconds, if they are given and finite. */
export function restricted(message: string, ms?: number): ApiError {
  return new ApiError('restricted', {
    message,
    ...(ms === undefined || ms === Infinity ? {} : { retryAfterMs: ms }),
  });
}

/** @param answer the name, and behind it the milliseconds after which it ends, if it does. */
export function refusal(answer: string): ApiError {
  const [status, ms] = answer.split(' ');
  return refusals[status as keyof typeof refusals](ms === undefined ? undefined : Number(ms));
}
