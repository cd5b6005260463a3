import type { Queryable } from '../../../platform/postgres/db.ts';
import type { ClosedSession } from '../../context.ts';

/** A participant whose socket closed. */
export interface Disconnected {
  env: number;
  call: number;
  usr: number;
  /** null if the participant has named no socket. */
  session: string | null;
  at: string;
}

/** Stores the time at which the sockets of participants closed. */
export const markDisconnected = (tx: Queryable, closed: readonly ClosedSession[]): Promise<Disconnected[]> =>
  tx.query<Disconnected>(
    `UPDATE call_participants p SET gone_at = clock_timestamp()
         FROM unnest($1::int[], $2::bigint[], $3::text[]) s(env, usr, session)
         WHERE p.env = s.env AND p.usr = s.usr AND p.state IN ('joining', 'joined')
           AND (p.session IS NULL OR (p.session = s.session AND p.gone_at IS NULL))
         RETURNING p.env, p.call, p.usr, p.session, p.gone_at AS at`,
    [closed.map((c) => c.env), closed.map((c) => c.user), closed.map((c) => c.session)],
  );

const mostConnected = 1_000;

/** Participants with a socket of which no closing is stored. */
export const connectedParticipants = (db: Queryable): Promise<ClosedSession[]> =>
  db.query<ClosedSession>(
    `SELECT env, usr AS user, session FROM call_participants
       WHERE state IN ('joining', 'joined') AND gone_at IS NULL AND session IS NOT NULL LIMIT ${mostConnected}`,
  );
