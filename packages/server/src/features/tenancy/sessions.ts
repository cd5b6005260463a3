import type { Environment, HttpCaller } from '../context.ts';

export type DashboardCaller = Extract<HttpCaller, { kind: 'dashboard' }>;

/** Who is signed in to the dashboard, for the bindings. */
export interface Sessions {
  /** Throws `token_invalid` where the cookie is nobody's session, or one that has ended. */
  authenticate(cookie: string): Promise<DashboardCaller>;
  /** Throws `not_found` for an environment of none of the caller's organizations, as for one that does not exist. */
  environment(caller: DashboardCaller, id: string): Promise<Environment>;
}
