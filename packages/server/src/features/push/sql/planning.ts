import { consumers } from '../../../log/sql/consumers.ts';
import type { Queryable } from '../../../platform/postgres/db.ts';
import { arraysOf } from '../../../platform/postgres/rows.ts';
import type { PushProviderName } from '../../../platform/push/port.ts';
import type { DefaultLevel, LevelRow } from '../../levels.ts';
import { conversationOf, deactivatedAt, membershipsOf, userOf } from '../../sql/lookups.ts';

/** Who is pushed what: messages that may need a push, members who wait for one, and their devices. */

export interface MessageRef {
  conv: number;
  seq: number;
}
/** SQL for how environment `e` pushes. */
export const pushMode = `coalesce(e.settings ->> 'pushMode', 'providers')`;

/** SQL for members whose level may not be `none`; whether it is depends on the time (features/levels.ts). */
const mayBePushed = '(NOT muted OR muted_until IS NOT NULL)';

/**
 * SQL for whether member `m` (user `r`) of conversation `c` may still wait for the message of place `u`: the
 * conversation and the user are live, and the member neither muted the conversation for ever nor has read the message.
 */
export const memberWaits = `c.deleted_at IS NULL AND ${mayBePushed} AND m.last_read_seq < u.seq AND ${deactivatedAt('r')} IS NULL`;

/** What decides which messages a member is pushed. */
export interface Levelled extends LevelRow {
  byDefault: DefaultLevel;
}
/** Its columns: of member `m`, conversation `c` and environment `e`. */
export const levelColumns = `m.level, m.muted, m.muted_until AS "mutedUntil", coalesce(c.rules::json ->> 'defaultLevel', e.settings ->> 'defaultLevel', 'all') AS "byDefault"`;

/** blocks#push: SQL for whether a user does not block the author of a message. */
export const notBlocked = (env: string, user: string, author: string): string =>
  `NOT EXISTS (SELECT 1 FROM blocks k WHERE k.usr = ${user} AND k.blocked = ${author} AND k.env = ${env})`;

/** SQL for the author of the message of place `u`. */
export const author =
  '(SELECT x.sender FROM messages x WHERE x.conv = u.conv AND x.seq = u.seq AND x.env = u.env)';

/** The messages among these rows of the outbox that somebody may be pushed. */
export const messagesToPush = (tx: Queryable, rows: readonly number[]) =>
  tx.query<{ env: number } & MessageRef>(
    `SELECT o.env, o.conv, o.seq FROM outbox o JOIN environments e ON e.no = o.env AND e.status = 'active'
     WHERE o.no = ANY($1) AND CASE ${pushMode}
       WHEN 'providers' THEN e.listeners & ${consumers.push.bit} <> 0 AND EXISTS (
         SELECT 1 FROM members m JOIN push_devices d ON d.env = m.env AND d.usr = m.usr
         WHERE m.env = o.env AND m.conv = o.conv AND ${mayBePushed} AND m.usr IS DISTINCT FROM o.actor)
       WHEN 'webhook' THEN (
         SELECT true FROM webhook_endpoints w
         WHERE w.env = o.env AND w.status = 'enabled' AND 'notification.needed' = ANY(w.events) LIMIT 1)
       ELSE false END
     ORDER BY o.no`,
    [rows],
  );

interface WaitingMember extends Levelled {
  job: number;
  env: number;
  mode: 'providers' | 'webhook';
  usr: number;
}

/** The members who may wait for the message of each place, and how they are pushed to; `job` is the index of the place. */
export const waitingMembers = (db: Queryable, places: readonly ({ env: number } & MessageRef)[]) =>
  db.query<WaitingMember>(
    `SELECT u.ord::int - 1 AS job, u.env, ${pushMode} AS mode, m.usr, ${levelColumns}
       FROM unnest($1::int[], $2::bigint[], $3::bigint[]) WITH ORDINALITY u(env, conv, seq, ord)
       JOIN environments e ON e.no = u.env AND e.status = 'active'
       CROSS JOIN ${conversationOf('u.env', 'u.conv')} c
       CROSS JOIN LATERAL (SELECT ${author} AS author OFFSET 0) x
       CROSS JOIN LATERAL (SELECT * FROM members WHERE conv = u.conv AND env = u.env OFFSET 0) m
       CROSS JOIN ${userOf('m.env', 'm.usr')} r
       WHERE ${memberWaits} AND ${notBlocked('m.env', 'm.usr', 'x.author')} AND CASE ${pushMode} WHEN 'webhook' THEN true WHEN 'providers' THEN EXISTS (
         SELECT 1 FROM push_devices d JOIN push_credentials k ON k.env = d.env AND k.provider = d.provider
         WHERE d.env = m.env AND d.usr = m.usr) ELSE false END
       ORDER BY u.ord, m.usr`,
    arraysOf(places, 'env', 'conv', 'seq'),
  );

