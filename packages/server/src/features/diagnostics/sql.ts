import type { SocketSession, WebhookAttempt } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import { firstRow, oneRow } from '../../platform/postgres/rows.ts';
import { conversationOf } from '../sql/lookups.ts';
import type { LevelRow } from '../levels.ts';

/** Queries for what is stored about one message and one user. They read no message text. */

export interface MessageFacts {
  conv: number;
  conversationId: string;
  id: string;
  seq: number;
  sender: number | null;
  senderId: string | null;
  createdAt: string;
  editedAt: string | null;
  deletedAt: string | null;
  extras: string | null;
}

export const messageFacts = (db: Queryable, env: number, id: string) =>
  firstRow<MessageFacts>(
    db,
    `SELECT m.conv, c.id AS "conversationId", m.id, m.seq, m.sender, u.id AS "senderId", m.created_at AS "createdAt",
       m.edited_at AS "editedAt", m.deleted_at AS "deletedAt", m.extras
     FROM messages m CROSS JOIN ${conversationOf('m.env', 'm.conv')} c
     LEFT JOIN users u ON u.env = m.env AND u.no = m.sender
     WHERE m.env = $1 AND m.id = $2`,
    [env, id],
  );

export interface Membership extends LevelRow {
  lastReadSeq: number;
  lastDeliveredSeq: number;
  /** Those of the conversation. */
  rules: string | null;
}

export const membership = (db: Queryable, env: number, conv: number, user: number) =>
  firstRow<Membership>(
    db,
    `SELECT m.level, m.muted, m.muted_until AS "mutedUntil", m.last_read_seq AS "lastReadSeq", m.last_delivered_seq AS "lastDeliveredSeq",
       c.rules FROM members m CROSS JOIN ${conversationOf('m.env', 'm.conv')} c
     WHERE m.env = $1 AND m.conv = $2 AND m.usr = $3`,
    [env, conv, user],
  );

export interface Move {
  seq: number;
  type: 'conversation.created' | 'member.added' | 'member.removed';
  at: string;
}

const mostMoves = 100;

/** When the user joined and left, as far as events are stored. */
export const moves = (db: Queryable, env: number, conv: number, user: number): Promise<Move[]> =>
  db.query<Move>(
    `SELECT seq, type, created_at AS at FROM events
     WHERE env = $1 AND conv = $2 AND type IN ('conversation.created', 'member.added', 'member.removed') AND $3 = ANY (users)
     ORDER BY seq LIMIT ${mostMoves}`,
    [env, conv, user],
  );

export type SocketFacts = Omit<SocketSession, 'userId' | 'address'>;

const mostSockets = 20;
const socketColumns = `id, node, sdk, opened_at AS "openedAt", closed_at AS "closedAt", close_code AS "closeCode"`;

/** The user's sockets that were open at the given moment. A session's id begins with the time of its login. */
export const socketsAt = (db: Queryable, env: number, user: number, at: string): Promise<SocketFacts[]> =>
  db.query<SocketFacts>(
    `SELECT ${socketColumns} FROM socket_sessions
     WHERE env = $1 AND usr = $2 AND opened_at <= $3 AND (closed_at IS NULL OR closed_at >= $3) ORDER BY id LIMIT ${mostSockets}`,
    [env, user, at],
  );

export const firstSocketAfter = (db: Queryable, env: number, user: number, at: string) =>
  firstRow<SocketFacts>(
    db,
    `SELECT ${socketColumns} FROM socket_sessions WHERE env = $1 AND usr = $2 AND opened_at > $3 ORDER BY id LIMIT 1`,
    [env, user, at],
  );

export interface PushFacts {
  at: string;
  provider: string;
  result: string;
  reason: string | null;
}

const mostAttempts = 50;

export const pushAttempts = (
  db: Queryable,
  env: number,
  conv: number,
  seq: number,
  user: number,
): Promise<PushFacts[]> =>
  db.query<PushFacts>(
    `SELECT at, provider, result, reason FROM push_attempts
     WHERE env = $1 AND conv = $2 AND seq = $3 AND usr = $4 ORDER BY at LIMIT ${mostAttempts}`,
    [env, conv, seq, user],
  );

/** What a push to the user needs, as it is now. */
export const pushMeans = (db: Queryable, env: number, user: number) =>
  oneRow<{ mode: string; devices: number; reachable: number }>(
    db,
    `SELECT coalesce(e.settings ->> 'pushMode', 'providers') AS mode, d.devices, d.reachable FROM environments e
     CROSS JOIN LATERAL (SELECT count(*) AS devices, count(k.no) AS reachable FROM push_devices p
       LEFT JOIN push_credentials k ON k.env = p.env AND k.provider = p.provider WHERE p.env = e.no AND p.usr = $2) d
     WHERE e.no = $1`,
    [env, user],
  );

export interface WebhookFacts {
  id: string;
  endpoint: string;
  type: string;
  status: string;
  createdAt: string;
  attempts: WebhookAttempt[];
}

const mostDeliveries = 50;
/** First deliveries are made within moments of the commit; replays made later are not looked for. */
const madeWithin = `interval '2 minutes'`;

/** The deliveries of all endpoints, each found by its index, because delivery ids begin with their time. */
export const webhookDeliveries = (
  db: Queryable,
  env: number,
  message: { conv: number; seq: number; createdAt: string },
): Promise<WebhookFacts[]> =>
  db.query<WebhookFacts>(
    `SELECT d.id, w.id AS endpoint, d.type, d.status, d.created_at AS "createdAt", d.attempts
     FROM webhook_endpoints w CROSS JOIN LATERAL (
       SELECT * FROM webhook_deliveries WHERE endpoint = w.no AND env = $1
         AND id >= 'whd_' || ulid_time($4::timestamptz - interval '1 second')
         AND id < 'whd_' || ulid_time($4::timestamptz + ${madeWithin})
         AND conv = $2 AND message = $3 AND type IN ('message.created', 'notification.needed') LIMIT 10) d
     WHERE w.env = $1 ORDER BY d.id LIMIT ${mostDeliveries}`,
    [env, message.conv, message.seq, message.createdAt],
  );
