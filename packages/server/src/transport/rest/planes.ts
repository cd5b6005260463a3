import type { FastifyRequest } from 'fastify';
import { ApiError } from '@parley/protocol';
import type { AccountRole, Operation, Plane } from '@parley/protocol';
import { invalid } from '../../platform/api-errors.ts';
import { anyone, dashboardCaller } from '../../features/callers.ts';
import type { Caller, Environment, Organization } from '../../features/context.ts';
import type { Sessions } from '../../features/accounts/authenticate.ts';
import { sessionCookie } from '../../features/accounts/context.ts';
import { networkOf } from '../../platform/address.ts';
import type { RestOptions } from './options.ts';

/**
 * How the planes differ over HTTP (identity#credentials, dashboard#csrf). Keys and tokens come in the Authorization
 * header, which no browser sends by itself, so any web page may use them. The dashboard uses a cookie, which browsers
 * send with every request to us, whichever page made it. So requests that change something must come from our own
 * pages (see `guard`), and only our own pages may read answers of the control plane.
 */

export interface RestPlane {
  /** Headers of every answer of its operations; they say which web pages may read it. */
  cors: Record<string, string>;
  /** Headers of the answer to a browser that asks what a page may send. */
  preflight: Record<string, string>;
}

export const planes: Record<Plane, RestPlane> = {
  tenant: {
    cors: {
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Expose-Headers':
        'Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, Idempotent-Replayed, Deprecation, Sunset',
    },
    preflight: {
      'Access-Control-Allow-Methods': 'GET, PUT, POST, PATCH, DELETE',
      'Access-Control-Allow-Headers': 'Authorization, Content-Type, Chat-Env, Idempotency-Key',
      'Access-Control-Max-Age': '86400',
    },
  },
  /** Without these headers a browser lets only pages of the same origin read the answer. */
  control: { cors: {}, preflight: {} },
};

export interface Arrival {
  caller: Caller;
  /** The environment or organization that the call concerns, if it concerns one. */
  env?: Environment;
  organization?: Organization;
  /** The role of the dashboard's caller there. */
  role?: AccountRole;
}

/** How the callers of an operation are let in. */
export function createGatekeeper(
  operation: Operation,
  options: Pick<RestOptions, 'authenticator' | 'sessions' | 'isLocal'>,
) {
  const forAnyone = operation.callers.includes('anyone');
  const sessions = forAnyone || operation.callers.includes('dashboard') ? options.sessions : undefined;
  /** The cookie is ignored if the request has an Authorization header. */
  const cookieOf = (request: FastifyRequest): string | undefined =>
    sessions && request.headers.authorization === undefined
      ? readCookie(request.headers.cookie, sessionCookie)
      : undefined;

  function guard(request: FastifyRequest): ApiError | undefined {
    if (request.method === 'GET' || request.method === 'HEAD') return undefined;
    // Another site must not sign anybody in either. A sign-in that does not say where it comes from was not sent by a
    // browser.
    if (forAnyone ? !says(request) : cookieOf(request) === undefined) return undefined;
    if (!isOurPage(request))
      return new ApiError('forbidden', { message: 'The request does not come from the dashboard.' });
    if (!isJsonOrEmpty(request))
      return new ApiError('forbidden', { message: 'Send the body as application/json.' });
    return undefined;
  }

  /** @param named the environments that the request names (header, query). */
  async function authenticate(request: FastifyRequest, named: string[]): Promise<Arrival> {
    const cookie = cookieOf(request);
    if (sessions === undefined || (cookie === undefined && !forAnyone)) {
      const { caller } = await options.authenticator.authenticate(
        bearer(request.headers.authorization),
        named,
        { address: networkOf(request.ip), isLocal: () => options.isLocal(request.raw) },
      );
      return { caller, env: caller.env };
    }
    if (forAnyone) return { caller: await callerOrAnyone(sessions, cookie) };
    const person = await sessions.authenticate(cookie!);
    const caller = dashboardCaller(person);
    switch (operation.scope) {
      case 'environment':
        return { caller, ...(await sessions.environment(person, theOne(named))) };
      case 'organization':
        return { caller, ...(await sessions.organization(person, namedOrganization(request))) };
      case 'organizations':
        return named.length === 0
          ? { caller }
          : { caller, ...(await sessions.environment(person, theOne(named))) };
      case 'account':
        return { caller };
    }
  }

  return {
    /**
     * Runs before the body is read, and refuses what another site may have made a signed-in browser send. null if there
     * is nothing to check.
     */
    guard: sessions ? guard : null,
    authenticate,
  };
}

/** An invalid cookie counts as none. */
async function callerOrAnyone(sessions: Sessions, cookie: string | undefined): Promise<Caller> {
  if (cookie === undefined) return anyone;
  try {
    return dashboardCaller(await sessions.authenticate(cookie));
  } catch (error) {
    if (error instanceof ApiError && error.code === 'token_invalid') return anyone;
    throw error;
  }
}

function theOne(named: string[]): string {
  const [id, ...others] = new Set(named);
  if (id === undefined || others.length > 0)
    throw invalid('Chat-Env', 'The header Chat-Env names the environment.');
  return id;
}

/**
 * The organization, named by its own id or by that of one of its environments. This runs before the operation's
 * schema is checked, and does not need that check.
 */
function namedOrganization({ params, body }: FastifyRequest): {
  organizationId?: unknown;
  environmentId?: unknown;
} {
  return { ...(typeof body === 'object' ? body : {}), ...(params as object) };
}

const says = ({ headers }: FastifyRequest): boolean =>
  headers['sec-fetch-site'] !== undefined || headers.origin !== undefined;

const bearer = (header: string | undefined): string | undefined => /^Bearer +(\S+)$/i.exec(header ?? '')?.[1];

/**
 * Current browsers say in Sec-Fetch-Site where a request comes from, older ones in Origin. A request with neither is
 * refused.
 */
function isOurPage({ headers, host }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  // The scheme is not compared, because behind a proxy we do not see it.
  return headers.origin !== undefined && URL.parse(headers.origin)?.host === host;
}

function isJsonOrEmpty({ headers }: FastifyRequest): boolean {
  const type = headers['content-type'];
  if (type !== undefined) return /^application\/json\s*(;|$)/i.test(type);
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
}

export function readCookie(header: string | undefined, name: string): string | undefined {
  for (const pair of header?.split(';') ?? []) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return undefined;
}
