import type { Latency } from '../stats.ts';

/** What the harness and the load generator say to each other. */

export type WireName = 'parley' | 'plain' | 'socketio' | 'xmpp' | 'centrifugo';

export interface Account {
  name: string;
  /** A token or a password. */
  secret: string;
  /** The rooms it is in, by the server's names. */
  rooms: string[];
  /** The room it sends to; null: it only listens. */
  speaks: string | null;
}

export interface OpenRequest {
  do: 'open';
  wire: WireName;
  /** Several: accounts take turns. */
  port: number | number[];
  accounts: Account[];
  /** Handshakes under way at once; 0: all. */
  atOnce: number;
}
export interface OpenReport {
  opened: number;
  failed: number;
  firstFailure: string;
  /** Until the last one was in. */
  ms: number;
  login: Latency;
  cpuMs: number;
}

export interface RunRequest {
  do: 'run';
  /** Between two sends of one account; ±10 %. */
  paceMs: number;
  /** Messages sent at once. */
  burst: number;
  warmMs: number;
  windowMs: number;
}
export interface RunReport {
  seconds: number;
  acked: number;
  delivered: number;
  ack: Latency;
  delivery: Latency;
  errors: number;
  firstError: string;
  /** Sockets lost during the run. */
  lost: number;
  /** Of the load generator, in the window. */
  cpuMs: number;
  /** Over the whole run, after everything outstanding had arrived. */
  total: { acked: number; delivered: number };
}

export interface HttpRequest {
  do: 'http';
  port: number;
  /** Whole requests; `@ID@` becomes twelve fresh digits. Taken in turn. */
  requests: string[];
  connections: number;
  warmMs: number;
  windowMs: number;
}
export interface HttpReport {
  seconds: number;
  answered: number;
  refused: number;
  firstRefusal: string;
  latency: Latency;
  cpuMs: number;
}

export type LoadRequest = OpenRequest | RunRequest | HttpRequest | { do: 'close' };
export type LoadReport = OpenReport | RunReport | HttpReport | null;

/** From the generator: the measured window begins or ends, or the answer to the request. */
export type FromLoad = { window: 'begin' | 'end' } | { report: LoadReport } | { failure: string };
