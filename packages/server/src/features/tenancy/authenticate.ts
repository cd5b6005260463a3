import { ApiError, environmentIdPattern, limits, rateLimits } from '@parley/protocol';
import { createBatcher, readPace } from '../../platform/flow/batcher.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { RateLimiter } from '../../platform/rate-limit/port.ts';
import { sameString } from '../../platform/secrets.ts';
import type { Vault } from '../../platform/secrets.ts';
import { clientCaller, serverCaller } from '../callers.ts';
import type { Environment, TenantCaller } from '../context.ts';
import { subjectOf } from '../users/operations.ts';
import { createMissingUsers, erasedCutoff } from '../users/sql.ts';
import { findCredentials } from './sql/credentials.ts';
import type { CredentialNames, FoundCredential as Found } from './sql/credentials.ts';
import { environmentViews, requireActive } from './sql/environments.ts';
import { keepAhead, keyIdOf, openKey } from './sql/keys.ts';
import { badSignature, claimedSubject, parseToken, signatureMatches, signedClaims } from './tokens.ts';
import type { Claims } from './tokens.ts';

/**
 * identity#credentials: who is calling. Every credential is looked up in the database each time, so a revocation counts from the
 * next request on, on every node. Look-ups that arrive together become one query.
 */

const environmentId = new RegExp(environmentIdPattern);

export interface Authenticated {
  caller: TenantCaller;
  /** Milliseconds; only user tokens expire. */
  expiresAt: number | null;
  keyId: string | null;
  /** Seconds; null unless it is a user token. */
  issuedAt: number | null;
  /** Checks again whether the credential is still valid, and returns what the user’s row says now. */
  recheck(): Promise<{ lastSeenAt: string | null; personalRev: number }>;
}

/** The owner of a credential that is genuine but was refused: expired, revoked, or of a deactivated user. */
interface Proven {
  kind: TenantCaller['kind'];
  env: { no: number; id: string };
  keyId: string;
  user: number | null;
}
const proven = new WeakMap<object, Proven>();
export const provenBy = (error: unknown): Proven | undefined =>
  typeof error === 'object' && error !== null ? proven.get(error) : undefined;

/** Where a credential comes from. */
interface Whence {
  /** The network of the caller's address (`networkOf`). */
  address: string;
  /** True if somebody on this machine sent it, and no proxy handed it on. */
  isLocal(): boolean;
}

export interface Authenticator {
  /** @param named the environments that the request names (header, query). */
  authenticate(credential: string | undefined, named: string[], from: Whence): Promise<Authenticated>;
}

const onlyHere =
  'This environment accepts unsigned tokens only from the machine that it runs on, and not through a proxy: sign tokens, or create a development environment.';

