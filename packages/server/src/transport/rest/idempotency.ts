import { ApiError, idempotencyKeyPattern } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import type { Caller, HttpContext } from '../../features/context.ts';
import * as sql from '../../features/idempotency/sql.ts';
import { joined } from '../../platform/postgres/db.ts';
import type { Db, Queryable, Tx } from '../../platform/postgres/db.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import { answerLimits, take } from '../limits.ts';
import { failure } from './answer.ts';
import type { Answer } from './answer.ts';

/**
 * api#idempotency. The key is claimed, the operation runs and its answer is stored in one transaction: a crash
 * leaves all of it or nothing. A duplicate waits (in this process for a promise, across processes for the row) and
 * then replays. 429 and 5xx are not stored. The caller is part of the fingerprint, so nobody sees another caller's
 * answer.
 */

const keyForm = new RegExp(idempotencyKeyPattern);

export function idempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header !== 'string' || !keyForm.test(header))
    throw invalid('Idempotency-Key', 'The Idempotency-Key is 1 to 255 visible characters; use a UUID.');
  return header;
}

/** No environment has this number; answers of the control plane are stored under it. */
const noEnvironment = 0;

interface Request {
  key: string;
  /** The method with the concrete path and query. */
  route: string;
  body: unknown;
}
type Execute = (ctx: HttpContext) => Promise<Answer>;
type Turn = <T>(work: () => Promise<T>) => Promise<T>;

/** How an operation runs. */
export interface Manner {
  /** See Operation: if true, it runs before the transaction that stores its answer, not inside it. */
  repeatable: boolean;
  /** Runs the operation in its environment's turn. */
  turn: Turn;
  /** Runs short work in a turn of its own. */
  briefly: Turn;
  /** What waits for somebody outside before the turn, unless an answer is stored already. */
  preparing?: () => Promise<void>;
}
type Outcome = Answer & { replayed: boolean };

export class Idempotency {
  readonly #running = new Map<string, Promise<unknown>>();
  readonly #limiter: RateLimiter;

  constructor(limiter: RateLimiter) {
    this.#limiter = limiter;
  }

