import { ApiError, featuresOn, helloLimits, realtime } from '@parley/protocol';
import { channels } from '../../features/node-bus.ts';
import { frameLimits, ofAddress, take } from '../limits.ts';
import { toApiError } from '../rest/reply.ts';
import { closeForLogin } from './close.ts';
import type { KeepAlive } from './keep-alive.ts';
import type { GatewayOptions } from './options.ts';
import type { SocketLog } from './socket-log.ts';
import type { Session } from './session.ts';
import { pushFrame } from '../../realtime/wire.ts';

export interface LoginOptions extends GatewayOptions {
  keepAlive: KeepAlive;
  log: SocketLog;
  /** Called with each session that becomes live. */
  onHello: (session: Session) => void;
}

/** socket#login: verifies the token, binds the socket to its user, registers routes and presence, and sends hello. */
export function createLogin(options: LoginOptions): (session: Session, token: string) => Promise<void> {
  const { services, authenticator, presence, hub, bus, limiter, sessions, keepAlive, log, logger } = options;

  /** Wrong credentials are counted by address, as over REST, so that nobody can try them endlessly. */
  async function guessing(session: Session, error: ApiError): Promise<ApiError | null> {
    if (error.row.type !== 'authentication') return null;
    const { refused } = await take(limiter, [ofAddress(session.address)]);
    return refused;
  }

  async function admit(session: Session, token: string): Promise<void> {
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
    await hub.registry.attach(session, env.no, user.no, user.id);
    session.hold();
    // From here on a revocation reaches the session; one that came before is found by checking again.
    const { lastSeenAt, personalRev } = await recheck();
    if (!session.isOpen) return;
    session.registered = true;
    sessions.admit(session);
    log.opened(session);
    const ref = { env: env.no, user: user.no };
    const { active, tally } = services.analytics;
    const { connectionLimit } = services.plans[env.plan];
    const opened = await presence.opened(ref, session.id, connectionLimit);
    for (const { node, id } of opened.evict) evict(node, id);
    if (opened.refused)
      throw new ApiError('plan_limit_reached', { message: 'The plan has no room for more connections.' });
    tally.connections(env.no, opened.connections);
    await active.connected(env, user.no);
    if (opened.cameOnline) presence.cameOnline(user.no, { userId: user.id, lastSeenAt });
    if (!session.isOpen) return;
    tally.add(env.no, 'socketsOpened');
    hello(session, personalRev);
  }

  /** socket#ten-sockets: a user's eleventh socket closes the oldest one, on whichever node that is. */
  function evict(node: string, session: string): void {
    if (node === options.node) sessions.loggedIn.get(session)?.close(4009);
    else bus.publish('evict', session, channels.node(node));
  }

  function hello(session: Session, personalRev: number): void {
    session.greet(
      pushFrame('hello', {
        sessionId: session.id,
        userId: session.user!.id,
        serverTime: new Date(services.clock.now()).toISOString(),
        heartbeatMs: realtime.heartbeatMs,
        tokenExpiresAt: new Date(session.tokenExpiresAt).toISOString(),
        limits: helloLimits,
        storeEpoch: options.storeEpoch(),
        features: featuresOn(session.env!.settings.disabledFeatures),
        defaultLevel: session.env!.settings.defaultLevel,
        personalRev,
      }),
    );
    keepAlive.begin(session);
    options.onHello(session);
  }

  return async (session, token) => {
    session.state = 'authenticating';
    sessions.heard(session);
    try {
      await admit(session, token);
    } catch (error) {
      const api = toApiError(error);
      if (api.code === 'internal') logger.error({ err: error }, 'a login failed');
      log.refused(session, api);
      closeForLogin(session, (await guessing(session, api)) ?? api);
    }
  };
}
