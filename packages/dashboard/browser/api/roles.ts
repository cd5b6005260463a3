import { useEnv } from './hooks.ts';
import { routes } from './generated/routes.ts';
import type { CallName } from './address.ts';
import type { Session } from './session.ts';
import { useSession } from './session.ts';

/** The permissions of the signed-in account. They only hide controls: the service checks every call again. */

type OrganizationEntry = Session['organizations'][number];
type Role = OrganizationEntry['role'];

/** From the highest role to the lowest: each role has all permissions of the roles after it. */
const ranks: Role[] = ['owner', 'admin', 'developer', 'viewer'];

/** The organization of the environment that the address names; outside of one the first. */
export const useOrganization = (): OrganizationEntry | undefined => {
  const env = useEnv();
  const { data } = useSession();
  return data?.organizations.find((org) => env === null || org.environments.some((e) => e.id === env));
};

export function useMay(name: CallName): boolean {
  const role = useOrganization()?.role;
  const least: Role | null = routes[name].role;
  return role !== undefined && (least === null || ranks.indexOf(role) <= ranks.indexOf(least));
}

/** The environment that the address names. */
export function useEnvironment(): OrganizationEntry['environments'][number] | undefined {
  const env = useEnv();
  return useOrganization()?.environments.find((e) => e.id === env);
}

/** What destructive actions ask to be typed: the environment's name in production, nothing elsewhere. */
export function useProductionName(): string | undefined {
  const env = useEnvironment();
  return env?.kind === 'production' ? env.name : undefined;
}
