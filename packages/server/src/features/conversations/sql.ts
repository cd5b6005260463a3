import type {
  Attachment,
  Conversation,
  ConversationListItem,
  ConversationRules,
  Member,
  Role,
} from '@parley/protocol';
import type { LockedConversation } from '../../log/sql/lock.ts';
import type { Queryable } from '../../platform/postgres/db.ts';
import { column, firstRow } from '../../platform/postgres/rows.ts';
import { conversationOf, memberOf, userOf } from '../sql/lookups.ts';
import { latestLive } from '../sql/message-reader.ts';
import { defaultLevelOf, levelOf } from '../levels.ts';
import type { DefaultLevel, LevelRow } from '../levels.ts';
import { parseMetadata } from '../metadata.ts';
import { lockUsers } from '../users/sql.ts';
import { mentionUnreadCount, newReader, unreadCount } from '../../log/unread/sql/counters.ts';

export type ConversationRow = Omit<LockedConversation, 'env' | 'flags' | 'lockedAt' | 'activeAt'>;
/** Of the conversation `c`. */
export const conversationColumns = `c.no, c.id, c.type, c.name, c.metadata, c.rules, c.last_seq AS "lastSeq",
  c.created_at AS "createdAt", c.deleted_at AS "deletedAt"`;

export type MemberView = Pick<Member, 'userId' | 'role'>;

/** Missing where all is as by default. */
const viewRules = ({ rules }: { rules: string | null }): { rules?: ConversationRules } =>
  rules === null ? {} : { rules: JSON.parse(rules) as ConversationRules };

export const viewConversation = (row: ConversationRow, members: MemberView[]): Conversation => ({
  id: row.id,
  type: row.type,
  name: row.name,
  metadata: parseMetadata(row.metadata),
  lastSeq: row.lastSeq,
  createdAt: row.createdAt,
  members,
  ...viewRules(row),
  ...(row.deletedAt ? { deletedAt: row.deletedAt } : {}),
});

export interface SeenConversation extends ConversationRow {
  role: Role | null;
  /** Null if the user is not a member, as are `mutedUntil` and `level`. */
  muted: boolean | null;
  mutedUntil: string | null;
  level: number | null;
  /** What extensions it has (features/sql/flags.ts). */
  flags: number;
}

/** The conversation, with the role of one user in it, and which messages the user is pushed (null if it is not a member). */
export const findConversation = (db: Queryable, env: number, id: string, user: number | null) =>
  firstRow<SeenConversation>(
    db,
    `SELECT ${conversationColumns}, c.flags, m.role, m.muted, m.muted_until AS "mutedUntil", m.level
     FROM conversations c LEFT JOIN members m ON m.env = c.env AND m.conv = c.no AND m.usr = $3
     WHERE c.env = $1 AND c.id = $2`,
    [env, id, user],
  );

export const listMembers = (db: Queryable, env: number, conv: number) =>
  db.query<MemberView & { no: number }>(
    `SELECT u.no, u.id AS "userId", m.role FROM members m CROSS JOIN ${userOf('m.env', 'm.usr')} u
     WHERE m.env = $1 AND m.conv = $2 ORDER BY u.id`,
    [env, conv],
  );

export const viewMember = ({ userId, role }: MemberView): MemberView => ({ userId, role });

export const listMemberViews = async (db: Queryable, env: number, conv: number): Promise<MemberView[]> =>
  (await listMembers(db, env, conv)).map(viewMember);

/** Returns undefined if a conversation with this id already exists. */
export const insertConversation = (
  db: Queryable,
  env: number,
  row: Pick<SeenConversation, 'id' | 'type' | 'name' | 'metadata' | 'rules' | 'flags'> & {
    /** The user whose client creates it; null if a server does. */
    creator: number | null;
  },
): Promise<ConversationRow | undefined> =>
  firstRow(
    db,
    `INSERT INTO conversations (env, id, type, name, metadata, creator, rules, flags, last_activity_at, last_activity_step, created_at)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, a, activity_step(a), t FROM activity_clock() x(t, a)
     ON CONFLICT (env, id) DO NOTHING
     RETURNING no, id, type, name, metadata, rules, last_seq AS "lastSeq", created_at AS "createdAt", deleted_at AS "deletedAt"`,
    [env, row.id, row.type, row.name, row.metadata, row.creator, row.rules, row.flags],
  );

/**
 * Counts what the user's clients created before this conversation. The lock on the user is held until the transaction
 * ends, so creations are counted one at a time.
 * @returns `waitMs`: milliseconds until the hour has room for one more (0 if it has); `full`: whether the total is
 * used up.
 */
