import type { EventName, SocketEvents } from '@parley/protocol';
import { typingLimits } from './sql/guards.ts';

/** A committed event on its way to open sockets. */
export interface LogEvent {
  env: number;
  conv: number;
  cid: string;
  seq: number;
  e: EventName;
  /** The whole socket frame, encoded once. */
  frame: string;
  /** Numbers of the users who join the conversation (member.added, conversation.created) or leave it (member.removed). */
  join?: number[];
  leave?: number[];
  /** Whether not every member may type from now on; not said by events that do not change it. */
  limited?: boolean;
}

export const limitsOf = ({ flags }: { flags: number }): Pick<LogEvent, 'limited'> => ({
  limited: (flags & typingLimits) !== 0,
});

export function logEvent<K extends EventName>(
  at: { env: number; conv: number; cid: string; seq: number },
  e: K,
  d: SocketEvents[K],
  routes: { join?: number[]; leave?: number[] } = {},
): LogEvent {
  return { ...at, e, ...routes, frame: eventFrame(at.cid, at.seq, e, d) };
}

export const eventFrame = (cid: string, seq: number, e: EventName, d: unknown): string =>
  `{"t":"event","e":"${e}","cid":"${cid}","seq":${seq},"d":${JSON.stringify(d)}}`;
