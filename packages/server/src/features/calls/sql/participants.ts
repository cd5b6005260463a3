import type { Queryable } from '../../../platform/postgres/db.ts';
import { anyRow, arraysOf } from '../../../platform/postgres/rows.ts';
import type { ClosedSession } from '../../context.ts';
import type { MediaSeat } from '../../media-request.ts';

/** A participant whose socket closed. */
export interface Disconnected {
  env: number;
  call: number;
  usr: number;
  /** null if the participant has named no socket. */
  session: string | null;
  at: string;
}

/** Whether the user takes part in the call with this device. */
export const isInWith = (db: Queryable, { env, call, user }: MediaSeat, device: string): Promise<boolean> =>
  anyRow(
    db,
    `SELECT 1 FROM call_participants
     WHERE env = $1 AND call = $2 AND usr = $3 AND device = $4 AND state IN ('joining', 'joined')`,
    [env, call, user, device],
  );

/** A socket that closed, or null for those of a participant who has named none. */
export interface Gone extends Omit<ClosedSession, 'session'> {
  session: string | null;
}

/** Stores the time at which the sockets of participants closed. */
export const markDisconnected = (tx: Queryable, closed: readonly Gone[]): Promise<Disconnected[]> =>
  tx.query<Disconnected>(
    `UPDATE call_participants p SET gone_at = clock_timestamp()
         FROM unnest($1::int[], $2::bigint[], $3::text[]) s(env, usr, session)
         WHERE p.env = s.env AND p.usr = s.usr AND p.state IN ('joining', 'joined')
           AND (p.session IS NULL OR (p.session = s.session AND p.gone_at IS NULL))
         RETURNING p.env, p.call, p.usr, p.session, p.gone_at AS at`,
    arraysOf(closed, 'env', 'user', 'session'),
  );

const mostConnected = 1_000;

/** Participants of whom no closing is stored: those with a socket and, in an active call, those who have named none. */
export const connectedParticipants = (db: Queryable): Promise<Gone[]> =>
  db.query<Gone>(
    `SELECT p.env, p.usr AS user, p.session FROM call_participants p
       WHERE p.state IN ('joining', 'joined') AND p.gone_at IS NULL AND (p.session IS NOT NULL
         OR (SELECT k.status FROM calls k WHERE k.env = p.env AND k.no = p.call) = 'active') LIMIT ${mostConnected}`,
  );
