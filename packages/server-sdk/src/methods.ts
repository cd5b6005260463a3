import type { Input, OperationName, Output } from '@parley/protocol';
import { routes } from './generated/routes.ts';
import { pages } from './pages.ts';
import type { PageKind, Pages } from './pages.ts';
import { request } from './transport.ts';
import type { RequestOptions, TransportOptions } from './transport.ts';

type Routes = typeof routes;
type Name = keyof Routes & OperationName;

type Strings<P extends readonly string[]> = P extends readonly [string, ...infer R extends readonly string[]]
  ? [id: string, ...Strings<R>]
  : [];
type Fields<N extends Name> = Omit<Input<N>, Routes[N]['params'][number] & string>;
type FieldArguments<N extends Name> = keyof Fields<N> extends never
  ? []
  : {} extends Fields<N>
    ? [fields?: Fields<N>]
    : [fields: Fields<N>];
type ItemOf<O> = O extends { data: readonly (infer Item)[] } ? Item : never;
type Answer<N extends Name> = Routes[N]['statuses'][number] extends 204
  ? void
  : Output<N> | (204 extends Routes[N]['statuses'][number] ? undefined : never);
type Result<N extends Name> = Routes[N]['page'] extends null
  ? Promise<Answer<N>>
  : Pages<Output<N>, ItemOf<Output<N>>>;

/** The ids of the path in their order, then the other fields as one object, then options. */
type Method<N extends Name> = (
  ...args: [...Strings<Routes[N]['params']>, ...FieldArguments<N>, options?: RequestOptions]
) => Result<N>;

type Noun = Name extends `${infer G}.${string}` ? G : never;
type VerbOf<G extends Noun> = Name extends infer N ? (N extends `${G}.${infer V}` ? V : never) : never;

/** `parley.users.upsert(…)`, and so on for every operation that a server may call. */
export type Methods = {
  readonly [G in Noun]: {
    readonly [V in VerbOf<G>]: `${G}.${V}` extends Name ? Method<`${G}.${V}`> : never;
  };
};

interface Route {
  method: string;
  path: string;
  params: readonly string[];
  query: readonly string[];
  body: boolean;
  page: PageKind | null;
}

export function methods(options: TransportOptions): Methods {
  const groups: Record<string, Record<string, unknown>> = {};
  for (const [name, route] of Object.entries<Route>(routes)) {
    const [noun, verb] = name.split('.') as [string, string];
    (groups[noun] ??= {})[verb] = method(name, route, options);
  }
  return groups as Methods;
}

function method(name: string, route: Route, options: TransportOptions) {
  const takesFields = route.body || route.query.length > 0;
  return (...args: unknown[]): unknown => {
    const path = pathOf(name, route, args);
    const rest = args.slice(route.params.length);
    const fields = (takesFields ? rest.shift() : undefined) ?? {};
    const own = (rest[0] ?? {}) as RequestOptions;
    const call = (given: Record<string, unknown>) => {
      const inQuery = ([key]: [string, unknown]) => !route.body || route.query.includes(key);
      const entries = Object.entries(given);
      return request(
        options,
        {
          method: route.method,
          path,
          query: Object.fromEntries(entries.filter(inQuery)),
          body: route.body ? Object.fromEntries(entries.filter((entry) => !inQuery(entry))) : undefined,
        },
        own,
      );
    };
    const given = fields as Record<string, unknown>;
    if (route.page === null) return call(given);
    return pages(route.page, given, call as Parameters<typeof pages>[2]);
  };
}

function pathOf(name: string, route: Route, args: unknown[]): string {
  return route.params.reduce((path, param, index) => {
    const value = args[index];
    // `.` and `..` would change the path even if encoded, and an empty id would name another route.
    if (typeof value !== 'string' || /^\.{0,2}$/.test(value)) {
      throw new TypeError(`${name}: ${param} must be an id`);
    }
    return path.replace(`{${param}}`, () => encodeURIComponent(value));
  }, route.path);
}
