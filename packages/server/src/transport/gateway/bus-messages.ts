import type { EphemeralFrames, EventName, TraceLine } from '@parley/protocol';
import type { SocketChoice } from '../../features/context.ts';
import type { LogEvent } from '../../log/events.ts';

/** Messages between nodes: a letter for the kind, a JSON head, and the socket frame unchanged. */

export const encodeEvent = ({ frame, ...head }: LogEvent): string => `E${JSON.stringify(head)}\n${frame}`;

export function decodeEvent(payload: string): LogEvent | null {
  const split = payload.indexOf('\n');
  if (payload[0] !== 'E' || split < 0) return null;
  const head = JSON.parse(payload.slice(1, split)) as Omit<LogEvent, 'frame'> & { e: EventName };
  return { ...head, frame: payload.slice(split + 1) };
}

export const encodeRelay = (frame: string, except: number | null): string => `X${except ?? ''}\n${frame}`;

export function decodeRelay(payload: string): { frame: string; except: number | null } | null {
  const split = payload.indexOf('\n');
  if (payload[0] !== 'X' || split < 0) return null;
  return { frame: payload.slice(split + 1), except: split === 1 ? null : Number(payload.slice(1, split)) };
}

/** A mark that moved. Each node delays it for its own sockets as long as needed. */
export const encodeReceipt = (receipt: EphemeralFrames['receipt']): string => `R${JSON.stringify(receipt)}`;
export const decodeReceipt = (payload: string): EphemeralFrames['receipt'] =>
  JSON.parse(payload.slice(1)) as EphemeralFrames['receipt'];

/** A frame for the sockets of the user whose channel carries it. */
export const encodeToUser = (
  env: number,
  frame: string,
  { only, except, confirm }: SocketChoice = {},
): string =>
  `U${env}${only ? ` +${only}` : except ? ` -${except}` : ''}${confirm ? ` ?${confirm}` : ''}\n${frame}`;

const choices: Record<string, keyof SocketChoice> = { '+': 'only', '-': 'except', '?': 'confirm' };

export function decodeToUser(payload: string): { env: number; frame: string; where: SocketChoice } | null {
  const split = payload.indexOf('\n');
  if (payload[0] !== 'U' || split < 0) return null;
  const [env, ...given] = payload.slice(1, split).split(' ');
  const where: SocketChoice = {};
  for (const one of given) {
    const choice = choices[one[0]!];
    if (choice) where[choice] = one.slice(1);
  }
  return { env: Number(env), frame: payload.slice(split + 1), where };
}

/** The user's sockets must close with this code. */
export const encodeOut = (code: number): string => `O${code}`;
/** The session must make room for a newer one of its user. */
export const encodeEvict = (session: string): string => `V${session}`;
/** The session is ended by people who run the environment. */
export const encodeEnd = (session: string): string => `K${session}`;
/** A presence frame for the watchers of a user. */
export const encodePresence = (frame: string): string => `P${frame}`;

/** A request to trace a user's sockets for some time (0 ends it), with the results sent to this node. */
export interface AskedTrace {
  id: string;
  env: number;
  user: number;
  node: string;
  ms: number;
}
export const encodeTrace = (asked: AskedTrace): string => `T${JSON.stringify(asked)}`;
export const decodeTrace = (payload: string): AskedTrace | null =>
  payload[0] === 'T' ? (JSON.parse(payload.slice(1)) as AskedTrace) : null;

/** What a node collected for a trace. */
export interface Traced {
  id: string;
  lines: TraceLine[];
  dropped: number;
}
export const encodeTraced = (traced: Traced): string => `Y${JSON.stringify(traced)}`;
export const decodeTraced = (payload: string): Traced | null =>
  payload[0] === 'Y' ? (JSON.parse(payload.slice(1)) as Traced) : null;
