import { ApiError, callFrameTypes, realtime } from '@parley/protocol';
import type {
  CallFrameType,
  FeatureName,
  FrameData,
  FrameType,
  OperationFrameType,
  RateClass,
} from '@parley/protocol';
import { clientCaller } from '../../features/callers.ts';
import { signal } from '../../features/calls/signal.ts';
import type { CallFrame } from '../../features/calls/signal.ts';
import type { Context } from '../../features/context.ts';
import { requireFeature } from '../../features/enabled.ts';
import { frameLimits, take } from '../limits.ts';
import type { Delivery } from '../../realtime/delivery.ts';
import type { Frame } from './frames.ts';
import { bindOperationFrames } from './operation-frames.ts';
import type { GatewayOptions } from './options.ts';
import type { Session } from './session.ts';
import type { Typing } from '../../realtime/typing.ts';

/** What each client frame does. Frames that run an operation are bound from the table; those of the socket alone are here. */

interface FrameHandlerOptions extends GatewayOptions {
  typing: Typing;
  delivery: Delivery;
}

type SocketFrames = {
  [T in Exclude<FrameType, 'auth' | OperationFrameType | CallFrameType>]: (
    session: Session,
    d: FrameData<T>,
  ) => Promise<unknown> | void;
};
type Run = (session: Session, d: Record<string, unknown>) => Promise<unknown> | void;

export function createFrameHandlers(
  options: FrameHandlerOptions,
): (session: Session, frame: Frame) => Promise<unknown> | void {
  const { db, services, handlers, authenticator, limiter, hub, presence, typing, delivery } = options;

  const contextOf = (session: Session): Context => ({
    caller: clientCaller(session.env!, session.user!),
    env: session.env!,
    db,
    services,
    requestId: session.id,
  });

  async function count(session: Session, rate: RateClass): Promise<void> {
    const { env, no } = session.user!;
    const { refused } = await take(limiter, frameLimits(env, no, rate));
    if (refused) throw refused;
  }

  /** The reaction or vote that a socket set last: they are made in the order of their frames, so that the last one decides. */
  const reacting = new WeakMap<Session, Promise<unknown>>();
  const inOrder = async <T>(
    session: Session,
    feature: FeatureName,
    name: 'reactions.set' | 'reactions.remove' | 'polls.vote',
    input: { messageId: string },
    react: (ctx: Context) => Promise<T>,
  ): Promise<T> => {
    await count(session, 'reaction');
    const ctx = contextOf(session);
    requireFeature(ctx.env, feature);
    const { turn } = options.turns.of(ctx.env.no, name, input);
    const before = reacting.get(session);
    const run = turn(async () => {
      await before?.catch(() => undefined);
      return react(ctx);
    });
    reacting.set(session, run);
    return run;
  };

  const socketFrames: SocketFrames = {
    'presence.watch': async (session, { userIds }) => {
      await count(session, 'request');
      return { presence: await presence.watching.watch(session, userIds) };
    },
    'token.refresh': async (session, { token }) => {
      await count(session, 'request');
      const { caller, expiresAt, keyId, issuedAt } = await authenticator.authenticate(
        token,
        session.named,
        session,
      );
      if (caller.user?.no !== session.user!.no || caller.env.no !== session.env!.no)
        throw new ApiError('forbidden', { message: 'The token is of another user or environment.' });
      session.tokenIssuedAt = issuedAt!;
      session.tokenExpiresAt = expiresAt!;
      session.keyId = keyId;
      session.expiryAnnounced = expiresAt! - services.clock.now() < realtime.tokenExpiringMs;
      return { expiresAt: new Date(expiresAt!).toISOString() };
    },
    'reaction.set': async (session, { id, emoji, on, replace = false }) => {
      const input = { messageId: id, emoji, replace };
      const name = on ? 'reactions.set' : 'reactions.remove';
      const { reactions } = await inOrder(session, 'reactions', name, input, (ctx) =>
        handlers[name](ctx, input),
      );
      return { id, reactions };
    },
    'poll.vote': async (session, { id, options: wanted }) => {
      const input = { messageId: id, options: wanted };
      const { reactions } = await inOrder(session, 'polls', 'polls.vote', input, (ctx) =>
        handlers['polls.vote'](ctx, input),
      );
      return { id, reactions };
    },
    typing: (session, { cid, state }) => {
      const user = session.user!;
      if (!hub.isMember(user, cid)) throw new ApiError('not_member');
      const relay = (): void =>
        hub.ephemeral.relay(
          cid,
          `{"t":"typing","d":${JSON.stringify({ cid, userId: user.id, state })}}`,
          user.no,
        );
      const asks = hub.mayNotType(user, cid);
      if (!typing.allows(cid, user.no, state, asks)) return;
      if (asks && state === 'start')
        void typing
          .permits({ env: user.env, cid, user: user.no })
          .then((permitted) => permitted && hub.isMember(user, cid) && relay());
      else relay();
    },
    delivered: (session, { items }) => delivery.add(session, items),
    hb: () => undefined,
  };

  /** Many media frames at once are normal; the media node counts them. */
  async function media(session: Session, t: CallFrameType, d: Record<string, unknown>): Promise<unknown> {
    if (t === 'call.open' || t === 'call.test') await count(session, 'request');
    const open = (session.calls ??= new Map());
    return signal(contextOf(session), { id: session.id, open }, { t, d } as CallFrame);
  }

  const frames = new Map<string, Run>([
    ...(Object.entries(socketFrames) as [string, Run][]),
    ...callFrameTypes.map((t): [string, Run] => [t, (session, d) => media(session, t, d)]),
    ...bindOperationFrames({ handlers, contextOf, count, turns: options.turns }),
  ]);
  return (session, frame) => frames.get(frame.t)!(session, frame.d);
}