export async function roomToCreate(
  db: Queryable,
  env: number,
  user: number,
  most: { perHour: number; inAll: number },
): Promise<{ waitMs: number; full: boolean }> {
  await lockUsers(db, env, [user]);
  const created =
    'SELECT created_at FROM conversations WHERE creator = $2 AND env = $1 AND deleted_at IS NULL ORDER BY created_at DESC';
  const [row] = await db.query<{ waitMs: number | null; full: boolean }>(
    `SELECT extract(epoch FROM (${created} OFFSET $3 LIMIT 1) + interval '1 hour' - clock_timestamp()) * 1000 AS "waitMs",
       EXISTS (${created} OFFSET $4 LIMIT 1) AS full`,
    [env, user, most.perHour, most.inAll],
  );
  return { waitMs: Math.max(0, Math.ceil(Number(row!.waitMs))), full: row!.full };
}

const read = newReader('c', '$5::bigint');

/**
 * Initial members start with everything unread; later ones with everything up to `joinedSeq` read. Who was silenced
 * and comes back still is, and who must wait in slow mode still must.
 */
export async function insertMembers(
  db: Queryable,
  env: number,
  conv: number,
  users: number[],
  owner: number | null,
  joinedSeq: number,
): Promise<void> {
  await db.query(
    `INSERT INTO members (env, conv, usr, role, ${read.columns}, last_activity_step, own_activity_step, own_activity_at, silenced_until, last_sent_at)
     SELECT $1, $2, u, CASE WHEN u = $4 THEN 'owner' ELSE 'member' END, ${read.values}, c.last_activity_step, activity_step(a), a,
       (SELECT coalesce(r.until, 'infinity') FROM restrictions r WHERE r.conv = $2 AND r.usr = u AND r.env = $1 AND r.kind = 'silence'),
       (SELECT d.last_sent_at FROM departures d WHERE d.env = $1 AND d.usr = u AND d.conv = $2)
     FROM unnest($3::bigint[]) u, (SELECT activity_now() AS a) x, conversations c WHERE c.env = $1 AND c.no = $2`,
    [env, conv, users, owner, joinedSeq],
  );
  await db.query('DELETE FROM departures WHERE env = $1 AND conv = $2 AND usr = ANY($3)', [env, conv, users]);
}

export async function updateConversation(
  db: Queryable,
  env: number,
  conv: number,
  fields: { name: string | null; metadata: string | null; rules: string | null; flags: number },
): Promise<void> {
  await db.query(
    'UPDATE conversations SET name = $3, metadata = $4, rules = $5, flags = $6 WHERE env = $1 AND no = $2',
    [env, conv, fields.name, fields.metadata, fields.rules, fields.flags],
  );
}

/** Notes that a locked conversation has an extension from now on (features/sql/flags.ts). */
export async function addFlag(db: Queryable, env: number, conv: number, flag: number): Promise<void> {
  await db.query('UPDATE conversations SET flags = flags | $3::int WHERE env = $1 AND no = $2', [
    env,
    conv,
    flag,
  ]);
}

/** Soft delete: every member's next sync lists it under `removed`. */
export async function markDeleted(db: Queryable, env: number, conv: number, at: string): Promise<void> {
  await db.query('UPDATE conversations SET deleted_at = $3 WHERE env = $1 AND no = $2', [env, conv, at]);
  await db.query(
    `INSERT INTO departures (env, usr, conv, at) SELECT env, usr, conv, activity_now() FROM members WHERE env = $1 AND conv = $2
     ON CONFLICT (env, usr, conv) DO UPDATE SET at = excluded.at`,
    [env, conv],
  );
}

export async function revive(db: Queryable, env: number, conv: number): Promise<void> {
  await db.query('UPDATE conversations SET deleted_at = NULL WHERE env = $1 AND no = $2', [env, conv]);
  await db.query(
    `DELETE FROM departures d USING members m
     WHERE d.env = $1 AND d.conv = $2 AND m.env = $1 AND m.conv = $2 AND m.usr = d.usr`,
    [env, conv],
  );
}

/** Which messages the user is pushed; with `level` null the one from before stays. It counts as activity for the user. */
export async function setLevel(
  db: Queryable,
  env: number,
  conv: number,
  user: number,
  { level, muted, mutedUntil }: LevelRow,
): Promise<void> {
  await db.query(
    `WITH held AS MATERIALIZED (SELECT no FROM conversations WHERE env = $1 AND no = $2 FOR NO KEY UPDATE)
     UPDATE members m SET level = coalesce($4, m.level), muted = $5, muted_until = $6,
       own_activity_at = x.a, own_activity_step = activity_step(x.a)
     FROM (SELECT held.no, activity_now() AS a FROM held) x WHERE m.env = $1 AND m.conv = x.no AND m.usr = $3`,
    [env, conv, user, level, muted, mutedUntil],
  );
}

