import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { acceptsIdempotencyKey, ApiError, roleMay } from '@parley/protocol';
import type { AccountRole, Operation, OperationName } from '@parley/protocol';
import { sessionCookie } from '../../features/accounts/context.ts';
import { isRecent } from '../../features/accounts/sql/sessions.ts';
import type { Caller, Environment, HttpContext, HttpRequest, Person } from '../../features/context.ts';
import { preparations } from '../../features/handlers.ts';
import type { Preparation } from '../../features/handlers.ts';
import { requireFeature } from '../../features/enabled.ts';
import { provenBy } from '../../features/tenancy/authenticate.ts';
import type { Clock } from '../../platform/clock.ts';
import { keyName } from '../../platform/rate-limit/port.ts';
import { requestReader } from '../input.ts';
import { limitsOf, ofAddress, rateHeaders, take } from '../limits.ts';
import { success } from './answer.ts';
import { idempotencyKey } from './idempotency.ts';
import type { Idempotency } from './idempotency.ts';
import type { Concern, RestOptions } from './options.ts';
import { createGatekeeper, readCookie } from './planes.ts';
import type { Arrival } from './planes.ts';
import { send } from './reply.ts';
import type { SlowClients } from './slow-clients.ts';

/** The life of a request: authenticate, count, check the caller, validate, then run (once per Idempotency-Key). */
export function createRoute(
  name: OperationName,
  operation: Operation,
  options: RestOptions,
  { idempotency, slow }: { idempotency: Idempotency; slow: Pick<SlowClients, 'refuseFull'> },
): Pick<RouteOptions, 'onRequest' | 'handler'> {
  const run = options.handlers[name] as (ctx: HttpContext, input: unknown) => Promise<unknown>;
  const prepare = preparations[name] as Preparation<HttpContext, unknown> | undefined;
  const readInput = requestReader(operation);
  const { guard, authenticate } = createGatekeeper(operation, options);

  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const query = { ...(request.query as Record<string, unknown>) };
    const named = namedEnvironments(request, query);
    const { caller, ...place } = await authenticated(request, reply, named);
    const { env } = place;
    if (env) request.concerns = concernOf(caller, env);

    const checks = limitsOf(caller, operation.rate, options.services.plans, request.ip, env);
    const who = (request.who = keyName(checks[0]!.key));
    const { verdict, refused } = await take(options.limiter, checks);
    reply.headers(rateHeaders(verdict));
    if (refused) throw refused;
    slow.refuseFull(who, caller.keyId !== null);
    if (operation.deprecated)
      reply.headers({ Deprecation: operation.deprecated.since, Sunset: operation.deprecated.sunset });
    if (!operation.callers.includes(caller.kind) && !operation.callers.includes('anyone'))
      throw new ApiError('forbidden', { message: notFor(operation) });
    if (env && operation.feature) requireFeature(env, operation.feature);
    if (caller.person) checkRole(operation, place.role, caller.person, options.services.clock);

    const input = readInput(request.params as Record<string, unknown>, query, request.body);
    const ctx: HttpContext = {
      caller,
      ...place,
      db: options.db,
      services: options.services,
      requestId: request.id,
      ...(operation.plane === 'control' ? { http: httpOf(request) } : {}),
      ...(!env || caller.person ? { ip: request.ip } : {}),
    };
    const { turn, briefly } = options.turns.of(env?.no ?? who, name, input);
    let prepared = (inner: HttpContext): Promise<unknown> => run(inner, input);
    const preparing = async (): Promise<void> => {
      // A refusal is thrown inside, where answers are stored.
      const waiting = prepare!(ctx, input, briefly).catch((error: Error) => () => Promise.reject(error));
      prepared = (await waiting) ?? prepared;
    };
    const execute = async (inner: HttpContext) => {
      const result = await prepared(inner);
      // Other requests of the same caller may have filled it meanwhile.
      if (operation.changesNothing) slow.refuseFull(who, caller.keyId !== null);
      return success(result, operation.statuses[0]!);
    };

    const given = acceptsIdempotencyKey(operation)
      ? idempotencyKey(request.headers['idempotency-key'])
      : undefined;
    // Answers about the caller's own account contain cookies, codes and secrets, so they are not stored for a replay.
    const key = operation.changesNothing || operation.scope === 'account' ? undefined : given;
    const asked = key && { key, route: `${request.method} ${request.url}`, body: request.body };
    const manner = { repeatable: operation.repeatable, turn, briefly, ...(prepare ? { preparing } : {}) };
    let answer: Awaited<ReturnType<typeof execute>>;
    if (asked) answer = await idempotency.run(ctx, asked, execute, manner);
    else {
      if (prepare) await preparing();
      answer = await turn(() => execute(ctx));
    }
    if ('replayed' in answer && answer.replayed) reply.header('Idempotent-Replayed', 'true');
    return send(reply, answer);
  };
  return { onRequest: guard ? [(request, _reply, done) => done(guard(request))] : [], handler };

  /** Wrong credentials are counted by address, so that nobody can try keys endlessly. */
  async function authenticated(
    request: FastifyRequest,
    reply: FastifyReply,
    named: string[],
  ): Promise<Arrival> {
    try {
      return await authenticate(request, named);
    } catch (error) {
      const proven = provenBy(error);
      if (proven)
        request.concerns = {
          env: proven.env,
          caller: proven.kind,
          callerId: proven.keyId,
          ...(proven.user === null ? {} : { user: proven.user }),
        };
      if (error instanceof ApiError && error.row.type === 'authentication') {
        const { verdict, refused } = await take(options.limiter, [ofAddress(request.ip)]);
        reply.headers(rateHeaders(verdict));
        if (refused) throw refused;
      }
      throw error;
    }
  }
}

function concernOf({ kind, user, keyId, person }: Caller, { no, id }: Environment): Concern {
  const callerId = keyId ?? person?.account.email;
  return {
    env: { no, id },
    caller: kind,
    ...(callerId === undefined ? {} : { callerId }),
    ...(user ? { user: user.no } : {}),
  };
}

/** Tells a caller who may not call an operation who may. */
function notFor({ callers }: Operation): string {
  if (callers.includes('client'))
    return callers.includes('server')
      ? 'This is for clients and servers, not for the dashboard.'
      : 'This is for clients only: use a user token.';
  return callers.includes('server')
    ? 'This is for servers only.'
    : 'This is for the dashboard: sign in there.';
}

/** dashboard#roles: checks what the account's role allows, and what needs a recent sign-in (dashboard#reauth). */
function checkRole(
  operation: Operation,
  role: AccountRole | undefined,
  { session }: Person,
  clock: Clock,
): void {
  if (operation.permission !== null && (role === undefined || !roleMay(role, operation.permission)))
    throw new ApiError('forbidden', { message: 'Your role does not allow this.' });
  if (operation.recent && !isRecent(session, clock)) throw new ApiError('reauth_required');
}

const httpOf = (request: FastifyRequest): HttpRequest => ({
  address: request.ip,
  userAgent: request.headers['user-agent'] ?? '',
  host: request.host,
  secure: request.protocol === 'https',
  cookie: readCookie(request.headers.cookie, sessionCookie) ?? null,
});

/** identity#environment: reads the `Chat-Env` header or the query's `env`, which is no field of the operation. */
function namedEnvironments(request: FastifyRequest, query: Record<string, unknown>): string[] {
  const header = request.headers['chat-env'];
  const inQuery = query['env'];
  delete query['env'];
  return [header, inQuery].flat().filter((v): v is string => typeof v === 'string');
}
