import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';
import { ApiError, helloLimits, limits, realtime } from '@parley/protocol';
import type { CloseCode } from '@parley/protocol';
import type { Services } from '../../features/context.ts';
import type { Authenticator } from '../../features/tenancy/authenticate.ts';
import type { Bus } from '../../platform/bus/port.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import { limitsOf, take } from '../limits.ts';
import { toApiError } from '../rest/reply.ts';
import { encodeEvict, encodeOut } from './bus-messages.ts';
import { Delivery } from './delivery.ts';
import { createDispatch, KeepsOn, parseFrame, requestIdOf } from './dispatch.ts';
import type { Frame } from './dispatch.ts';
import type { Hub } from './hub.ts';
import type { Presence } from './presence.ts';
import { ReceiptRelay } from './receipts.ts';
import { Session, Writer } from './session.ts';
import { StandingCheck } from './standing.ts';
import { TypingThrottle } from './typing.ts';
import { checkUpgrade, refuse } from './upgrade.ts';
import { ackFrame, errorFrame, pushFrame } from './wire.ts';

/** The chat.v1 socket (SPEC 4, Realtime socket): opens, authenticates, dispatches, keeps alive and drains. */

export interface GatewayOptions {
  db: Db;
  services: Services;
  authenticator: Authenticator;
  limiter: RateLimiter;
  bus: Bus;
  hub: Hub;
  presence: Presence;
  node: string;
  logger: Logger;
  random: () => number;
}

const heartbeat = pushFrame('hb', {});
const resyncHint = pushFrame('resync_hint', {});
const tickMs = 200;
const standingMs = 1_000;
/** How long a client that floods is sent away. */
const floodMs = 5_000;
/** How long a close handshake may take at the end of a drain. */
const closingMs = 2_000;

type Tagged = WebSocket & { session: Session };

export class Gateway {
  readonly #options: GatewayOptions;
  readonly #wss: WebSocketServer;
  readonly #writer: Writer;
  readonly #sessions = new Map<string, Session>();
  /** Opened, not yet live; in the order of their opening. */
  readonly #opened = new Set<Session>();
  readonly #receipts: ReceiptRelay;
  readonly #delivery: Delivery;
  readonly #dispatch: ReturnType<typeof createDispatch>;
  readonly #standing: StandingCheck;
  readonly #timers: NodeJS.Timeout[] = [];
  /** Closed sockets that the presence registry has not noted yet. */
  readonly #leaving = new Set<Promise<void>>();
  #draining = false;
  #onEmpty: (() => void) | undefined;

