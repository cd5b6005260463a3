import type { Server } from 'node:http';
import { realtime } from '@parley/protocol';
import { channels } from '../../features/node-bus.ts';
import { mayType } from '../../features/presence/sql.ts';
import { Delivery } from '../../realtime/delivery.ts';
import { PeerNodes } from '../../realtime/peer-nodes.ts';
import { Typing } from '../../realtime/typing.ts';
import { pushFrame } from '../../realtime/wire.ts';
import { ActivityCount } from './activity-count.ts';
import { CredentialRecheck } from './credential-recheck.ts';
import { createDispatch } from './dispatch.ts';
import { drain, sendGoaway } from './drain.ts';
import { createFrameHandlers } from './frame-handlers.ts';
import { createKeepAlive } from './keep-alive.ts';
import type { KeepAlive } from './keep-alive.ts';
import { createLogin } from './login.ts';
import { Opening } from './opening.ts';
import type { GatewayOptions } from './options.ts';
import type { Session } from './session.ts';
import { silentBounds } from './sessions.ts';
import type { Sessions } from './sessions.ts';
import { createSocketLog } from './socket-log.ts';
import type { SocketLog } from './socket-log.ts';

const resyncHint = pushFrame('resync_hint', {});
const tickMs = 200;
const secondMs = 1_000;

/**
 * The chat.v1 socket (socket#open), assembled from its parts: `opening.ts` opens, `login.ts`
 * authenticates, `dispatch.ts` runs frames, `keep-alive.ts` keeps alive, `drain.ts` drains.
 */
export class Gateway {
  readonly #options: GatewayOptions;
  readonly #sessions: Sessions;
  readonly #opening: Opening;
  readonly #keepAlive: KeepAlive;
  readonly #delivery: Delivery;
  readonly #recheck: CredentialRecheck;
  readonly #log: SocketLog;
  readonly #peers: PeerNodes;
  readonly #activity: ActivityCount;
  #hurried = false;
  readonly #stopTimers: (() => void)[] = [];
  /** Closed sockets that the presence registry does not know about yet. */
  readonly #leaving = new Set<Promise<void>>();

