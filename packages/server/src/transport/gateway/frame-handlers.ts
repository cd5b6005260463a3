import { ApiError, realtime } from '@parley/protocol';
import type { FrameData, FrameType } from '@parley/protocol';
import type { Caller, Context, Services } from '../../features/context.ts';
import * as messages from '../../features/messages/operations.ts';
import { read } from '../../features/receipts/operations.ts';
import { createSyncer } from '../../features/sync/operations.ts';
import type { Authenticator } from '../../features/tenancy/authenticate.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import { limitsOf, sendLimits, take } from '../limits.ts';
import type { Taken } from '../limits.ts';
import type { Delivery } from './delivery.ts';
import type { Frame } from './frames.ts';
import type { Hub } from './hub.ts';
import type { Presence } from './presence.ts';
import type { Session } from './session.ts';
import type { TypingThrottle } from './typing.ts';

/** What each client frame does: the same executors as REST, and the frames that only the socket has. */

export interface FrameHandlerOptions {
  db: Db;
  services: Services;
  authenticator: Authenticator;
  limiter: RateLimiter;
  hub: Hub;
  presence: Presence;
  typing: TypingThrottle;
  delivery: Delivery;
}

type Handlers = {
  [T in Exclude<FrameType, 'auth'>]: (session: Session, d: FrameData<T>) => Promise<unknown> | void;
};

export function createFrameHandlers(
  options: FrameHandlerOptions,
): (session: Session, frame: Frame) => Promise<unknown> | void {
  const { db, services, authenticator, limiter, hub, presence, typing, delivery } = options;

  const syncer = createSyncer(db);
  const callerOf = (session: Session): Caller => ({ kind: 'client', env: session.env!, user: session.user! });
  const contextOf = (session: Session): Context =>
    (session.context ??= {
      caller: callerOf(session),
      env: session.env!,
      db,
      services,
      requestId: session.id,
    });

  /** Counts against the user's limits: at once where the limiter answers at once. */
  const count = (session: Session): Promise<void> | void =>
    allowed(take(limiter, limitsOf(contextOf(session).caller, 'request', services.plans)));

  function countSend(session: Session): Promise<void> | void {
    const { env, no } = session.user!;
    return allowed(take(limiter, (session.sendChecks ??= sendLimits(`${env}:${no}`))));
  }

  const handlers: Handlers = {
    'message.send': async (session, { cid: conversationId, ...fields }) => {
      const counting = countSend(session);
      if (counting) await counting;
      const message = await messages.send(contextOf(session), { conversationId, ...fields });
      return {
        clientMsgId: fields.clientMsgId,
        id: message.id,
        seq: message.seq,
        createdAt: message.createdAt,
      };
    },
    'message.update': async (session, { id, ...fields }) => {
      await count(session);
      const { message, eventSeq } = await messages.edit(contextOf(session), { messageId: id, ...fields });
      return { id: message.id, seq: eventSeq, version: message.version, editedAt: message.editedAt };
    },
    'message.delete': async (session, { id }) => {
      await count(session);
      const { tombstone, eventSeq } = await messages.remove(contextOf(session), { messageId: id });
      return { id: tombstone.id, seq: eventSeq, deletedAt: tombstone.deletedAt };
    },
    read: async (session, { cid, seq }) => {
      await count(session);
      const { lastReadSeq } = await read(contextOf(session), { conversationId: cid, seq });
      return { cid, lastReadSeq };
    },
    sync: async (session, { cursor }) => {
      await count(session);
      return syncer(session.user!.env, session.user!.no, cursor);
    },
    'presence.watch': async (session, { userIds }) => {
      await count(session);
      return { presence: await presence.watch(session, userIds) };
    },
    'token.refresh': async (session, { token }) => {
      await count(session);
      const { caller, expiresAt, keyId } = await authenticator.authenticate(token, session.named);
      if (
        caller.kind !== 'client' ||
        caller.user.no !== session.user!.no ||
        caller.env.no !== session.env!.no
      )
        throw new ApiError('forbidden', { message: 'The token is of another user or environment.' });
      session.tokenExpiresAt = expiresAt!;
      session.keyId = keyId;
      session.expiryAnnounced = expiresAt! - services.clock.now() < realtime.tokenExpiringMs;
      return { expiresAt: new Date(expiresAt!).toISOString() };
    },
    typing: (session, { cid, state }) => {
      const user = session.user!;
      if (!hub.isMember(user, cid)) throw new ApiError('not_member');
      if (!typing.allows(cid, user.no, state)) return;
      hub.relay(cid, `{"t":"typing","d":${JSON.stringify({ cid, userId: user.id, state })}}`, user.no);
    },
    delivered: (session, { items }) => delivery.add(session, items),
    hb: () => undefined,
  };

  return (session, frame) =>
    (handlers[frame.t as keyof Handlers] as (session: Session, d: unknown) => Promise<unknown> | void)(
      session,
      frame.d,
    );
}

function allowed(taken: Taken | Promise<Taken>): Promise<void> | void {
  if (taken instanceof Promise) return taken.then(allowed);
  if (taken.refused) throw taken.refused;
}
