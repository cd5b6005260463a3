import type { Plan } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { arraysOf } from '../../platform/postgres/rows.ts';

export interface Notice {
  env: number;
  id: string;
  plan: string;
  what: 'users' | 'connections';
  percent: number;
  used: number;
  most: number;
}

const noteSql = `
  WITH used AS (
    SELECT e.no, e.id, e.org, e.plan, l.users, l.connections, date_trunc('month', now(), 'UTC') AS month, m.n,
      (SELECT max((c.counts ->> 'peakConnections')::bigint) FROM counters c
       WHERE c.env = e.no AND c.step = 1 AND c.at >= date_trunc('month', now(), 'UTC')) AS peak
    FROM environments e JOIN unnest($1::text[], $2::bigint[], $3::bigint[]) AS l(plan, users, connections) ON l.plan = e.plan
      LEFT JOIN LATERAL (
        SELECT n FROM active_months a WHERE a.env = e.no AND a.at = date_trunc('month', now(), 'UTC') LIMIT 1
      ) m ON true
    WHERE e.status = 'active'
  ), near AS (
    SELECT u.no AS env, u.id, u.org, u.plan, u.month, x.what, p.percent, x.used, x.most FROM used u
      CROSS JOIN LATERAL (VALUES ('users', u.n, u.users), ('connections', u.peak, u.connections)) AS x(what, used, most)
      CROSS JOIN unnest('{80,100}'::int[]) AS p(percent)
    WHERE x.most > 0 AND x.used * 100 >= x.most * p.percent
  ), noted AS (
    INSERT INTO plan_notices (env, at, what, percent) SELECT env, month, what, percent FROM near ON CONFLICT DO NOTHING
    RETURNING env, what, percent
  ) SELECT DISTINCT ON (n.env, n.what) n.env, n.id, n.plan, n.what, n.percent, n.used, n.most
    FROM near n JOIN noted k ON k.env = n.env AND k.what = n.what AND k.percent = n.percent ORDER BY n.env, n.what, n.percent DESC`;

/** Notes each ceiling that is nearly or completely used, once a month, and returns those that are new. */
export const noteCeilings = (
  tx: Queryable,
  plans: readonly Pick<Plan, 'name' | 'mauLimit' | 'connectionLimit'>[],
): Promise<Notice[]> => tx.query<Notice>(noteSql, arraysOf(plans, 'name', 'mauLimit', 'connectionLimit'));
