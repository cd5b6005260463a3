import { ApiError, featuresOn, helloLimits, realtime } from '@parley/protocol';
import type { Services } from '../../features/context.ts';
import { channels } from '../../features/node-bus.ts';
import type { NodeBus } from '../../features/node-bus.ts';
import type { Authenticator } from '../../features/tenancy/authenticate.ts';
import type { Logger } from '../../platform/logging.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import { frameLimits, ofAddress, take } from '../limits.ts';
import { toApiError } from '../rest/reply.ts';
import { closeForLogin } from './close.ts';
import type { Hub } from '../../realtime/hub.ts';
import type { KeepAlive } from './keep-alive.ts';
import type { SocketLog } from './socket-log.ts';
import type { Presence } from '../../realtime/presence.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';
import { pushFrame } from '../../realtime/wire.ts';

export interface LoginOptions {
  services: Services;
  authenticator: Authenticator;
  limiter: RateLimiter;
  bus: NodeBus;
  hub: Hub;
  presence: Presence;
  node: string;
  sessions: Sessions;
  keepAlive: KeepAlive;
  log: SocketLog;
  logger: Logger;
  /** Returns the epoch of the store. */
  storeEpoch: () => string;
  /** Called with each session that becomes live. */
  onHello: (session: Session) => void;
}

/** socket#login: verifies the token, binds the socket to its user, registers routes and presence, and sends hello. */
export class Login {
  readonly #options: LoginOptions;

  constructor(options: LoginOptions) {
    this.#options = options;
  }

  async run(session: Session, token: string): Promise<void> {
    session.state = 'authenticating';
    this.#options.sessions.heard(session);
    try {
      await this.#admit(session, token);
    } catch (error) {
      const api = toApiError(error);
      if (api.code === 'internal') this.#options.logger.error({ err: error }, 'a login failed');
      this.#options.log.refused(session, api);
      closeForLogin(session, (await this.#guessing(session, api)) ?? api);
    }
  }

  /** Wrong credentials are counted by address, as over REST, so that nobody can try them endlessly. */
  async #guessing(session: Session, error: ApiError): Promise<ApiError | null> {
    if (error.row.type !== 'authentication') return null;
    const { refused } = await take(this.#options.limiter, [ofAddress(session.address)]);
    return refused;
  }

  async #admit(session: Session, token: string): Promise<void> {
    const { services, authenticator, presence, hub, limiter, sessions } = this.#options;
    const {
      caller: { env, user },
      expiresAt,
      keyId,
      issuedAt,
      recheck,
    } = await authenticator.authenticate(token, session.named, session);
    if (!user) throw new ApiError('token_invalid');
    const { refused } = await take(limiter, frameLimits(env.no, user.no, 'request'));
    if (refused) throw refused;
    session.id = services.ids.make('session');
    session.env = env;
    session.keyId = keyId;
    session.tokenIssuedAt = issuedAt!;
    session.tokenExpiresAt = expiresAt!;
    if (!session.isOpen) return;
    await hub.attach(session, env.no, user.no, user.id);
    // From here on a revocation reaches the session; one that came before is found by checking again.
    const { lastSeenAt, personalRev } = await recheck();
    if (!session.isOpen) return;
    session.registered = true;
    sessions.admit(session);
    this.#options.log.opened(session);
    const ref = { env: env.no, user: user.no };
    const { active, tally } = services.analytics;
    const { connectionLimit } = services.plans[env.plan];
    const opened = await presence.opened(ref, session.id, connectionLimit);
    for (const { node, id } of opened.evict) this.#evict(node, id);
    if (opened.refused)
      throw new ApiError('plan_limit_reached', { message: 'The plan has no room for more connections.' });
    tally.connections(env.no, opened.connections);
    await active.connected(env, user.no);
    if (opened.cameOnline) presence.cameOnline(user.no, { userId: user.id, lastSeenAt });
    if (!session.isOpen) return;
    session.state = 'live';
    tally.add(env.no, 'socketsOpened');
    this.#hello(session, personalRev);
  }

  /** socket#ten-sockets: a user's eleventh socket closes the oldest one, on whichever node that is. */
  #evict(node: string, session: string): void {
    const { bus, sessions } = this.#options;
    if (node === this.#options.node) sessions.loggedIn.get(session)?.close(4009);
    else bus.publish('evict', session, channels.node(node));
  }

  #hello(session: Session, personalRev: number): void {
    const { services, keepAlive } = this.#options;
    session.send(
      pushFrame('hello', {
        sessionId: session.id,
        userId: session.user!.id,
        serverTime: new Date(services.clock.now()).toISOString(),
        heartbeatMs: realtime.heartbeatMs,
        tokenExpiresAt: new Date(session.tokenExpiresAt).toISOString(),
        limits: helloLimits,
        storeEpoch: this.#options.storeEpoch(),
        features: featuresOn(session.env!.settings.disabledFeatures),
        personalRev,
      }),
    );
    keepAlive.begin(session);
    this.#options.onHello(session);
  }
}