/** The devices of users, of each notice; `newer` counts the browsers that the user registered since. */
export const devicesOf = (
  tx: Queryable,
  asked: readonly { env: number; usr: number; notice: number }[],
): Promise<
  {
    notice: number;
    env: number;
    usr: number;
    no: number;
    provider: PushProviderName;
    /** Of a browser: its subscription. */
    subscription: string | null;
    newer: number;
  }[]
> =>
  tx.query(
    `SELECT u.notice, d.env, d.usr, d.no, d.provider, CASE d.provider WHEN 'webpush' THEN d.token END AS subscription,
       row_number() OVER (PARTITION BY u.notice, d.usr, d.provider ORDER BY d.registered_at DESC, d.no DESC)::int - 1 AS newer
     FROM unnest($1::int[], $2::bigint[], $3::int[]) u(env, usr, notice)
     JOIN environments e ON e.no = u.env AND ${pushMode} = 'providers'
     JOIN push_devices d ON d.env = u.env AND d.usr = u.usr
     JOIN push_credentials k ON k.env = d.env AND k.provider = d.provider
     ORDER BY u.notice, d.usr, d.no`,
    arraysOf(asked, 'env', 'usr', 'notice'),
  );

/** Those of the users who can be pushed to, and since when a message may not have arrived. */
export const pushableUsers = (
  db: Queryable,
  users: readonly { env: number; user: number; silentMs: number }[],
  marginMs: number,
): Promise<{ env: number; usr: number; since: string }[]> =>
  db.query<{ env: number; usr: number; since: string }>(
    `SELECT u.env, u.usr, clock_timestamp() - (u.ms + $4) * interval '1 millisecond' AS since
         FROM unnest($1::int[], $2::bigint[], $3::float8[]) u(env, usr, ms)
         JOIN environments e ON e.no = u.env AND e.listeners & ${consumers.push.bit} <> 0
         WHERE ${pushMode} = 'webhook' OR EXISTS (SELECT FROM push_devices d WHERE d.env = u.env AND d.usr = u.usr OFFSET 0)`,
    [...arraysOf(users, 'env', 'user', 'silentMs'), marginMs],
  );

/** How many messages of a conversation are pushed after a socket died, the latest ones. */
const mostOfOne = 100;

interface Undelivered extends Levelled, MessageRef {
  job: number;
  mode: 'providers' | 'webhook';
  extras: string | null;
}

/**
 * Messages since a time that no socket of the user has confirmed, of users without one, the latest of each
 * conversation; `job` is the index of the user.
 */
export const undeliveredMessages = (
  db: Queryable,
  users: readonly { env: number; usr: number; since: string }[],
  online: readonly number[],
): Promise<Undelivered[]> =>
  db.query<Undelivered>(
    `SELECT u.ord::int - 1 AS job, ${pushMode} AS mode, m.conv, x.seq, x.extras, ${levelColumns}
     FROM unnest($1::int[], $2::bigint[], $3::timestamptz[]) WITH ORDINALITY u(env, usr, since, ord)
     JOIN environments e ON e.no = u.env AND e.status = 'active' AND ${pushMode} <> 'off'
     CROSS JOIN ${userOf('u.env', 'u.usr')} r
     CROSS JOIN ${membershipsOf('u.env', 'u.usr', mayBePushed)} m
     CROSS JOIN ${conversationOf('m.env', 'm.conv')} c
     CROSS JOIN LATERAL (
       SELECT * FROM messages WHERE conv = m.conv AND env = m.env AND seq > greatest(m.last_read_seq, m.last_delivered_seq)
       ORDER BY seq DESC LIMIT ${mostOfOne}) x
     WHERE NOT u.usr = ANY($4::bigint[]) AND ${deactivatedAt('r')} IS NULL AND c.deleted_at IS NULL AND c.last_activity_at >= u.since
       AND x.created_at >= u.since AND x.deleted_at IS NULL AND x.sender IS DISTINCT FROM u.usr
       AND ${notBlocked('u.env', 'u.usr', 'x.sender')}
     ORDER BY x.created_at, m.conv, x.seq`,
    [...arraysOf(users, 'env', 'usr', 'since'), online],
  );
