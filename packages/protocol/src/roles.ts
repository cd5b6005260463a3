/** DECISIONS, Control plane: what an account may do in an organization that it belongs to. */

/** Each may do all that those after it may. */
export const accountRoles = ['owner', 'admin', 'developer', 'viewer'] as const;
export type AccountRole = (typeof accountRoles)[number];

/** The least role that may do a thing. Every operation of the dashboard names one of these, or concerns the account alone. */
export const permissions = {
  /** See the organization, its people and its environments, and what happened in them. */
  'organization.read': 'viewer',
  'organization.update': 'admin',
  /** Invite people, change their roles, remove them. Owners are changed by owners alone. */
  'people.manage': 'admin',
  /** Without secrets, like everything that a viewer reads. */
  'environments.read': 'viewer',
  'environments.manage': 'developer',
  'keys.manage': 'developer',
  'webhooks.manage': 'developer',
  'push.manage': 'developer',
  'storage.manage': 'developer',
  /** End calls, mute and remove their participants. */
  'calls.manage': 'developer',
  /** Deactivate and erase users, end their sessions. */
  'users.manage': 'developer',
  /** Users, conversations and their members. */
  'explorer.read': 'viewer',
  /** Requests, sockets and deliveries, without what was in them. */
  'logs.read': 'viewer',
  /** What people wrote. */
  'content.read': 'developer',
} as const satisfies Record<string, AccountRole>;
export type Permission = keyof typeof permissions;

export const roleIncludes = (role: AccountRole, least: AccountRole): boolean =>
  accountRoles.indexOf(role) <= accountRoles.indexOf(least);

export const roleMay = (role: AccountRole, permission: Permission): boolean =>
  roleIncludes(role, permissions[permission]);
