/** dashboard#roles: what an account may do in an organization that it belongs to. */

/** From highest to lowest: each role may do everything that the later ones may. */
export const accountRoles = ['owner', 'admin', 'developer', 'viewer'] as const;
export type AccountRole = (typeof accountRoles)[number];

/**
 * The lowest role that has each permission. Every operation of the dashboard names a permission, or concerns the
 * account alone.
 */
export const permissions = {
  /** See the organization, its people and its environments, and what happened in them. */
  'organization.read': 'viewer',
  'organization.update': 'admin',
  'organization.delete': 'owner',
  /** Invite people, change their roles, remove them. Only owners may change owners. */
  'people.manage': 'admin',
  /** See environments without secrets, as with everything that a viewer reads. */
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
  /** Review reports, silence users, write word lists. */
  'moderation.manage': 'developer',
  /** See users, conversations and their members. */
  'explorer.read': 'viewer',
  /** Create users and conversations, change members, send messages. */
  'explorer.write': 'developer',
  /** See requests, sockets and deliveries, without their content. */
  'logs.read': 'viewer',
  /** Read message texts. */
  'content.read': 'developer',
} as const satisfies Record<string, AccountRole>;
export type Permission = keyof typeof permissions;

export const roleIncludes = (role: AccountRole, least: AccountRole): boolean =>
  accountRoles.indexOf(role) <= accountRoles.indexOf(least);

export const roleMay = (role: AccountRole, permission: Permission): boolean =>
  roleIncludes(role, permissions[permission]);
