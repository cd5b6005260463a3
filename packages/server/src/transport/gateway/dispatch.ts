import { ApiError, frameSchema, frameTypes, realtime } from '@parley/protocol';
import type { FrameData, FrameType } from '@parley/protocol';
import type { Caller, Context, Services } from '../../features/context.ts';
import * as messages from '../../features/messages/operations.ts';
import { read } from '../../features/receipts/operations.ts';
import { createSyncer } from '../../features/sync/operations.ts';
import type { Authenticator } from '../../features/tenancy/authenticate.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import { unstorableText, validator } from '../../platform/validation.ts';
import type { Validator } from '../../platform/validation.ts';
import { limitsOf, sendLimits, take } from '../limits.ts';
import type { Taken } from '../limits.ts';
import type { Delivery } from './delivery.ts';
import type { Hub } from './hub.ts';
import type { Presence } from './presence.ts';
import type { Session } from './session.ts';
import type { TypingThrottle } from './typing.ts';

/** What each client frame does: the same executors as REST, and the frames that only the socket has. */

export interface DispatchOptions {
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

const validators = new Map<string, Validator>(frameTypes.map((t) => [t, validator(frameSchema(t))]));

export interface Frame {
  t: FrameType;
  id: string | number | undefined;
  d: Record<string, unknown>;
}

/**
 * A well-formed frame, or the error it deserves. Unknown fields are `invalid_frame` here (PITFALLS 11).
 * @param escapes the JSON text has `\u` escapes: only they can bring text that cannot be stored.
 */
export function parseFrame(value: unknown, escapes = true): Frame {
  const frame = value as { t?: unknown; id?: unknown; d?: unknown } | null;
  if (typeof frame !== 'object' || frame === null || typeof frame.t !== 'string')
    throw new ApiError('invalid_frame', { message: 'A frame is a JSON object with t, id and d.' });
  const validate = validators.get(frame.t);
  if (!validate)
    throw new ApiError('invalid_frame', { message: `There is no frame "${frame.t.slice(0, 40)}".` });
  const problem = validate(frame);
  if (problem) {
    if (problem.code === 'text_too_long' || problem.code === 'metadata_too_large') throw problem;
    throw new ApiError('invalid_frame', { message: problem.message });
  }
  const unstorable = escapes ? unstorableText(frame.d) : null;
  if (unstorable !== null)
    throw new ApiError('invalid_frame', {
      message: `${unstorable}: text must be valid Unicode without NUL characters.`,
    });
  return {
    t: frame.t as FrameType,
    id: frame.id as string | number | undefined,
    d: (frame.d ?? {}) as Record<string, unknown>,
  };
}

/** The request id of a frame that may be anything. */
export function requestIdOf(value: unknown): string | number | undefined {
  const id = (value as { id?: unknown } | null | undefined)?.id;
  return (typeof id === 'string' && id.length <= 64) || Number.isSafeInteger(id)
    ? (id as string | number)
    : undefined;
}

/** Refused requests within this time, and how many make the socket close with 4008. */
const patienceMs = 10_000;
const patience = 100;

export class KeepsOn extends Error {
  readonly retryAfterMs: number;
  constructor(retryAfterMs: number) {
    super('rate limited');
    this.retryAfterMs = retryAfterMs;
  }
}

export function createDispatch(
  options: DispatchOptions,
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

  /** Counts against the user's limits; a client that keeps on is closed. */
  function count(session: Session): Promise<void> | void {
    return counted(session, take(limiter, limitsOf(contextOf(session).caller, 'request', services.plans)));
  }

  function countSend(session: Session): Promise<void> | void {
    const { env, no } = session.user!;
    return counted(session, take(limiter, (session.sendChecks ??= sendLimits(`${env}:${no}`))));
  }

  function counted(session: Session, taken: Taken | Promise<Taken>): Promise<void> | void {
    if (taken instanceof Promise) return taken.then((t) => counted(session, t));
    const { refused, verdict } = taken;
    if (!refused) return;
    const now = services.clock.now();
    if (now - session.refusedSince > patienceMs) {
      session.refusedSince = now;
      session.refused = 0;
    }
    if (++session.refused > patience) throw new KeepsOn(verdict.retryAfterMs);
    throw refused;
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
