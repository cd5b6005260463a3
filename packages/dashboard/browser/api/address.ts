import type { OperationName } from '@parley/protocol';
import { routes } from './generated/routes.ts';

/** The address of a call. The service uses it too, for the calls that the head of a page preloads. */

export type CallName = keyof typeof routes & OperationName;

interface Route {
  method: string;
  path: string;
  params: readonly string[];
  query: readonly string[];
  body: boolean;
  /** A secret key may call it too. */
  key: boolean;
}

interface Prepared {
  method: string;
  path: string;
  body: string | undefined;
}

export function prepare(name: CallName, input: Record<string, unknown>): Prepared {
  const route: Route = routes[name];
  const query = new URLSearchParams();
  const body: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(input)) {
    if (value === undefined || route.params.includes(key)) continue;
    if (route.query.includes(key)) query.set(key, String(value));
    else body[key] = value;
  }
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, key: string) =>
    encodeURIComponent(String(input[key])),
  );
  const search = query.toString();
  return {
    method: route.method,
    path: search === '' ? path : `${path}?${search}`,
    body: route.body ? JSON.stringify(body) : undefined,
  };
}

/** Where a GET is, for a link that the browser follows itself. */
export function addressOf(name: CallName, input: Record<string, unknown>, env: string | null): string {
  const { path } = prepare(name, input);
  return env === null ? path : `${path}${path.includes('?') ? '&' : '?'}env=${encodeURIComponent(env)}`;
}
