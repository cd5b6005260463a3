import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';
import { limits, realtime } from '@parley/protocol';
import type { Clock } from '../../platform/clock.ts';
import { Session } from './session.ts';
import type { Sessions } from './sessions.ts';
import { checkUpgrade, refuse } from './upgrade.ts';
import type { Writer } from './writer.ts';

/** What becomes of a socket once it is open. */
export interface SocketEvents {
  message(session: Session, data: Buffer, isBinary: boolean): void;
  ping(session: Session): void;
  closed(session: Session): void;
}

type Tagged = WebSocket & { session: Session };

/** Opens sockets: an upgrade is checked and refused, or becomes a session that has to log in. */
export class Opening {
  readonly #wss: WebSocketServer;
  readonly #sessions: Sessions;
  readonly #writer: Writer<Session>;
  readonly #clock: Clock;
  readonly #onMessage: (this: WebSocket, data: Buffer, isBinary: boolean) => void;
  readonly #onPing: (this: WebSocket) => void;
  readonly #onClose: (this: WebSocket) => void;
  /** At shutdown: no socket is opened any more. */
  closed = false;

  constructor(options: { sessions: Sessions; writer: Writer<Session>; clock: Clock; events: SocketEvents }) {
    this.#sessions = options.sessions;
    this.#writer = options.writer;
    this.#clock = options.clock;
    const { events } = options;
    // One function for all sockets, because a closure each would cost memory: `this` is the socket.
    this.#onMessage = function (data, isBinary) {
      events.message((this as Tagged).session, data, isBinary);
    };
    this.#onPing = function () {
      events.ping((this as Tagged).session);
    };
    this.#onClose = function () {
      events.closed((this as Tagged).session);
    };
    this.#wss = new WebSocketServer({
      noServer: true,
      maxPayload: limits.frameBytes,
      perMessageDeflate: false,
      clientTracking: false,
      handleProtocols: () => realtime.subprotocol,
    });
  }

  listen(server: Server): void {
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.#upgrade(request, socket, head),
    );
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', destroyIt);
    const checked = checkUpgrade(request);
    if ('why' in checked) return refuse(socket, checked.status, checked.why);
    if (this.closed) return refuse(socket, 503, 'This node is shutting down: connect again.');
    this.#wss.handleUpgrade(request, socket, head, (ws) => {
      const session = new Session(ws, socket, this.#writer, checked.named, this.#clock);
      (ws as Tagged).session = session;
      this.#sessions.add(session);
      ws.on('message', this.#onMessage);
      ws.on('ping', this.#onPing);
      ws.on('close', this.#onClose);
      ws.on('error', ignore);
    });
  }
}

const ignore = (): void => undefined;
function destroyIt(this: Duplex): void {
  this.destroy();
}
