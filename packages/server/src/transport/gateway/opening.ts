import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import type { ServerOptions, WebSocket } from 'ws';
import { ApiError, limits, realtime } from '@parley/protocol';
import { networkOf } from '../../platform/address.ts';
import type { Clock, Ids } from '../../platform/clock.ts';
import { rawFailure } from '../rest/raw-answer.ts';
import type { GatewayOptions } from './options.ts';
import { Session } from './session.ts';
import type { SilentBounds } from './sessions.ts';
import { checkUpgrade, clientAddress } from './upgrade.ts';

/** What happens on an open socket. */
export interface SocketEvents {
  message(session: Session, data: Buffer, isBinary: boolean): void;
  ping(session: Session, data: Buffer): void;
  pong(session: Session, data: Buffer): void;
  closed(session: Session, code: number): void;
}

export interface OpeningOptions extends Pick<
  GatewayOptions,
  'sessions' | 'writer' | 'timers' | 'limiter' | 'trustProxy' | 'isLocal' | 'maxConnections' | 'onRefused'
> {
  clock: Clock;
  ids: Ids;
  silentBounds: SilentBounds;
  events: SocketEvents;
}

/** Milliseconds that a client may take to answer a close, or to read why it was refused. */
const closeMs = 2_000;
/** No real client sends a frame in more fragments. */
const maxFragments = 32;
/** Sockets may use this share of the connections; the others are for requests. */
const socketShare = 0.9;

/** RFC 6455, 4.4, and RFC 9110, 15.5.22. */
const versionHeaders = {
  'Sec-WebSocket-Version': '13',
  Upgrade: 'websocket',
  Connection: 'Upgrade, close',
};

/** The types of the library do not know all of these options yet. */
const serverOptions: ServerOptions & { maxFragments: number; closeTimeout: number } = {
  noServer: true,
  maxPayload: limits.frameBytes,
  maxFragments,
  perMessageDeflate: false,
  clientTracking: false,
  autoPong: false,
  closeTimeout: closeMs,
  handleProtocols: () => realtime.subprotocol,
};

type Tagged = WebSocket & { session: Session };

/** One function for all sockets, because a closure per socket would cost memory; `this` is the socket. */
const onSocket = <A extends unknown[]>(run: (session: Session, ...args: A) => void) =>
  function (this: WebSocket, ...args: A): void {
    run((this as Tagged).session, ...args);
  };

/** Opens sockets: an upgrade request is refused, or becomes a session that has to log in. */
export class Opening {
  readonly #options: OpeningOptions;
  readonly #wss: WebSocketServer;
  readonly #listeners: Parameters<WebSocket['on']>[];
  /** Set at shutdown: no more sockets are opened. */
  closed = false;

  constructor(options: OpeningOptions) {
    this.#options = options;
    const { events } = options;
    this.#listeners = [
      ['message', onSocket(events.message)],
      ['ping', onSocket(events.ping)],
      ['pong', onSocket(events.pong)],
      ['close', onSocket(events.closed)],
      ['error', ignore],
    ];
    this.#wss = new WebSocketServer(serverOptions);
    this.#wss.on('wsClientError', (error: Error, socket: Duplex, request: IncomingMessage) => {
      const refusal = new ApiError('invalid_request', { message: `${error.message}.` });
      void this.#refuse(socket, this.#addressOf(request), refusal);
    });
  }

  listen(server: Server): void {
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.#upgrade(request, socket, head),
    );
  }

  #addressOf(request: IncomingMessage): string {
    return networkOf(clientAddress(request, this.#options.trustProxy));
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', destroyIt);
    const address = this.#addressOf(request);
    const checked = checkUpgrade(request);
    const refusal = checked instanceof ApiError ? checked : this.#noRoom(address);
    if (refusal) {
      if (refusal.code === 'rate_limited') this.#options.onRefused(address);
      const headers = refusal.code === 'upgrade_required' ? versionHeaders : {};
      return void this.#refuse(socket, address, refusal, headers);
    }
    const { sessions, writer, clock } = this.#options;
    const { named, sdk } = checked as Exclude<typeof checked, ApiError>;
    this.#wss.handleUpgrade(request, socket, head, (ws) => {
      const session = new Session(ws, socket, writer, clock, {
        address,
        named,
        sdk,
        local: this.#options.isLocal(request),
      });
      (ws as Tagged).session = session;
      sessions.add(session);
      for (const [event, listener] of this.#listeners) ws.on(event, listener);
    });
  }

  #noRoom(address: string): ApiError | null {
    const { sessions, silentBounds, maxConnections } = this.#options;
    if (this.closed)
      return new ApiError('service_unavailable', { message: 'This node is shutting down: connect again.' });
    if (sessions.size >= Math.floor(maxConnections * socketShare))
      return new ApiError('service_unavailable', {
        message: 'This node holds no more sockets. Connect again later.',
      });
    const room = sessions.room(silentBounds, address);
    if (room === 'address full')
      return new ApiError('rate_limited', {
        message: 'Too many sockets of this address have not logged in.',
        retryAfterMs: realtime.authTimeoutMs,
      });
    if (room === 'all full')
      return new ApiError('service_unavailable', {
        message: 'Too many sockets have not logged in.',
        retryAfterMs: realtime.authTimeoutMs,
      });
    return null;
  }

  /** Answers with the error in the form of errors#body, and the headers that every answer has. */
  async #refuse(
    socket: Duplex,
    address: string,
    error: ApiError,
    headers: Record<string, string> = {},
  ): Promise<void> {
    // The other side may neither read nor end its half of the connection.
    socket.once(
      'close',
      this.#options.timers.after(closeMs, () => socket.destroy()),
    );
    socket.once('finish', () => socket.destroy());
    socket.end(await rawFailure(this.#options, error, address, headers));
  }
}

const ignore = (): void => undefined;
function destroyIt(this: Duplex): void {
  this.destroy();
}
