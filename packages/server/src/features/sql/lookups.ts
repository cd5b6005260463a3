/**
 * Ways to look up rows that never become a scan of the table, whatever the statistics say. Each is a LATERAL subquery
 * that PostgreSQL can neither reorder nor hash (because of LIMIT or OFFSET 0), on an index whose first column is
 * given. `env + 0` excludes indexes that begin with the environment but do not have that column: the planner takes
 * environment and user to be independent, and then expects that a walk over all conversations of the environment
 * finds almost nothing.
 *
 * Arguments are SQL: parameters or columns.
 */

/** SQL for when a user was deactivated; null if it is not, or no longer: an end needs no job. */
export const deactivatedAt = (user?: string): string => {
  const of = user === undefined ? '' : `${user}.`;
  return `CASE WHEN (${of}deactivated_until > clock_timestamp()) IS NOT FALSE THEN ${of}deactivated_at END`;
};

export const conversationOf = (env: string, no: string): string =>
  `LATERAL (SELECT * FROM conversations WHERE no = ${no} AND env = ${env} LIMIT 1)`;

export const userOf = (env: string, no: string): string =>
  `LATERAL (SELECT * FROM users WHERE no = ${no} AND env = ${env} LIMIT 1)`;

export const memberOf = (env: string, conv: string, usr: string): string =>
  `LATERAL (SELECT * FROM members WHERE conv = ${conv} AND usr = ${usr} AND env = ${env} LIMIT 1)`;

/** All memberships of a user that satisfy the condition `more`. */
export const membershipsOf = (env: string, usr: string, more = 'true'): string =>
  `LATERAL (SELECT * FROM members WHERE usr = ${usr} AND env + 0 = ${env} AND ${more} OFFSET 0)`;
