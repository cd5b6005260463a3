import { createHash } from 'node:crypto';
import { ApiError } from '@parley/protocol';
import type { Context } from '../../features/context.ts';
import * as sql from '../../features/idempotency/sql.ts';
import { joined } from '../../platform/postgres/db.ts';
import { failure } from './answer.ts';
import type { Answer } from './answer.ts';

/**
 * SPEC 1, Idempotency. The key is claimed, the operation runs and its answer is stored in one transaction: a crash leaves
 * all of it or nothing. A duplicate waits (in this process on a promise, across processes on the row) and then replays.
 * 429 and 5xx are not stored. The caller is part of the fingerprint, so nobody sees another's answer.
 */

const keyForm = /^[\x21-\x7e]{1,255}$/;

export function idempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header !== 'string' || !keyForm.test(header))
    throw new ApiError('invalid_request', {
      param: 'Idempotency-Key',
      message: 'The Idempotency-Key is 1 to 255 visible characters; use a UUID.',
    });
  return header;
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

export class Idempotency {
  readonly #running = new Map<string, Promise<unknown>>();

  /** @param route method with the concrete path and query. */
  async run(
    ctx: Context,
    request: { key: string; route: string; body: unknown },
    execute: (ctx: Context) => Promise<Answer>,
  ): Promise<Answer & { replayed: boolean }> {
    const place = `${ctx.env.no} ${request.key} ${request.route}`;
    for (let before = this.#running.get(place); before; before = this.#running.get(place))
      await before.catch(() => undefined);
    const mine = this.#once(ctx, request, execute);
    this.#running.set(place, mine);
    try {
      return await mine;
    } finally {
      this.#running.delete(place);
    }
  }

  #once(
    ctx: Context,
    request: { key: string; route: string; body: unknown },
    execute: (ctx: Context) => Promise<Answer>,
  ): Promise<Answer & { replayed: boolean }> {
    const { vault } = ctx.services;
    const env = ctx.env.no;
    const caller = ctx.caller.kind === 'server' ? 'server' : `user ${ctx.caller.user.no}`;
    const route = sha256(request.route);
    const fingerprint = sha256(`${caller}\n${JSON.stringify(request.body ?? null)}`);
    const context = `idempotency ${env} ${request.key}`;
    return ctx.db.tx(async (tx) => {
      if (!(await sql.claim(tx, env, request.key, route, fingerprint))) {
        const found = (await sql.stored(tx, env, request.key, route))!;
        if (!found.fingerprint.equals(fingerprint)) throw new ApiError('idempotency_mismatch');
        const body: unknown = found.body && JSON.parse(vault.open(found.body, context).toString());
        return { status: found.status!, body, replayed: true };
      }
      await tx.script('SAVEPOINT operation');
      let answer: Answer;
      try {
        answer = await execute({ ...ctx, db: joined(tx), idempotencyKey: request.key });
      } catch (error) {
        if (!(error instanceof ApiError) || !isFinal(error)) throw error;
        await tx.script('ROLLBACK TO SAVEPOINT operation');
        answer = failure(error, ctx.requestId);
      }
      await sql.store(tx, env, request.key, route, {
        status: answer.status,
        body: answer.body === null ? null : vault.seal(JSON.stringify(answer.body), context),
        subjects: subjects([
          request.body,
          answer.body,
          ctx.caller.kind === 'client' ? ctx.caller.user : null,
        ]),
      });
      return { ...answer, replayed: false };
    });
  }
}

const isFinal = (error: ApiError): boolean => {
  const status = error.row.http ?? 500;
  return status < 500 && status !== 429;
};

const idFields = new Set([
  ...['id', 'userId', 'senderId', 'actorId', 'ownerId', 'replyTo'],
  ...['members', 'userIds'],
]);
const maxSubjects = 2_000;

/**
 * Ids of users and messages in a request and its answer (a token and an error's text name users too): erasing one of
 * them empties the answer.
 */
export function subjects(body: unknown, field = '', found = new Set<string>()): string[] {
  if (typeof body === 'string' && idFields.has(field)) found.add(body);
  else if (typeof body === 'object' && body !== null && found.size < maxSubjects)
    for (const [key, value] of Object.entries(body))
      if (key !== 'metadata') subjects(value, Array.isArray(body) ? field : key, found);
  return [...found];
}
