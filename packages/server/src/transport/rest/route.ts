import type { FastifyReply, FastifyRequest } from 'fastify';
import { acceptsIdempotencyKey, ApiError, rateLimits } from '@parley/protocol';
import type { Operation, OperationName } from '@parley/protocol';
import type { Context } from '../../features/context.ts';
import type { Authenticated } from '../../features/tenancy/authenticate.ts';
import { coercingValidator, unstorableText, validator } from '../../platform/validation.ts';
import { addressKey, limitsOf, rateHeaders, take } from '../limits.ts';
import { success } from './answer.ts';
import { idempotencyKey } from './idempotency.ts';
import type { Idempotency } from './idempotency.ts';
import type { RestOptions } from './options.ts';
import { send } from './reply.ts';
import type { Unsent } from './unsent.ts';

/** Life of a request: authenticate, count, check the caller, validate, then run (once per Idempotency-Key). */
export function createRoute(
  name: OperationName,
  operation: Operation,
  options: RestOptions,
  { idempotency, unsent }: { idempotency: Idempotency; unsent: Unsent },
) {
  const run = options.handlers[name] as (ctx: Context, input: unknown) => Promise<unknown>;
  const readInput = inputReader(operation);

  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const query = { ...(request.query as Record<string, unknown>) };
    const named = namedEnvironments(request, query);
    const { caller } = await authenticated(request, reply, named);
    request.envId = caller.env.id;

    const checks = limitsOf(caller, operation.rate, options.services.plans);
    const who = (request.who = checks[0]!.key);
    const { verdict, refused } = await take(options.limiter, checks);
    reply.headers(rateHeaders(verdict));
    if (refused) throw refused;
    unsent.refuseFull(who);
    if (operation.deprecated)
      reply.headers({ Deprecation: operation.deprecated.since, Sunset: operation.deprecated.sunset });
    if (!operation.callers.includes(caller.kind))
      throw new ApiError('forbidden', {
        message:
          caller.kind === 'client'
            ? 'This is for servers only.'
            : 'This is for clients only: use a user token.',
      });

    const input = readInput(request.params as Record<string, unknown>, query, request.body);
    const ctx: Context = {
      caller,
      env: caller.env,
      db: options.db,
      services: options.services,
      requestId: request.id,
    };
    const execute = async (inner: Context) => {
      const result = await run(inner, input);
      // Others of the same caller may have filled it meanwhile.
      if (operation.changesNothing) unsent.refuseFull(who);
      return success(result, operation.statuses[0]!);
    };

    const given = acceptsIdempotencyKey(operation)
      ? idempotencyKey(request.headers['idempotency-key'])
      : undefined;
    const key = operation.changesNothing ? undefined : given;
    if (key === undefined) return send(reply, await execute(ctx));
    const answer = await idempotency.run(
      ctx,
      { key, route: `${request.method} ${request.url}`, body: request.body },
      execute,
      operation.repeatable,
    );
    if (answer.replayed) reply.header('Idempotent-Replayed', 'true');
    return send(reply, answer);
  };

  /** Wrong credentials count by address, so that nobody can try keys without end. */
  async function authenticated(
    request: FastifyRequest,
    reply: FastifyReply,
    named: string[],
  ): Promise<Authenticated> {
    try {
      return await options.authenticator.authenticate(bearer(request.headers.authorization), named);
    } catch (error) {
      if (error instanceof ApiError && error.row.type === 'authentication') {
        const check = { key: addressKey(request.ip), limit: rateLimits.anonymous };
        const { verdict, refused } = await take(options.limiter, [check]);
        reply.headers(rateHeaders(verdict));
        if (refused) throw refused;
      }
      throw error;
    }
  }
}

const bearer = (header: string | undefined): string | undefined => /^Bearer +(\S+)$/i.exec(header ?? '')?.[1];

/** SPEC 5, rule 2: the `Chat-Env` header or the query's `env`, which is then no field of the operation. */
function namedEnvironments(request: FastifyRequest, query: Record<string, unknown>): string[] {
  const header = request.headers['chat-env'];
  const inQuery = query['env'];
  delete query['env'];
  return [header, inQuery].flat().filter((v): v is string => typeof v === 'string');
}

function inputReader(operation: Operation) {
  const params = coercingValidator(operation.params);
  const queryRules = coercingValidator(operation.query);
  const body = operation.body ? validator(operation.body) : null;

  return (paramValues: Record<string, unknown>, query: Record<string, unknown>, given: unknown): unknown => {
    const problem = params(paramValues) ?? queryRules(query) ?? bodyProblem(given);
    if (problem) throw problem;
    const input = { ...paramValues, ...query, ...(operation.body ? (given as object) : {}) };
    const unstorable = unstorableText(input);
    if (unstorable !== null)
      throw new ApiError('invalid_request', {
        param: unstorable,
        message: 'Text must be valid Unicode without NUL characters.',
      });
    return input;
  };

  function bodyProblem(given: unknown): ApiError | null {
    if (body)
      return given === undefined
        ? new ApiError('invalid_request', { message: 'The request needs a JSON body.' })
        : body(given);
    const extra = typeof given === 'object' && given !== null ? Object.keys(given)[0] : undefined;
    return extra === undefined
      ? null
      : new ApiError('unknown_field', { param: extra, message: `Unknown field: ${extra}.` });
  }
}