  constructor(options: GatewayOptions) {
    this.#options = options;
    const { services, hub, bus, presence, logger } = options;
    const now = () => services.clock.now();
    this.#writer = new Writer((session) => {
      logger.info({ session: session.id }, 'a socket could not keep up and was cut off');
      session.ws.terminate();
    });
    this.#receipts = new ReceiptRelay((cid, frame) => hub.relay(cid, frame, null), now);
    this.#delivery = new Delivery({
      db: options.db,
      receipt: (mark) => this.#receipts.add(mark),
      now,
      logger,
    });
    this.#dispatch = createDispatch({
      ...options,
      typing: new TypingThrottle(now),
      delivery: this.#delivery,
    });
    this.#standing = new StandingCheck(options.db, this.#sessions);
    this.#wss = new WebSocketServer({
      noServer: true,
      maxPayload: limits.frameBytes,
      perMessageDeflate: false,
      clientTracking: false,
      handleProtocols: () => realtime.subprotocol,
    });
    hub.onLeave = (user) => presence.recheck(hub.users.get(user)?.sessions ?? [], user);
    bus.listen({
      message: (channel, payload) => this.#fromBus(channel, payload),
      restored: () => this.#restored(),
    });
    // Also without sockets of its own (CHAT_ROLES=api): reads over REST make receipts for other nodes' sockets.
    this.#timers.push(setInterval(() => this.#tick(), tickMs).unref());
  }

  get connections(): number {
    return this.#sessions.size;
  }

  get writeSpacing(): number {
    return this.#writer.spacing;
  }

  async start(server: Server): Promise<void> {
    await this.#options.bus.subscribe([`n:${this.#options.node}`]);
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.#upgrade(request, socket, head),
    );
    this.#timers.push(
      setInterval(() => this.#everySecond(), 1_000).unref(),
      setInterval(() => void this.#standing.check(), standingMs).unref(),
    );
  }

  // Signals from the operations of this node.

  receipt(mark: Parameters<Services['signals']['receipt']>[0]): void {
    this.#receipts.add(mark);
  }

  /** Closes the user's sockets here and on every other node. */
  userOut(user: number, code: 4001 | 4003): void {
    this.#closeUser(user, code);
    if (!this.#options.bus.alone) this.#options.bus.publish(`u:${user}`, encodeOut(code));
  }

  #closeUser(user: number, code: CloseCode): void {
    for (const session of [...(this.#options.hub.users.get(user)?.sessions ?? [])]) session.close(code);
  }

  #fromBus(channel: string, payload: string): void {
    switch (payload[0]) {
      case 'E':
        return this.#options.hub.received(payload);
      case 'X':
        return this.#options.hub.receivedRelay(channel, payload);
      case 'O':
        return this.#closeUser(Number(channel.slice(2)), Number(payload.slice(1)) as CloseCode);
      case 'P':
        return this.#options.presence.announced(Number(channel.slice(2)), payload.slice(1));
      case 'V':
        return this.#evict(payload.slice(1));
      default:
        return;
    }
  }

  /** Events of other nodes may be missing: clients sync, and whoever was put out meanwhile is found. */
  #restored(): void {
    for (const session of this.#sessions.values()) session.send(resyncHint);
    this.#standing.checkEveryUser();
  }

  // Opening.

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', destroyIt);
    const checked = checkUpgrade(request);
    if ('why' in checked) return refuse(socket, checked.status, checked.why);
    if (this.#draining) return refuse(socket, 503, 'This node is shutting down: connect again.');
    this.#wss.handleUpgrade(request, socket, head, (ws) => {
      const session = new Session(
        ws,
        socket,
        this.#writer,
        checked.named,
        this.#options.services.clock.now(),
      );
      (ws as Tagged).session = session;
      this.#opened.add(session);
      ws.on('message', this.#onMessage);
      ws.on('ping', this.#onPing);
      ws.on('close', this.#onClose);
      ws.on('error', ignore);
    });
  }

  /** One function for all sockets: `this` is the socket. */
  readonly #onMessage = ((gateway: Gateway) =>
    function (this: WebSocket, data: Buffer, isBinary: boolean) {
      gateway.#message((this as Tagged).session, data, isBinary);
    })(this);
  /** Any received frame counts as liveness. */
  readonly #onPing = ((gateway: Gateway) =>
    function (this: WebSocket) {
      const { session } = this as Tagged;
      session.lastFrameAt = gateway.#options.services.clock.now();
      session.checkBuffered();
    })(this);
  readonly #onClose = ((gateway: Gateway) =>
    function (this: WebSocket) {
      gateway.#closed((this as Tagged).session);
    })(this);

  #message(session: Session, data: Buffer, isBinary: boolean): void {
    if (session.ws.readyState !== 1) return;
    session.lastFrameAt = this.#options.services.clock.now();
    if (!session.spend(data.length, session.lastFrameAt)) return this.#flooded(session);
    let value: unknown;
    const text = isBinary ? '' : data.toString();
    try {
      value = JSON.parse(text);
    } catch {
      return this.#malformed(session);
    }
    session.invalidInARow = 0;
    let frame: Frame;
    try {
      frame = parseFrame(value, text.includes('\\u'));
    } catch (error) {
      if (session.state !== 'live') return this.#early(session);
      return this.#failed(session, requestIdOf(value), error);
    }
    if (session.state === 'live') {
      if (frame.t === 'auth') return session.close(4400, 'auth comes once');
      this.#run(session, frame);
    } else if (session.state === 'opened' && frame.t === 'auth') {
      session.state = 'authenticating';
      void this.#login(session, (frame.d as { token: string }).token);
    } else this.#early(session);
  }

  /** A first frame that is not `auth` (DECISIONS, Socket), or anything between `auth` and `hello`. */
  #early(session: Session): void {
    if (session.state === 'opened') session.close(4001, 'auth comes first');
    else session.close(4400, 'hello comes first');
  }

  /** One that floods may not read either: it is told, and cut off a moment later. */
  #flooded(session: Session): void {
    session.close(4008, JSON.stringify({ retryAfterMs: floodMs }));
    setTimeout(() => session.ws.terminate(), closingMs).unref();
  }

  #malformed(session: Session): void {
    if (session.state !== 'live') return this.#early(session);
    if (++session.invalidInARow >= realtime.invalidFramesInARow) return session.close(4400, 'not JSON text');
    session.send(errorFrame(undefined, new ApiError('invalid_frame', { message: 'Frames are JSON text.' })));
  }

  #run(session: Session, frame: Frame): void {
    let result: Promise<unknown> | void;
    try {
      result = this.#dispatch(session, frame);
    } catch (error) {
      return this.#failed(session, frame.id, error);
    }
    if (result === undefined) return;
    result.then(
      (d) => session.send(ackFrame(frame.id!, d)),
      (error: unknown) => this.#failed(session, frame.id, error),
    );
  }

  #failed(session: Session, re: string | number | undefined, error: unknown): void {
    if (error instanceof KeepsOn)
      return session.close(4008, JSON.stringify({ retryAfterMs: error.retryAfterMs }));
    const api = toApiError(error);
    if (api.code === 'internal')
      this.#options.logger.error({ session: session.id, err: error }, 'a frame failed');
    const { socket } = api.row;
    if (typeof socket === 'object' && socket !== null) return session.close(socket.close, closeReason(api));
    session.send(errorFrame(re, api));
  }

  // Handshake.

  async #login(session: Session, token: string): Promise<void> {
    const { services, authenticator, presence, hub, logger, limiter } = this.#options;
    try {
      const { caller, expiresAt, keyId, again } = await authenticator.authenticate(token, session.named);
      if (caller.kind !== 'client') return session.close(4001);
      const { refused } = await take(limiter, limitsOf(caller, 'request', services.plans));
      if (refused) throw new KeepsOn(refused.retryAfterMs!);
      const ceiling = services.plans[caller.env.plan].connectionLimit;
      if (ceiling !== null && (await presence.connections(caller.env.no)) >= ceiling)
        throw new ApiError('plan_limit_reached');
      session.id = services.ids.make('session');
      session.env = caller.env;
      session.keyId = keyId;
      session.tokenExpiresAt = expiresAt!;
      if (session.ws.readyState !== 1) return;
      await hub.attach(session, caller.env.no, caller.user.no, caller.user.id);
      // From here on a revocation reaches the session; one that came before is found by looking again.
      await again();
      if (session.ws.readyState !== 1) return;
      const ref = { env: caller.env.no, user: caller.user.no };
      session.registered = true;
      this.#opened.delete(session);
      this.#sessions.set(session.id, session);
      const evicted = await presence.opened(ref, caller.user.id, session.id);
      for (const { node, id } of evicted) {
        if (node === this.#options.node) this.#evict(id);
        else this.#options.bus.publish(`n:${node}`, encodeEvict(id));
      }
      if (session.ws.readyState !== 1) return;
      session.state = 'live';
      this.#hello(session);
    } catch (error) {
      if (error instanceof KeepsOn)
        return session.close(4008, JSON.stringify({ retryAfterMs: error.retryAfterMs }));
      const api = toApiError(error);
      if (api.code === 'internal') logger.error({ err: error }, 'a login failed');
      const { socket } = api.row;
      if (typeof socket === 'object' && socket !== null) return session.close(socket.close, closeReason(api));
      // Not the client's fault: it comes again.
      session.close(api.row.type === 'permission' ? 4003 : 1013, closeReason(api));
    }
  }

  #hello(session: Session): void {
    const now = this.#options.services.clock.now();
    session.nextHeartbeatAt = now + realtime.heartbeatMs;
    session.send(
      pushFrame('hello', {
        sessionId: session.id,
        userId: session.user!.id,
        serverTime: new Date(now).toISOString(),
        heartbeatMs: realtime.heartbeatMs,
        tokenExpiresAt: new Date(session.tokenExpiresAt).toISOString(),
        limits: helloLimits,
      }),
    );
    this.#announceExpiry(session, now);
    if (this.#draining) session.send(this.#goaway());
  }

  #evict(id: string): void {
    this.#sessions.get(id)?.close(4009);
  }

  #closed(session: Session): void {
    if (session.state === 'closed') return;
    session.state = 'closed';
    this.#opened.delete(session);
    this.#sessions.delete(session.id);
    this.#options.presence.unwatch(session);
    this.#options.hub.detach(session);
    if (session.registered) {
      const { env, no } = session.user!;
      const noted = this.#options.presence
        .closed({ env, user: no }, session.id)
        .catch((error: unknown) => this.#options.logger.warn({ err: error }, 'a closed socket was not noted'))
        .finally(() => this.#leaving.delete(noted));
      this.#leaving.add(noted);
    }
    if (this.#draining && this.#sessions.size === 0 && this.#opened.size === 0) this.#onEmpty?.();
  }

  // Keeping alive.

  #tick(): void {
    this.#receipts.tick();
    this.#delivery.tick();
  }

  #everySecond(): void {
    const now = this.#options.services.clock.now();
    for (const session of this.#opened) {
      if (now - session.openedAt < realtime.authTimeoutMs) break;
      if (session.state === 'opened' || now - session.openedAt > realtime.livenessMs) session.close(4001);
    }
    for (const session of this.#sessions.values()) {
      if (now - session.lastFrameAt >= realtime.livenessMs) session.close(1001);
      else if (now >= session.tokenExpiresAt) session.close(4001, 'token expired');
      else if (session.state === 'live') {
        this.#announceExpiry(session, now);
        if (now >= session.nextHeartbeatAt) {
          session.nextHeartbeatAt = now + realtime.heartbeatMs;
          session.send(heartbeat);
        }
      }
    }
    this.#options.presence.tick();
  }

  #announceExpiry(session: Session, now: number): void {
    if (session.expiryAnnounced || session.tokenExpiresAt - now > realtime.tokenExpiringMs) return;
    session.expiryAnnounced = true;
    session.send(pushFrame('token_expiring', { expiresAt: new Date(session.tokenExpiresAt).toISOString() }));
  }

  // Shutdown.

  #goaway(): Buffer {
    return pushFrame('goaway', {
      reconnectAfterMs: Math.floor(this.#options.random() * realtime.goawayMaxMs),
    });
  }

  /** SPEC 4, socket rule 8: goaway, no new sockets, about 30 s for clients to leave, then 1012. */
  async drain(ms: number = realtime.drainMs): Promise<void> {
    this.#draining = true;
    for (const session of this.#sessions.values()) session.send(this.#goaway());
    for (const session of this.#opened) session.close(1012);
    await this.#empty(ms);
    for (const session of this.#sessions.values()) session.close(1012);
    await this.#empty(closingMs);
    for (const timer of this.#timers) clearInterval(timer);
    for (const session of [...this.#sessions.values(), ...this.#opened]) {
      session.ws.terminate();
      this.#closed(session);
    }
    this.#receipts.flush();
    await this.#delivery.flush();
    await Promise.all(this.#leaving);
    await this.#options.presence.drained();
  }

  #empty(ms: number): Promise<void> {
    if (this.#sessions.size === 0 && this.#opened.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#onEmpty = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

const ignore = (): void => undefined;
function destroyIt(this: Duplex): void {
  this.destroy();
}

/** A close reason holds at most 123 bytes; that of 4008 is JSON. */
const closeReason = (error: ApiError): string =>
  error.retryAfterMs === null
    ? error.code
    : JSON.stringify({ code: error.code, retryAfterMs: error.retryAfterMs });
