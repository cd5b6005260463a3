import type { Static, TObject, TProperties, TSchema } from 'typebox';
import { closed } from '../schemas/common.ts';
import type { ErrorCode } from '../errors.ts';
import type { FeatureName } from '../features.ts';
import { limits } from '../limits.ts';
import type { Permission } from '../roles.ts';

/** `anyone` needs no credential (signing in). `operator` is the command line, and has no other way in. */
export type Caller = 'server' | 'client' | 'dashboard' | 'anyone' | 'operator';
/**
 * Tenants work inside an environment, with a key or a token that says which. The control plane is for those who
 * manage environments: people signed in to the dashboard, and the operator. Each plane has its own authentication,
 * its own limits, and its own rules for requests from web pages.
 */
export type Plane = 'tenant' | 'control';
/**
 * What a call concerns: one environment, named by the credential or `Chat-Env`; one organization, named by the field
 * `organizationId` or `environmentId` of the request; everything that the caller may manage; or the caller's own
 * account.
 */
export type Scope = 'environment' | 'organization' | 'organizations' | 'account';
/** Which limit a call counts against, besides its caller's own (plans#rates). */
export type RateClass = 'request' | 'send' | 'upload' | 'reaction' | 'report' | 'join';
export type Format = 'application/json' | 'application/jsonl' | 'text/csv';
export type Method = 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE';

export interface Operation {
  name: string;
  summary: string;
  /** Details that the summary leaves out, for a first call of the operation. */
  text: string;
  tag: string;
  callers: readonly Caller[];
  plane: Plane;
  scope: Scope;
  /** The permission that an account's role must include so that the dashboard may call it; null if none is needed. */
  permission: Permission | null;
  /** dashboard#reauth: the dashboard may call it only within 15 minutes after a sign-in. */
  recent: boolean;
  method: Method;
  path: string;
  params: TObject;
  query: TObject;
  /** null if the operation takes no body. */
  body: TObject | null;
  /** A request without a body is one whose body has no fields. */
  bodyOptional: boolean;
  /** Status codes of success; the first is the usual one. */
  statuses: readonly number[];
  /** null if there is no content. */
  response: TSchema | null;
  /** The content types of the answer; the first is the usual one. Each line of `application/jsonl` is a separate object. */
  formats: readonly Format[];
  errors: readonly ErrorCode[];
  /** The feature that it belongs to: where that is off, it is `feature_disabled`. */
  feature?: FeatureName;
  rate: RateClass;
  /**
   * Running it again changes nothing, and it waits for something that needs no transaction (another server, the group
   * commit). Under an Idempotency-Key it therefore runs before the transaction that stores its answer, not inside.
   */
  repeatable: boolean;
  /**
   * What a call costs the store; reading a single thing costs 1. Environments take turns by cost, so that a page of 200
   * messages counts like several of 10. For rate limits every request counts as one.
   *
   * A call that costs 0 takes no turn. Sends, reads and syncs are collected into batches, which have their own bounds; calls
   * that wait for another server, or for a password hash, do not use the store meanwhile.
   */
  cost: (input: never) => number;
  /** It changes nothing, so nothing is stored for an Idempotency-Key: running it again is as good as repeating its answer. */
  changesNothing: boolean;
  /** api#deprecation: answers carry `Deprecation` and `Sunset`. */
  deprecated?: { since: string; sunset: string };
}

/** An operation that a server or a client may call belongs to the tenant plane, even if others may call it too. */
type PlaneOf<C extends readonly Caller[]> = [Extract<C[number], 'server' | 'client'>] extends [never]
  ? 'control'
  : 'tenant';

interface Spec<
  C extends readonly Caller[],
  S extends Scope,
  P extends TProperties,
  Q extends TProperties,
  B extends TProperties,
  R extends TSchema,
> {
  summary: string;
  text: string;
  tag: string;
  /** The plane follows from the callers. */
  callers: C;
  /** The default is `environment`. */
  scope?: S;
  permission?: Permission;
  recent?: boolean;
  params?: P;
  query?: Q;
  body?: B;
  bodyOptional?: boolean;
  statuses?: readonly number[];
  response?: R;
  /** The default is JSON alone. */
  formats?: readonly Format[];
  errors?: readonly ErrorCode[];
  feature?: FeatureName;
  rate?: RateClass;
  repeatable?: boolean;
  changesNothing?: boolean;
  /** The default is 1. */
  cost?: number | ((input: Fields<P> & Fields<Q> & Fields<B>) => number);
  deprecated?: { since: string; sunset: string };
}

/** The input of an executor: path, query and body fields in one object (a test checks that their names never collide). */
export interface Typed<Input, Output> {
  readonly $input?: Input;
  readonly $output?: Output;
}
export type InputOf<O> = O extends Typed<infer I, unknown> ? I : never;
export type OutputOf<O> = O extends Typed<unknown, infer R> ? R : never;

type Fields<P extends TProperties> = Static<TObject<P>>;

export function operation<
  const N extends string,
  const C extends readonly Caller[],
  const S extends Scope = 'environment',
  P extends TProperties = {},
  Q extends TProperties = {},
  B extends TProperties = {},
  R extends TSchema = TSchema,
>(
  name: N,
  route: `${Method} /v1/${string}`,
  spec: Spec<C, S, P, Q, B, R>,
): Omit<Operation, 'plane'> & { name: N; callers: C; plane: PlaneOf<C>; scope: S } & Typed<
    Fields<P> & Fields<Q> & Fields<B>,
    Static<R>
  > {
  const [method, path] = route.split(' ') as [Method, string];
  const { cost = 1 } = spec;
  return {
    name,
    method,
    path,
    summary: spec.summary,
    text: spec.text,
    tag: spec.tag,
    callers: spec.callers,
    plane: (spec.callers.some((c) => c === 'server' || c === 'client') ? 'tenant' : 'control') as PlaneOf<C>,
    scope: spec.scope ?? ('environment' as S),
    permission: spec.permission ?? null,
    recent: spec.recent ?? false,
    params: closed(spec.params ?? {}),
    query: closed(spec.query ?? {}),
    body: spec.body ? closed(spec.body) : null,
    bodyOptional: spec.bodyOptional ?? false,
    statuses: spec.statuses ?? [spec.response ? 200 : 204],
    response: spec.response ?? null,
    formats: spec.formats ?? ['application/json'],
    errors: spec.errors ?? [],
    rate: spec.rate ?? 'request',
    repeatable: spec.repeatable ?? false,
    changesNothing: spec.changesNothing ?? method === 'GET',
    cost: typeof cost === 'function' ? cost : () => cost,
    ...(spec.feature ? { feature: spec.feature } : {}),
    ...(spec.deprecated ? { deprecated: spec.deprecated } : {}),
  };
}

/** Operations by name. */
export const table = <const O extends readonly { name: string }[]>(...list: O) =>
  Object.fromEntries(list.map((op) => [op.name, op])) as { [Op in O[number] as Op['name']]: Op };

/** The cost of a page: this many items cost as much as reading a single thing. */
export const pageCost =
  (items: number) =>
  ({ limit = limits.pageDefault }: { limit?: number }): number =>
    1 + limit / items;

/** Idempotency-Key is accepted on every POST, PATCH and DELETE (api#idempotency). */
export const acceptsIdempotencyKey = (op: Operation): boolean =>
  op.method === 'POST' || op.method === 'PATCH' || op.method === 'DELETE';

/** The callers that may use it over HTTP. */
export const httpCallers = (op: Operation): Exclude<Caller, 'operator'>[] =>
  op.callers.filter((caller) => caller !== 'operator');
