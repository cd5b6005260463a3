import type { Logger } from '../../platform/logging.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { Mails } from '../accounts/mail.ts';
import { ownersOf } from '../accounts/sql/organizations.ts';
import type { Plans } from './table.ts';

/** Owners get a mail when 80 and when 100 percent of a ceiling are used, each once a month. */

interface Notice {
  env: number;
  id: string;
  org: number;
  plan: string;
  what: 'users' | 'connections';
  percent: number;
  used: number;
  most: number;
}

/** Each notice is inserted once, and its mail is a job of the same transaction. */
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
  ) SELECT DISTINCT ON (n.env, n.what) n.env, n.id, n.org, n.plan, n.what, n.percent, n.used, n.most
    FROM near n JOIN noted k ON k.env = n.env AND k.what = n.what AND k.percent = n.percent ORDER BY n.env, n.what, n.percent DESC`;

const names = { users: 'monthly active users', connections: 'connections' } as const;
const then = {
  users:
    'Users who were active in this month go on; others are refused (429 plan_limit_reached) until the month ends.',
  connections: 'Further sockets are closed with 4008 until others close.',
} as const;

export async function tellOwners(db: Db, plans: Plans, mails: Mails, logger: Logger): Promise<number> {
  const table = Object.values(plans);
  return db.tx(async (tx) => {
    const notices = await tx.query<Notice>(noteSql, [
      table.map(({ name }) => name),
      table.map(({ mauLimit }) => mauLimit),
      table.map(({ connectionLimit }) => connectionLimit),
    ]);
    for (const notice of notices) {
      const { env, id, org, plan, what, percent, used, most } = notice;
      const text = `${id} uses ${used} of the ${most} ${names[what]} of its plan ${plan}.`;
      logger.warn({ env: id, what, percent, used, most }, 'the ceiling of a plan is near');
      const owners = await ownersOf(tx, env);
      if (owners.length === 0) continue;
      await mails.send(tx, org, {
        to: owners.map(({ email }) => email),
        subject: `${id}: ${percent} percent of its ${names[what]} are used`,
        text: [
          text,
          percent >= 100 ? then[what] : `At 100 percent: ${then[what]}`,
          '',
          'Whoever runs the service can change the plan: npm run parley -- env set <env id> --plan <plan>',
        ].join('\n'),
      });
    }
    return notices.length;
  });
}
