import type { MessageOrTombstone } from '../types.ts';

/** Whether the message of somebody else is for this user, by name or for all. */
export const isMentioned = ({ senderId, mentions }: MessageOrTombstone, me: string | null): boolean =>
  senderId !== me && !!mentions?.some(({ type, userId }) => type !== 'user' || userId === me);
