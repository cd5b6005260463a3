/**
 * Everything that hears of what happens in conversations. What a consumer writes is written by the commit itself, so
 * nothing is lost and nothing is told that did not happen. consumers.sql.ts makes SQL functions from this list.
 *
 * To add a consumer: an entry here with the next bit, a folder for what it does with its rows, and a statement there
 * that sets the bit of an environment when somebody begins to use it. Where no environment of a commit has the bit, the
 * consumer costs nothing.
 */

export interface LogConsumer {
  /**
   * Its bit of environments.listeners, which is also the `consumer` of its rows in the outbox. It must never change. A
   * consumer without a bit hears of all environments.
   */
  bit?: number;
  /** A condition in SQL, for a consumer that does not need every commit. */
  when?: string;
  /** Whether it leaves rows in the outbox, whose worker is then woken. */
  outbox?: true;
  /** Statement for new messages. `rows` has env, conv, seq, id and sender; the parameters of tell_of_messages are there too. */
  messages?: (rows: string, bit: number) => string;
  /** Statement for other events of one conversation. `rows` has seq, type, webhook, message, users, actor, data and payload. */
  events?: (rows: string, bit: number) => string;
  /** Statement for members who read. `rows` has env, conv, usr, seq and moved. */
  reads?: (rows: string, bit: number) => string;
}

/** The `consumer` of rows in the outbox that no environment switches on: what word lists want reported. */
export const listReports = 16;

/** The id of the event is that of the message: one message has one message.created. */
const messagesInOutbox = (rows: string, bit: number): string =>
  `INSERT INTO outbox (consumer, id, env, type, conv, seq, message, actor, created_at, due_at)
      SELECT ${bit}, 'evt_' || substr(r.id, 5), r.env, 'message.created', r.conv, r.seq, r.seq, r.sender, p_at, p_at FROM ${rows} r`;

export const consumers = {
  webhooks: {
    bit: 1,
    outbox: true,
    messages: messagesInOutbox,
    events: (rows, bit) => `WITH noted AS (
        INSERT INTO outbox (consumer, id, env, type, conv, seq, message, users, actor, data, created_at, due_at)
        SELECT ${bit}, make_id('evt_', p_at), p_env, r.webhook, p_conv, r.seq, r.message, r.users, r.actor, r.data, p_at, p_at
        FROM ${rows} r WHERE r.webhook IS NOT NULL RETURNING id, seq
      ) INSERT INTO webhook_payloads (event_id, env, conv, message, data, event_at)
      SELECT n.id, p_env, p_conv, r.message, r.payload, p_at FROM noted n JOIN ${rows} r ON r.seq = n.seq WHERE r.payload IS NOT NULL`,
  },
  push: { bit: 2, outbox: true, messages: messagesInOutbox },
  /** receipts#read-webhook, message.read: one per member and 10 s, with the last value. A row that names no consumer is for webhooks. */
  webhookReads: {
    bit: 4,
    reads: (rows) => `INSERT INTO outbox (id, env, type, key, conv, seq, users, created_at, due_at)
      SELECT make_id('evt_', p_at), r.env, 'message.read', r.conv || ' ' || r.usr, r.conv, r.seq, ARRAY[r.usr], p_at, p_at + interval '10 seconds'
      FROM ${rows} r WHERE r.moved
      ON CONFLICT (env, key) WHERE key IS NOT NULL DO UPDATE SET seq = excluded.seq, created_at = excluded.created_at`,
  },
  /** The customer's own database (features/storage). */
  sink: {
    bit: 8,
    messages: (rows) =>
      `INSERT INTO sink_log (env, conv, seq, message, at) SELECT r.env, r.conv, r.seq, r.seq, p_at FROM ${rows} r`,
    events: (rows) =>
      `INSERT INTO sink_log (env, conv, seq, message, at) SELECT p_env, p_conv, r.seq, r.message, p_at FROM ${rows} r`,
  },
  /** Analytics gets the arrays of a commit unchanged (migrations/0025). It counts events by triggers. */
  analytics: {
    messages: () => `INSERT INTO activity_notes (at, size, c_env, c_no, place, usr, kind, refused)
      VALUES (p_at, cardinality(p_id), c_env, c_no, p_conv, p_sender, message_kinds(p_text, p_reply, p_meta, p_files), verdicts)`,
    reads: (rows) => `INSERT INTO activity_notes (at, env, users, counts)
      SELECT p_at, r.env, array_agg(DISTINCT r.usr), jsonb_build_object('reads', count(*) FILTER (WHERE r.moved)) FROM ${rows} r GROUP BY r.env`,
  },
  /** Who is mentioned (log/unread counts them). */
  mentions: {
    when: 'p_extras IS NOT NULL',
    messages:
      () => `PERFORM note_mentions(c_env[p_conv[i]], c_no[p_conv[i]], c_last[p_conv[i]] + p_rank[i], p_sender[i], p_at, w.users)
      FROM generate_series(1, cardinality(p_id)) i, LATERAL (SELECT mentioned_users(p_extras[i]) AS users) w
      WHERE verdicts[i] IS NULL AND w.users IS NOT NULL`,
  },
  /** What the message says as it is sent: an edit or a deletion may come before the report is made (features/reports). */
  listReports: {
    when: 'p_reported IS NOT NULL',
    outbox: true,
    messages:
      () => `INSERT INTO outbox (consumer, id, env, type, conv, seq, message, actor, data, created_at, due_at)
      SELECT ${listReports}, make_id('evt_', p_at), c_env[p_conv[i]], 'message.listed', c_no[p_conv[i]], c_last[p_conv[i]] + p_rank[i], c_last[p_conv[i]] + p_rank[i], p_sender[i],
        json_build_object('messageId', p_id[i], 'version', 1, 'text', p_text[i], 'extras', p_extras[i], 'attachments', attached[i]), p_at, p_at
      FROM generate_series(1, cardinality(p_id)) i WHERE verdicts[i] IS NULL AND p_reported[i]`,
  },
  /** Attachments belong to the message that names them from now on. */
  attachments: {
    when: 'p_files IS NOT NULL',
    messages: () => `WITH used AS (
        UPDATE attachments a SET message = c_last[p_conv[i]] + p_rank[i]
        FROM generate_series(1, cardinality(p_id)) i, json_array_elements_text(p_files[i]::json) f
        WHERE verdicts[i] IS NULL AND a.env = c_env[p_conv[i]] AND a.id = f RETURNING a.env, a.size
      )
      INSERT INTO activity_notes (at, env, counts)
      SELECT p_at, u.env, jsonb_build_object('attachments', count(*), 'attachmentBytes', sum(u.size)) FROM used u GROUP BY u.env`,
  },
} as const satisfies Record<string, LogConsumer>;
