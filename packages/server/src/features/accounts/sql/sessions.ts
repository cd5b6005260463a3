import type { Output } from '@parley/protocol';
import type { Clock } from '../../../platform/clock.ts';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { anyRow } from '../../../platform/postgres/rows.ts';
import type { ControlServices } from '../../context.ts';
import { hashToken, makeToken, tokenForm } from '../tokens.ts';

/**
 * dashboard#session: sessions of the dashboard. A session ends 12 h after its last use, 30 days after it
 * began, or when somebody ends it. The cookie holds the session's token, which is replaced at every sign-in and
 * whenever the password is confirmed.
 */

const hour = 3_600_000;
export const sessionTimes = {
  idleMs: 12 * hour,
  totalMs: 30 * 24 * hour,
  /** `used_at` is written again only when it is older than this, in milliseconds. */
  usedMs: 60_000,
  /** For how many milliseconds after a sign-in the account may do what needs a recent one. */
  recentMs: 15 * 60_000,
};
/** Sessions per account; a further sign-in ends the session that was unused for the longest time. */
const maxSessions = 50;
const maxUserAgent = 300;

type Tools = Pick<ControlServices, 'clock' | 'ids'>;

/** Where a request came from. */
export interface Origin {
  address: string;
  userAgent: string;
}

export interface Session {
  id: string;
  account: number;
  createdAt: string;
  signedInAt: string;
  usedAt: string;
}

type SessionView = Omit<Output<'account.listSessions'>['data'][number], 'current'>;

const columns = 'id, account, created_at AS "createdAt", signed_in_at AS "signedInAt", used_at AS "usedAt"';
const isLive = `used_at > $2::timestamptz - interval '${sessionTimes.idleMs} milliseconds'
   AND created_at > $2::timestamptz - interval '${sessionTimes.totalMs} milliseconds'`;

export async function createSession(
  db: Queryable,
  { clock, ids }: Tools,
  account: number,
  { address, userAgent }: Origin,
): Promise<{ token: string; session: Session }> {
  const token = makeToken(ids.random);
  const now = new Date(clock.now());
  const [session] = await db.query<Session>(
    `INSERT INTO account_sessions (id, account, token, created_at, signed_in_at, used_at, address, user_agent)
     VALUES ($1, $2, $3, $4, $4, $4, $5, $6) RETURNING ${columns}`,
    [ids.make('accountSession'), account, hashToken(token), now, address, userAgent.slice(0, maxUserAgent)],
  );
  await db.query(
    `DELETE FROM account_sessions WHERE id IN (
       SELECT id FROM account_sessions WHERE account = $1 ORDER BY used_at DESC, id DESC OFFSET ${maxSessions})`,
    [account],
  );
  return { token, session: session! };
}

export interface SignedIn extends Session {
  accountId: string;
  email: string;
}

/** Returns the session that the token opens, or null, and marks the session as used now. */
export async function useSession(db: Queryable, clock: Clock, token: string): Promise<SignedIn | null> {
  if (!tokenForm.test(token)) return null;
  const now = clock.now();
  const [session] = await db.query<SignedIn>(
    `SELECT s.*, a.id AS "accountId", a.email
     FROM (SELECT ${columns} FROM account_sessions WHERE token = $1 AND ${isLive}) s
     JOIN accounts a ON a.no = s.account`,
    [hashToken(token), new Date(now)],
  );
  if (!session) return null;
  if (now - Date.parse(session.usedAt) >= sessionTimes.usedMs)
    await db.query('UPDATE account_sessions SET used_at = $2 WHERE id = $1 AND used_at < $2', [
      session.id,
      new Date(now),
    ]);
  return session;
}

/** Gives the session a new token, as if just signed in; the old token is no longer valid. */
export async function renewToken(
  db: Queryable,
  { clock, ids }: Tools,
  id: string,
): Promise<{ token: string; session: Session } | null> {
  const token = makeToken(ids.random);
  const [session] = await db.query<Session>(
    `UPDATE account_sessions SET token = $2, used_at = $3, signed_in_at = $3 WHERE id = $1 RETURNING ${columns}`,
    [id, hashToken(token), new Date(clock.now())],
  );
  return session ? { token, session } : null;
}

export const endByToken = (db: Queryable, token: string) =>
  db.query('DELETE FROM account_sessions WHERE token = $1', [hashToken(token)]);

/** Returns true if the account had this session. */
export const endSession = (db: Queryable, account: number, id: string): Promise<boolean> =>
  anyRow(db, 'DELETE FROM account_sessions WHERE account = $1 AND id = $2 RETURNING 1', [account, id]);

/** Whether nobody has ended this session of the account. */
export const hasSession = (db: Queryable, account: number, id: string): Promise<boolean> =>
  anyRow(db, 'SELECT 1 FROM account_sessions WHERE account = $1 AND id = $2', [account, id]);

/** Ends all sessions of the account except one. Returns how many it ended. */
export async function endOtherSessions(
  db: Queryable,
  account: number,
  except: string | null,
): Promise<number> {
  const rows = await db.query(
    `DELETE FROM account_sessions WHERE account = $1 AND id IS DISTINCT FROM $2 RETURNING 1`,
    [account, except],
  );
  return rows.length;
}

export const listSessions = (db: Queryable, clock: Clock, account: number): Promise<SessionView[]> =>
  db.query<SessionView>(
    `SELECT id, created_at AS "createdAt", used_at AS "lastUsedAt", address, user_agent AS "userAgent"
     FROM account_sessions WHERE account = $1 AND ${isLive} ORDER BY used_at DESC, id DESC LIMIT ${maxSessions}`,
    [account, new Date(clock.now())],
  );

/** dashboard#reauth: whether the sign-in is recent enough for operations that need a recent one. */
export const isRecent = (session: { signedInAt: string }, clock: Clock): boolean =>
  clock.now() - Date.parse(session.signedInAt) < sessionTimes.recentMs;
