import type { EventFrame, Message, Reactions, SocketEvents } from '../types.ts';

/** Reactions as an event, an ack or one's own devices tell them. */
export type ToldReactions = { id: string; revision: number } & Partial<
  Reactions & Pick<SocketEvents['message.reactions'], 'changes' | 'more'>
>;
export interface ToldPin {
  e: 'message.pinned';
  d: SocketEvents['message.pinned'];
}
/** What only this user is told, or an answer says. */
export type Told =
  | { e: 'reaction.own'; d: ToldReactions }
  | { e: 'message.enriched'; d: SocketEvents['message.enriched'] }
  | ToldPin;
/** What changes messages: events of the stream, and the rest. */
export type Applied = EventFrame | Told;

/** A message after an event of an extension. */
export type Change = (message: Message, event: Applied, me: string | null) => Message;