  constructor(options: GatewayOptions) {
    this.#options = options;
    const { services, hub, bus, logger, random } = options;
    const { clock } = services;
    const { tally } = services.analytics;
    const now = () => clock.monotonic();
    this.#sessions = options.sessions;
    this.#log = createSocketLog({ ...options, clock });
    options.writer.onFlushed = () => tally.flushedFanouts(now());
    hub.onFanout = (env) => tally.fanout(env, now());
    this.#delivery = new Delivery({
      db: options.db,
      receipt: (mark) => options.receipts.add(mark),
      now,
      logger,
    });
    this.#recheck = new CredentialRecheck(options.db, this.#sessions.loggedIn);
    this.#activity = new ActivityCount({
      sessions: this.#sessions.loggedIn,
      sockets: options.sockets,
      clock,
      logger,
      analytics: services.analytics,
    });
    this.#keepAlive = createKeepAlive(this.#sessions, clock);
    const login = createLogin({
      ...options,
      keepAlive: this.#keepAlive,
      log: this.#log,
      onHello: (session) => {
        if (this.#opening.closed) sendGoaway(session, random);
      },
    });
    const dispatch = createDispatch({
      clock,
      logger,
      log: this.#log,
      login,
      acked: ({ user }, ms) => tally.ack(user!.env, ms),
      confirmed: ({ user }, about) => options.sockets.confirmed({ env: user!.env, user: user!.no, about }),
      broken: ({ user }) => user && tally.add(user.env, 'errors'),
      run: createFrameHandlers({
        ...options,
        typing: new Typing(now, (typists) => mayType(options.db, typists)),
        delivery: this.#delivery,
      }),
    });
    this.#opening = new Opening({
      ...options,
      clock,
      ids: services.ids,
      silentBounds,
      events: {
        ...dispatch,
        closed: (session, code) => {
          session.closeCode ||= code;
          // 1006: the client did not say that it closes, nor answer when we did.
          this.#closed(session, code === 1006);
        },
      },
    });
    bus.on('evict', (session) => this.#sessions.loggedIn.get(session)?.close(4009));
    bus.onRestored(() => this.#restored());
    this.#peers = new PeerNodes({ bus, clock, node: options.node, onSilent: () => void hub.catchUp() });
    // Also runs on a node without sockets (CHAT_ROLES=api): reads over REST make receipts for the sockets of other
    // nodes.
    this.#every(tickMs, () => {
      options.receipts.tick();
      this.#delivery.tick();
    });
    this.#every(secondMs, () => this.#peers.tick());
  }

  get connections(): number {
    return this.#sessions.loggedIn.size;
  }

  async start(server: Server): Promise<void> {
    await this.#options.bus.subscribe([channels.node(this.#options.node), channels.allNodes]);
    this.#peers.beat();
    this.#opening.listen(server);
    this.#every(secondMs, () => {
      this.#keepAlive.tick();
      this.#options.presence.tick();
      void this.#recheck.check();
      this.#activity.tick();
    });
  }

  #every(ms: number, run: () => void): void {
    this.#stopTimers.push(this.#options.timers.every(ms, run));
  }

  /**
   * A drain, whether running or to come, waits for no client if waiting helps none of them: without another node they cannot
   * move, and those of this machine belong to the person who stops the service.
   */
  hurry(): void {
    const isLocal = ({ address }: Session) => /^(127\.|0:0:0:0::)/.test(address);
    if (!this.#peers.alone && ![...this.#sessions.all].every(isLocal)) return;
    this.#hurried = true;
    this.#sessions.hurry();
  }

  /**
   * socket#goaway: accepts no new sockets and sends goaway to the others; when they are gone, pending marks
   * are written.
   */
  async drain(ms: number = realtime.drainMs): Promise<void> {
    this.#opening.closed = true;
    this.#options.tracing.close();
    await drain(
      this.#sessions,
      (session) => sendGoaway(session, this.#options.random),
      this.#hurried ? 0 : ms,
    );
    for (const session of this.#sessions.all) this.#closed(session, true);
    for (const stop of this.#stopTimers) stop();
    this.#options.receipts.flush();
    await this.#activity.idle();
    await this.#delivery.flush();
    await Promise.all(this.#leaving);
    await this.#options.presence.drained();
  }

  #closed(session: Session, isLost: boolean): void {
    if (session.state === 'closed') return;
    session.state = 'closed';
    const { presence, hub, sockets, logger, services } = this.#options;
    presence.watching.end(session);
    hub.registry.detach(session);
    if (session.registered) {
      this.#log.closed(session);
      session.user!.trace?.closed(session);
      const { env, no } = session.user!;
      const silentMs = services.clock.monotonic() - session.lastFrameTick;
      sockets.closed({ env, user: no, session: session.id });
      const noted = presence
        .closed({ env, user: no }, session.id)
        .catch((error: unknown) => logger.warn({ err: error }, 'a closed socket was not noted'))
        .then(async () => {
          if (!isLost) return;
          await this.#delivery.written(session);
          await sockets.lost({ env, user: no, silentMs });
        })
        .finally(() => this.#leaving.delete(noted));
      this.#leaving.add(noted);
    }
    this.#sessions.remove(session);
  }

  /**
   * Events of other nodes may have been lost: clients sync, memberships are compared with the store, watchers are told
   * who is online, and users who were deactivated or revoked meanwhile are looked for.
   */
  #restored(): void {
    for (const session of this.#sessions.loggedIn.values()) session.send(resyncHint);
    void this.#options.hub.catchUp();
    this.#options.presence.restored();
    this.#recheck.checkEveryUser();
  }
}