  async run(ctx: HttpContext, request: Request, execute: Execute, manner: Manner): Promise<Outcome> {
    const place = `${ctx.env?.no ?? nameOf(ctx.caller)} ${request.key} ${request.route}`;
    for (let before = this.#running.get(place); before; before = this.#running.get(place))
      await before.catch(() => undefined);
    const slot = slotOf(ctx, this.#limiter, request);
    const mine = manner.repeatable ? outside(ctx, slot, execute, manner) : within(ctx, slot, execute, manner);
    this.#running.set(place, mine);
    try {
      return await mine;
    } finally {
      this.#running.delete(place);
    }
  }
}

async function within(ctx: HttpContext, slot: Slot, execute: Execute, manner: Manner): Promise<Outcome> {
  if (manner.preparing) {
    const before = await manner.briefly(() => slot.replay(ctx.db));
    if (before) return before;
    await manner.preparing();
  }
  return manner.turn(() => inside(ctx, slot, execute));
}

async function inside(ctx: HttpContext, slot: Slot, execute: Execute): Promise<Outcome> {
  let afterwards: ((db: Db) => Promise<void>)[] = [];
  const outcome = await ctx.db.tx(async (tx): Promise<Outcome> => {
    afterwards = [];
    if (!(await slot.claim(tx))) return (await slot.replay(tx))!;
    await slot.quota.check();
    await tx.script('SAVEPOINT operation');
    let answer: Answer;
    try {
      answer = await execute({
        ...ctx,
        db: joined(tx),
        idempotencyKey: slot.key,
        afterwards: (work) => afterwards.push(work),
      });
    } catch (error) {
      answer = finalFailure(error, ctx.requestId);
      await tx.script('ROLLBACK TO SAVEPOINT operation');
      afterwards = [];
    }
    await slot.store(tx, answer);
    return { ...answer, replayed: false };
  });
  for (const work of afterwards) await work(ctx.db);
  return outcome;
}

async function outside(ctx: HttpContext, slot: Slot, execute: Execute, manner: Manner): Promise<Outcome> {
  const before = await manner.briefly(() => slot.replay(ctx.db));
  if (before) return before;
  await slot.quota.check();
  const answer = await manner
    .turn(() => execute({ ...ctx, idempotencyKey: slot.key }))
    .catch((error: unknown) => finalFailure(error, ctx.requestId));
  return manner.briefly(() =>
    ctx.db.tx(async (tx) => {
      if (!(await slot.claim(tx))) return (await slot.replay(tx))!;
      await slot.store(tx, answer);
      return { ...answer, replayed: false };
    }),
  );
}

/** Bytes that an answer takes besides its body: the row with its index entries, and each id that it can be found by. */
const rowBytes = 300;
const subjectBytes = 50;

/**
 * Bounds how much is stored for an environment and for a client. Without room a new request is refused before it
 * runs, because without a stored answer a repetition would run it twice. Answers already stored are still replayed.
 */
function answerQuota(limiter: RateLimiter, ctx: HttpContext) {
  const checks = answerLimits(ctx.caller, ctx.services.plans, ctx.env);
  return {
    check: async (): Promise<void> => {
      for (const check of checks) {
        const { refused } = await take(limiter, [check]);
        if (refused)
          throw new ApiError('rate_limited', {
            message: 'Too many answers are kept for Idempotency-Keys. Retry later.',
            retryAfterMs: refused.retryAfterMs!,
          });
      }
    },
    /** Called after the commit: counts what was stored beyond the first KB, which was counted when asking. */
    used: (bytes: number): void => {
      for (const { key, limit } of checks) void limiter.owe(key, limit, (bytes + rowBytes) / 1_024 - 1);
    },
  };
}

type Slot = ReturnType<typeof slotOf>;

/** The place where the answer to one key and route is stored. */
function slotOf(ctx: HttpContext, limiter: RateLimiter, { key, route, body: asked }: Request) {
  const { vault } = ctx.services;
  const quota = answerQuota(limiter, ctx);
  const env = ctx.env?.no ?? noEnvironment;
  const context = `idempotency ${env} ${key}`;
  const caller = nameOf(ctx.caller);
  // A keyed hash, because a path names a user, and a plain hash of it would outlive an erasure. Outside of an
  // environment, a key belongs to its caller.
  const place = vault.mac(`route ${ctx.env ? route : `${caller} ${route}`}`);
  const fingerprint = vault.mac(`request ${caller}\n${JSON.stringify(asked ?? null)}`);
  return {
    key,
    quota,
    claim: (db: Queryable): Promise<boolean> => sql.claim(db, env, key, place, fingerprint),

    /** Returns null if no answer is stored yet. */
    async replay(db: Queryable): Promise<Outcome | null> {
      const found = await sql.stored(db, env, key, place);
      if (!found) return null;
      if (!found.fingerprint.equals(fingerprint)) throw new ApiError('idempotency_mismatch');
      const body: unknown = found.body && JSON.parse(vault.open(found.body, context).toString());
      return { status: found.status!, body, replayed: true };
    },

    async store(tx: Tx, { status, body }: Answer): Promise<void> {
      const sealed = body === null ? null : vault.seal(JSON.stringify(body), context);
      const about = subjects([asked, body, ctx.caller.user]);
      await sql.store(tx, env, key, place, { status, body: sealed, subjects: about });
      const bytes = about.reduce((sum, id) => sum + subjectBytes + id.length, sealed?.length ?? 0);
      tx.afterCommit(() => quota.used(bytes));
    },
  };
}

function nameOf({ kind, user, person }: Caller): string {
  if (user) return `user ${user.no}`;
  return person ? `account ${person.account.no}` : kind;
}

/** The answer of an operation that failed finally; errors after which a caller may try again are thrown on. */
function finalFailure(error: unknown, requestId: string): Answer {
  if (!(error instanceof ApiError) || !isFinal(error)) throw error;
  return failure(error, requestId);
}

const isFinal = (error: ApiError): boolean => {
  const status = error.row.http ?? 500;
  return status < 500 && status !== 429;
};

const idFields = new Set(['id', 'userId', 'senderId', 'actorId', 'ownerId', 'replyTo', 'members', 'userIds']);
const maxSubjects = 2_000;

/**
 * Ids of users and messages in a request and its answer (a token or an error text names users too). Erasing one of
 * them empties the stored answer.
 */
export function subjects(body: unknown, field = '', found = new Set<string>()): string[] {
  if (typeof body === 'string' && idFields.has(field)) found.add(body);
  else if (typeof body === 'object' && body !== null && found.size < maxSubjects)
    for (const [key, value] of Object.entries(body))
      if (key !== 'metadata') subjects(value, Array.isArray(body) ? field : key, found);
  return [...found];
}