export function createAuthenticator(options: {
  db: Queryable;
  vault: Vault;
  clock: Clock;
  limiter: RateLimiter;
  /** Called when a secret key, or a token that it signed, was accepted. */
  keyUsed?: (keyId: string) => void;
  /** Called when an unsigned token was refused because it came from elsewhere to an environment of this machine. */
  onElsewhere?: () => void;
}): Authenticator {
  const { db, vault, clock, limiter, keyUsed = () => undefined, onElsewhere = () => undefined } = options;

  const { add: lookup } = createBatcher<CredentialNames, Found | null>({
    maxBatch: 500,
    maxWaiting: 20_000,
    pace: readPace(),
    run: (items) => findCredentials(db, items),
  });

  const view = environmentViews();
  /** The environment follows from the credential; if the request names one, it must be the same. */
  function checkedEnvironment(found: Found, named: string[]): Environment {
    const env = view(found);
    if (named.some((id) => id !== env.id))
      throw new ApiError('forbidden', {
        message: 'The credential is not of the environment that the request names.',
      });
    requireActive(env);
    return env;
  }

  /** A revoked key is reported before anything that its tokens claim. */
  function checkedKey(found: Found, named: string[]): Environment {
    if (found.revoked_at) throw new ApiError('key_revoked');
    return checkedEnvironment(found, named);
  }

  async function server(secretKey: string, keyId: string, named: string[]): Promise<Authenticated> {
    const find = (): Promise<Found | null> => lookup({ keyId, envId: null, userId: '' });
    const found = await find();
    if (!found?.secret || !sameString(openKey(vault, keyId, found.secret), secretKey))
      throw new ApiError('token_invalid');
    let env: Environment;
    try {
      env = checkedKey(found, named);
    } catch (error) {
      throw attributed(error, 'server', found, keyId);
    }
    keyUsed(keyId);
    return {
      caller: serverCaller(env, keyId),
      expiresAt: null,
      keyId,
      issuedAt: null,
      recheck: async () => {
        checkedKey(present(await find()), named);
        return { lastSeenAt: null, personalRev: 0 };
      },
    };
  }

  async function client(token: string, named: string[], from: Whence): Promise<Authenticated> {
    const nowSeconds = clock.now() / 1000;
    const parsed = parseToken(token, nowSeconds);
    if (parsed.kind === 'development') {
      if (named.length === 0)
        throw new ApiError('token_invalid', { message: 'A development token needs the Chat-Env header.' });
      if (!environmentId.test(named[0]!)) throw new ApiError('token_invalid');
      const question = { keyId: null, envId: named[0]!, userId: parsed.claims.sub };
      const check = (found: Found): Environment => {
        const env = checkedEnvironment(found, named);
        if (!env.settings.devTokens) throw new ApiError('dev_tokens_disabled');
        if (env.local && !from.isLocal()) {
          onElsewhere();
          throw new ApiError('dev_tokens_disabled', { message: onlyHere });
        }
        return env;
      };
      return user(question, present(await lookup(question)), check, parsed.claims, (env) =>
        admit(env, from.address),
      );
    }
    const question = { keyId: parsed.keyId, envId: null, userId: claimedSubject(parsed) };
    const found = await lookup(question);
    if (!found?.secret || !signatureMatches(parsed, openKey(vault, parsed.keyId, found.secret)))
      throw badSignature();
    const check = (row: Found): Environment => checkedKey(row, named);
    try {
      if (found.revoked_at) throw new ApiError('key_revoked');
      return await user(question, found, check, signedClaims(parsed, nowSeconds, cutoffOf(found)));
    } catch (error) {
      throw attributed(error, 'client', found, parsed.keyId);
    }
  }

  async function user(
    question: CredentialNames,
    found: Found,
    check: (found: Found) => Environment,
    claims: Claims,
    admitNew: (env: Environment) => Promise<void> = () => Promise.resolve(),
  ): Promise<Authenticated> {
    const env = check(found);
    if (found.user_no === null) await admitNew(env);
    const row = found.user_no === null ? await firstUse(env, claims) : found;
    checkUser(row, claims);
    if (question.keyId !== null) {
      await checkAhead(question.keyId, found, row, claims);
      keyUsed(question.keyId);
    }
    return {
      caller: clientCaller(env, { no: row.user_no!, id: claims.sub }),
      expiresAt: claims.exp * 1000,
      keyId: question.keyId,
      issuedAt: claims.iat,
      recheck: async () => {
        const now = present(await lookup(question));
        check(now);
        if (now.user_no !== row.user_no) throw new ApiError('token_invalid');
        checkUser(now, claims);
        return { lastSeenAt: now.last_seen_at, personalRev: now.personal_rev! };
      },
    };
  }

  /**
   * Handles a token whose `iat` is in the future because its signer's clock is ahead. How far the clock is ahead is
   * stored with the key, because a revocation must reach all that was signed before it. In the minute after a
   * revocation, a token dated further ahead than that may have been signed before it, so it is refused; a new token
   * works after a minute at the latest. A token dated exactly with the cut-off was minted by us.
   */
  async function checkAhead(keyId: string, key: Found, row: Found, { iat }: Claims): Promise<void> {
    const nowSeconds = clock.now() / 1000;
    const ahead = Math.ceil(iat - nowSeconds);
    if (ahead <= key.ahead! || iat <= cutoffOf(row)) return;
    if (cutoffOf(row) > nowSeconds - limits.tokenLeewaySeconds)
      throw new ApiError('token_invalid', {
        message: 'The token is dated ahead, and may have been revoked.',
      });
    await keepAhead(db, key.no, keyId, ahead);
  }

  /**
   * Anybody can make development tokens, so the number of new users that they create is bounded, by address and by
   * environment.
   */
  async function admit(env: Environment, from: string): Promise<void> {
    for (const check of [
      { key: { what: 'unsignedUsers of address', of: from }, limit: rateLimits.unsignedUsersAddress },
      { key: { what: 'unsignedUsers', of: String(env.no) }, limit: rateLimits.unsignedUsersEnvironment },
    ]) {
      const [verdict] = await limiter.take([check]);
      if (verdict!.allowed) continue;
      throw new ApiError('rate_limited', {
        message: 'Too many new users come with development tokens: sign tokens, or wait.',
        retryAfterMs: verdict!.retryAfterMs,
      });
    }
  }

  /** The first use of a valid token creates the user, unless the token was issued before that id was erased. */
  async function firstUse(env: Environment, claims: Claims): Promise<Found> {
    const subject = subjectOf(vault, env.no, claims.sub);
    const tokensFrom = await erasedCutoff(db, env.no, subject);
    if (tokensFrom !== undefined && claims.iat < Date.parse(tokensFrom) / 1000)
      throw new ApiError('token_invalid');
    await createMissingUsers(db, env.no, [claims.sub], () => subject);
    const found = await lookup({ keyId: null, envId: env.id, userId: claims.sub });
    if (!found || found.user_no === null) throw new ApiError('token_invalid');
    return found;
  }

  return {
    authenticate(credential, named, from) {
      if (!credential)
        return Promise.reject(
          new ApiError('token_invalid', { message: 'No credential: send Authorization: Bearer ….' }),
        );
      const keyId = keyIdOf(credential);
      return keyId === undefined ? client(credential, named, from) : server(credential, keyId, named);
    },
  };
}

/** Remembers whose credential caused the error; `provenBy` returns it. */
function attributed(error: unknown, kind: TenantCaller['kind'], found: Found, keyId: string): unknown {
  if (error instanceof ApiError)
    proven.set(error, { kind, env: { no: found.no, id: found.id }, keyId, user: found.user_no });
  return error;
}

function present(found: Found | null): Found {
  if (!found) throw new ApiError('token_invalid');
  return found;
}

/** The cut-off in seconds; 0 if nothing was revoked. */
const cutoffOf = (row: Found): number => (row.tokens_from === null ? 0 : Date.parse(row.tokens_from) / 1000);

function checkUser(row: Found, claims: Claims): void {
  if (claims.iat < cutoffOf(row)) {
    // A deactivation also sets the cut-off, so it is reported first.
    if (row.deactivated_at) throw new ApiError('user_deactivated');
    throw new ApiError('token_invalid', { message: 'The token was revoked.' });
  }
  if (row.deactivated_at) throw new ApiError('user_deactivated');
}
