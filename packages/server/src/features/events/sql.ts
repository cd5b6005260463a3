import type { EventName } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { conversationColumns } from '../conversations/sql.ts';
import type { ConversationRow, MemberView } from '../conversations/sql.ts';
import { userOf } from '../sql/lookups.ts';

/** A stored event, which refers to other rows by number. */
export interface KeptEvent {
  env: number;
  conv: number | null;
  seq: number | null;
  type: string;
  /** The seq of the message that the event is about. */
  message: number | null;
  users: number[] | null;
  actor: number | null;
  data: string | null;
}

interface EventRow extends KeptEvent {
  seq: number;
  type: EventName;
  at: string;
}

/** The events of a conversation with after < seq <= upTo, without messages. */
export const storedEvents = (
  db: Queryable,
  env: number,
  conv: number,
  after: number,
  upTo: number,
): Promise<EventRow[]> =>
  db.query<EventRow>(
    `SELECT env, conv, seq, type, message, users, actor, data, created_at AS at FROM events
       WHERE env = $1 AND conv = $2 AND seq > $3 AND seq <= $4`,
    [env, conv, after, upTo],
  );

/** The events of these types above `after`, with the users that they name. */
export const eventsOfTypes = (
  db: Queryable,
  env: number,
  conv: number,
  after: number,
  types: readonly EventName[],
): Promise<{ seq: number; type: EventName; users: number[] }[]> =>
  db.query(
    `SELECT seq, type, users FROM events WHERE env = $1 AND conv = $2 AND seq > $3 AND type = ANY($4)`,
    [env, conv, after, types],
  );

export const conversationsOf = (
  db: Queryable,
  places: readonly { env: number; no: number }[],
): Promise<(ConversationRow & { env: number })[]> =>
  places.length === 0
    ? Promise.resolve([])
    : db.query(
        `SELECT c.env, ${conversationColumns} FROM unnest($1::int[], $2::bigint[]) u(env, no)
         CROSS JOIN LATERAL (SELECT * FROM conversations WHERE env = u.env AND no = u.no LIMIT 1) c`,
        [places.map((p) => p.env), places.map((p) => p.no)],
      );

export const membersOf = (
  db: Queryable,
  places: readonly { env: number; no: number }[],
): Promise<{ env: number; conv: number; members: MemberView[] }[]> =>
  places.length === 0
    ? Promise.resolve([])
    : db.query(
        `SELECT m.env, m.conv, json_agg(json_build_object('userId', x.id, 'role', m.role) ORDER BY x.id) AS members
         FROM unnest($1::int[], $2::bigint[]) u(env, no)
         JOIN members m ON m.env = u.env AND m.conv = u.no CROSS JOIN ${userOf('m.env', 'm.usr')} x
         GROUP BY 1, 2`,
        [places.map((p) => p.env), places.map((p) => p.no)],
      );
