import { clientFrames, operations } from '@parley/protocol';
import type {
  AckData,
  FrameData,
  Operation,
  OperationFrameType,
  OperationOf,
  RateClass,
} from '@parley/protocol';
import { Reply } from '../../features/context.ts';
import { requireFeature } from '../../features/enabled.ts';
import type { Change, Context } from '../../features/context.ts';
import { preparations } from '../../features/handlers.ts';
import type { Preparation, TypedHandlers } from '../../features/handlers.ts';
import type { OperationTurns } from '../turns.ts';
import type { Session } from './session.ts';

/**
 * Frames that run an operation, bound from the protocol's table as REST binds its routes: the same executor, counted
 * by the operation's own limit, with the fields renamed as the table says.
 */

type Answer<T extends OperationFrameType> = Awaited<ReturnType<TypedHandlers[OperationOf<T>]>>;
/**
 * The body of an answer that can be the ack unchanged. The body of a change cannot, because its seq is not that of
 * the event.
 */
type Body<A> = A extends Change<unknown> ? undefined : A extends Reply<infer B> ? B : A;

/**
 * Functions that make the ack from an operation's answer. The compiler demands one if the answer's body is not the
 * ack already.
 */
type Acks = {
  [T in OperationFrameType as [Body<Answer<T>>] extends [AckData<T>] ? never : T]: (
    answer: Answer<T>,
    d: FrameData<T>,
  ) => AckData<T>;
};

const acks: Acks = {
  'message.send': ({ id, seq, createdAt }, { clientMsgId }) => ({ clientMsgId, id, seq, createdAt }),
  'message.update': ({ body: { id, version, editedAt }, eventSeq }) => ({
    id,
    seq: eventSeq,
    version,
    editedAt: editedAt!,
  }),
  'message.delete': ({ body: { id, deletedAt }, eventSeq }) => ({ id, seq: eventSeq, deletedAt }),
  read: ({ lastReadSeq, mentionUnreadCount }, { cid }) => ({ cid, lastReadSeq, mentionUnreadCount }),
};

type Fields = Record<string, unknown>;
type Ack = (answer: unknown, d: Fields) => unknown;
type Run = (session: Session, d: Fields) => Promise<unknown>;

export interface OperationFrameOptions {
  handlers: TypedHandlers;
  contextOf: (session: Session) => Context;
  /** Counts one call; throws if the limit is reached. */
  count: (session: Session, rate: RateClass) => Promise<void>;
  turns: OperationTurns;
}

export function bindOperationFrames(options: OperationFrameOptions): Map<string, Run> {
  const bound = new Map<string, Run>();
  for (const [type, frame] of Object.entries(clientFrames)) {
    if (!('runs' in frame)) continue;
    const { operation: name, rename } = frame.runs;
    const { rate, feature } = operations[name] as Operation;
    const execute = options.handlers[name] as (ctx: Context, input: Fields) => Promise<unknown>;
    const prepare = preparations[name] as Preparation<Context, Fields> | undefined;
    const ack = (acks as unknown as Record<string, Ack | undefined>)[type];
    bound.set(type, async (session, d) => {
      await options.count(session, rate);
      if (feature) requireFeature(session.env!, feature);
      const input = renamed(d, rename);
      const { turn, briefly } = options.turns.of(session.user!.env, name, input);
      const ctx = options.contextOf(session);
      const prepared = await prepare?.(ctx, input, briefly);
      const answer = await turn(() => (prepared ? prepared(ctx) : execute(ctx, input)));
      if (ack) return ack(answer, d);
      return answer instanceof Reply ? answer.body : answer;
    });
  }
  return bound;
}

function renamed(d: Fields, names: Readonly<Record<string, string>>): Fields {
  const input: Fields = {};
  for (const field in d) input[names[field] ?? field] = d[field];
  return input;
}
