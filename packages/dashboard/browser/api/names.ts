import { useCall } from './hooks.ts';

/** As many as one look-up takes. */
const most = 200;

/** The names of users. Users without a name, or whose name is not loaded yet, are shown by their id. */
export function useNames(ids: readonly (string | null)[]): (id: string) => string {
  const userIds = [...new Set(ids.filter((id) => id !== null))].sort().slice(0, most);
  const { data } = useCall('users.lookup', { userIds }, { enabled: userIds.length > 0 });
  const names = new Map(data?.data.map((user) => [user.id, user.name]));
  return (id) => names.get(id) ?? id;
}
