import type { IncomingMessage } from 'node:http';
import type { Services } from '../../features/context.ts';
import type { TypedHandlers } from '../../features/handlers.ts';
import type { SocketHistory } from '../../features/live/history.ts';
import type { Recorder } from '../../features/logs/recorder.ts';
import type { NodeBus } from '../../features/node-bus.ts';
import type { Authenticator } from '../../features/tenancy/authenticate.ts';
import type { Timers } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import type { Hub } from '../../realtime/hub.ts';
import type { LiveSockets } from '../../realtime/live-sockets.ts';
import type { Presence } from '../../realtime/presence.ts';
import type { ReceiptRelay } from '../../realtime/receipts.ts';
import type { Tracing } from '../../realtime/tracing.ts';
import type { OperationTurns } from '../turns.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';
import type { Writer } from './writer.ts';

/** What the gateway gets; its parts name what they need of it. */
export interface GatewayOptions {
  db: Db;
  services: Services;
  handlers: TypedHandlers;
  authenticator: Authenticator;
  limiter: RateLimiter;
  turns: OperationTurns;
  bus: NodeBus;
  hub: Hub;
  presence: Presence;
  sockets: LiveSockets;
  sessions: Sessions;
  receipts: ReceiptRelay;
  writer: Writer<Session>;
  node: string;
  logger: Logger;
  timers: Timers;
  /** Identifies the life of the store: another value after it was restored to an earlier state or taken over. */
  storeEpoch: () => string;
  /** True if the client's address is what the proxy in front says (CHAT_TRUST_PROXY). */
  trustProxy: boolean;
  /** Whether a request comes from this machine, directly (this-machine.ts). */
  isLocal: (request: IncomingMessage) => boolean;
  /** How many connections the process may have open; sockets may use most of them. */
  maxConnections: number;
  /** A socket of this address was refused because the address has too many. */
  onRefused: (address: string) => void;
  random: () => number;
  recorder: Pick<Recorder, 'add'>;
  history: Pick<SocketHistory, 'opened' | 'closed'>;
  tracing: Tracing;
}
