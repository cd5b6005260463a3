import type { EventFrame, Message, Reactions, SocketEvents } from '../types.ts';

/** Reactions from an event, an ack or the user's other devices. */
export type ToldReactions = { id: string; revision: number } & Partial<
  Reactions & Pick<SocketEvents['message.reactions'], 'changes' | 'more'>
>;
export interface ToldPin {
  e: 'message.pinned';
  d: SocketEvents['message.pinned'];
}
/** Data that only this user or an answer receives. */
export type Told =
  | { e: 'reaction.own'; d: ToldReactions }
  | { e: 'message.enriched'; d: SocketEvents['message.enriched'] }
  | ToldPin;
/** What changes messages: events of the stream, and the rest. */
export type Applied = EventFrame | Told;

/** A message after an event of an extension. */
export type Change = (message: Message, event: Applied, me: string | null) => Message;