/** Conversations in which the user has chosen a level. */
export const convsWithLevel = (db: Queryable, env: number, user: number): Promise<number[]> =>
  column(
    db,
    'SELECT conv FROM members WHERE usr = $2 AND env + 0 = $1 AND (muted OR level IS NOT NULL) ORDER BY conv',
    [env, user],
  );

/** Of an erased user. The conversation is locked. */
export async function forgetLevel(tx: Queryable, env: number, conv: number, user: number): Promise<void> {
  await tx.query(
    'UPDATE members SET level = NULL, muted = false, muted_until = NULL WHERE env = $1 AND conv = $2 AND usr = $3',
    [env, conv, user],
  );
}

interface ListRow extends Omit<ConversationRow, 'deletedAt'>, LevelRow {
  unreadCount: number;
  mentionUnreadCount: number;
  lastReadSeq: number;
  lastActivityAt: string;
  members: MemberView[] | null;
  messageId: string | null;
  messageSeq: number;
  senderId: string | null;
  text: string | null;
  messageAt: string;
  attachments: string | null;
}

/** What a list item says about the attachments of its last message. */
function attachmentHint(attachments: string | null) {
  if (attachments === null) return {};
  const all = JSON.parse(attachments) as Attachment[];
  return { attachments: { count: all.length, mimeType: all[0]!.mimeType, name: all[0]!.name } };
}

/** What levels depend on besides the member. */
export interface LevelTerms {
  byDefault: DefaultLevel;
  now: number;
}

/**
 * List items of the given conversations, as one member sees them. The cost does not depend on how many messages are
 * unread.
 */
export async function listItems(
  db: Queryable,
  env: number,
  user: number,
  convs: number[],
  { byDefault, now }: LevelTerms,
): Promise<Map<number, ConversationListItem>> {
  const rows = await db.query<ListRow>(
    `SELECT c.no, c.id, c.type, c.name, c.metadata, c.rules, c.last_seq AS "lastSeq",
       ${unreadCount('c', 'm')} AS "unreadCount", ${mentionUnreadCount('c', 'm')} AS "mentionUnreadCount",
       m.last_read_seq AS "lastReadSeq", m.level, m.muted, m.muted_until AS "mutedUntil", c.created_at AS "createdAt", c.last_activity_at AS "lastActivityAt",
       CASE WHEN c.type = 'direct' THEN (
         SELECT json_agg(json_build_object('userId', du.id, 'role', d.role) ORDER BY du.id)
         FROM members d CROSS JOIN ${userOf('d.env', 'd.usr')} du WHERE d.env = c.env AND d.conv = c.no
       ) END AS members,
       x.id AS "messageId", x.seq AS "messageSeq", xu.id AS "senderId", x.text, x.created_at AS "messageAt", x.attachments
     FROM unnest($3::bigint[]) w(no)
     CROSS JOIN ${conversationOf('$1', 'w.no')} c
     CROSS JOIN ${memberOf('$1', 'c.no', '$2')} m
     ${latestLive}`,
    [env, user, convs],
  );
  return new Map(
    rows.map((r) => {
      const { level, until } = levelOf(r, defaultLevelOf(r, byDefault), now);
      return [
        r.no,
        {
          id: r.id,
          type: r.type,
          name: r.name,
          metadata: parseMetadata(r.metadata),
          lastSeq: r.lastSeq,
          unreadCount: r.unreadCount,
          ...(r.mentionUnreadCount > 0 ? { mentionUnreadCount: r.mentionUnreadCount } : {}),
          lastReadSeq: r.lastReadSeq,
          muted: level === 'none',
          level,
          ...(until === null ? {} : { mutedUntil: until }),
          lastMessage: r.messageId
            ? {
                id: r.messageId,
                seq: r.messageSeq,
                senderId: r.senderId,
                text: r.text,
                createdAt: r.messageAt,
                ...attachmentHint(r.attachments),
              }
            : null,
          lastMessageAt: r.messageId ? r.messageAt : null,
          lastActivityAt: r.lastActivityAt,
          createdAt: r.createdAt,
          ...viewRules(r),
          ...(r.members ? { members: r.members } : {}),
        },
      ];
    }),
  );
}
