import { ApiError } from '@parley/protocol';

/** The errors for what the log's SQL functions answer instead of `ok`. */
export const refusals = {
  not_found: () => new ApiError('not_found', { message: 'Conversation not found.' }),
  not_member: () => new ApiError('not_member'),
  pair_blocked: () => new ApiError('blocked'),
  reply_not_found: () =>
    new ApiError('invalid_request', {
      param: 'replyTo',
      message: 'replyTo must be a message of the same conversation.',
    }),
  attachment_not_ready: () =>
    new ApiError('attachment_not_ready', {
      param: 'attachments',
      message: 'An attachment is not ready, is used already, or is not of this conversation and sender.',
    }),
} as const;

export const refusal = (status: string): ApiError => refusals[status as keyof typeof refusals]();
