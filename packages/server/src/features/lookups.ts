/**
 * Ways to look up rows that no statistics can turn into a scan of the table. Each is a LATERAL subquery that PostgreSQL can
 * neither join in another order nor hash (LIMIT, OFFSET 0), on an index whose first column is given. `env + 0` keeps an index
 * out of it that has the environment but not that column: the planner takes environment and user for independent of each other,
 * and then believes that a walk over all conversations finds almost nothing.
 *
 * Arguments are SQL: parameters or columns.
 */
export const conversationOf = (env: string, no: string): string =>
  `LATERAL (SELECT * FROM conversations WHERE no = ${no} AND env = ${env} LIMIT 1)`;

export const userOf = (env: string, no: string): string =>
  `LATERAL (SELECT * FROM users WHERE no = ${no} AND env = ${env} LIMIT 1)`;

export const memberOf = (env: string, conv: string, usr: string): string =>
  `LATERAL (SELECT * FROM members WHERE conv = ${conv} AND usr = ${usr} AND env = ${env} LIMIT 1)`;

/** All memberships of a user, where `more` holds. */
export const membershipsOf = (env: string, usr: string, more = 'true'): string =>
  `LATERAL (SELECT * FROM members WHERE usr = ${usr} AND env + 0 = ${env} AND ${more} OFFSET 0)`;
