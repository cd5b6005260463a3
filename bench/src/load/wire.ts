import type { Account } from './messages.ts';

export const other = 0;
export const ack = 1;
export const delivery = 2;
export const failure = 3;
export type Kind = typeof other | typeof ack | typeof delivery | typeof failure;

/** The socket as its protocol sees it. */
export interface Speaker {
  readonly account: Account;
  readonly number: number;
  /** Requests made so far. */
  requests: number;
  send(payload: string): void;
  /** Logged in. */
  ready(): void;
  fail(why: string): void;
}

/** How a server's protocol looks on a WebSocket. */
export interface Wire {
  path: string;
  subprotocol: string | null;
  /** True: the confirmation of a send is its own delivery. */
  reflected: boolean;
  /** True: a frame can carry several messages, one on each line. */
  lines?: boolean;
  opened(client: Speaker): void;
  /** Every text until the client is `ready`. */
  login(client: Speaker, text: string): void;
  message(client: Speaker, room: string, text: string): string;
  /** What a frame is, from its first bytes. */
  kind(bytes: Buffer, start: number): Kind;
  /** Frames that are neither confirmation nor delivery: pings want their answer. */
  other(client: Speaker, text: string): void;
}
