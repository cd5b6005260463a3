import type { Queryable } from '../../src/platform/postgres/db.ts';

const people = 300;
const groups = 500;
/** Members of each group. */
const size = 250;
const tenants = 50;
/** Rows of the tables that have nothing to do with the groups. */
const many = 20_000;

/**
 * A store whose statistics mislead. One tenant has large groups of the same few people, so that by the average a user is in
 * hundreds of conversations and a conversation has hundreds of members; the other tenants have a few users each.
 */
export async function fill(db: Queryable): Promise<void> {
  const run = (sql: string, values?: unknown[]) => db.query(sql, values);
  await run(`INSERT INTO organizations (id, name) VALUES ('org_plans', 'plans')`);
  await run(
    `INSERT INTO environments (id, org, name, kind) SELECT 'env_plans' || i, o.no, 'plans', 'development'
     FROM organizations o, generate_series(0, $1::int) i WHERE o.id = 'org_plans'`,
    [tenants],
  );
  // Most of the large tenant's users and conversations have nothing to do with its groups.
  const large = `(SELECT no FROM environments WHERE id = 'env_plans0')`;
  await run(
    `INSERT INTO users (env, id, created_at) SELECT e.no, 'u' || i, now() - interval '1 year'
     FROM environments e, generate_series(1, CASE e.no WHEN ${large} THEN $1::int ELSE 4 END) i`,
    [people + many],
  );
  await run(
    `INSERT INTO conversations (env, id, type, last_activity_at, last_activity_step, created_at, last_seq, message_count, last_message_seq)
     SELECT e.no, 'conv_' || e.no || 'x' || i, 'group', now(), activity_step(now()), now(), 100, 99, 100
     FROM environments e, generate_series(1, CASE e.no WHEN ${large} THEN $1::int ELSE 2 END) i`,
    [groups + many],
  );
  await run(
    `INSERT INTO members (env, conv, usr, last_activity_step, own_activity_step, own_activity_at)
     SELECT c.env, c.no, u.no, c.last_activity_step, c.last_activity_step, now() FROM (
       SELECT *, row_number() OVER (PARTITION BY env ORDER BY no) AS place FROM conversations
     ) c JOIN (
       SELECT *, row_number() OVER (PARTITION BY env ORDER BY no) AS place FROM users
     ) u ON u.env = c.env AND u.place <= $1 AND c.place <= $2 AND (c.env <> ${large} OR (u.place + c.place) % $1 < $3)
     ORDER BY c.no, u.no`,
    [people, groups, size],
  );
  await run(
    `INSERT INTO messages (env, conv, seq, id, sender, text, created_at)
     SELECT c.env, c.no, i, 'msg_' || c.no || 'x' || i, m.usr, 'text', now() - i * interval '1 minute'
     FROM conversations c JOIN LATERAL (SELECT usr FROM members WHERE conv = c.no LIMIT 1) m ON true, generate_series(2, 100) i`,
  );
  await run(
    `INSERT INTO events (env, conv, seq, type, message, users, created_at)
     SELECT env, conv, 100 + seq, 'message.updated', seq, ARRAY[sender], created_at FROM messages WHERE seq < 50`,
  );
  await run(
    `INSERT INTO sent_ids (env, conv, sender, client_msg_id, seq, created_at)
     SELECT env, conv, sender, 'cm' || seq, seq, created_at FROM messages`,
  );
  await run(
    `INSERT INTO deleted_counts (conv, level, slot, n, env)
     SELECT conv, level, seq >> (8 * level), count(*), env FROM messages, generate_series(0, 3) level GROUP BY 1, 2, 3, 5`,
  );
  await run(
    `INSERT INTO departures (env, usr, conv, at) SELECT m.env, m.usr, c.no, now() - m.conv * interval '1 minute'
     FROM members m JOIN conversations c ON c.env = m.env AND c.no = m.conv + 1 WHERE m.conv % 4 = 0`,
  );
  // The rest: half of each table is the large tenant's, and none of it is due.
  const spread = `(SELECT e.no AS env, i, u.no AS usr, now() - i * interval '10 seconds' AS at
    FROM generate_series(1, ${many}) i
    JOIN environments e ON e.id = 'env_plans' || CASE WHEN i % 2 = 0 THEN 0 ELSE i % ${tenants} END
    JOIN users u ON u.env = e.no AND u.id = 'u' || 1 + i % CASE WHEN e.no = ${large} THEN ${people} ELSE 4 END) s`;
  for (const sql of [
    `INSERT INTO blocks (env, usr, blocked, at)
     SELECT env, usr, usr + 1 + i % 200, at FROM ${spread} ON CONFLICT DO NOTHING`,
    `INSERT INTO restrictions (env, conv, usr, kind, at) SELECT env, 1 + i % 500, usr, 'ban', at FROM ${spread} ON CONFLICT DO NOTHING`,
    `INSERT INTO erased_ids (env, subject, tokens_from) SELECT env, sha256(i::text::bytea), at FROM ${spread}`,
    `INSERT INTO idempotency (env, key, route, fingerprint, status, subjects, created_at)
     SELECT env, 'key' || i, '\\x00', '\\x00', 200, ARRAY['u' || i], at FROM ${spread}`,
    `INSERT INTO outbox (id, env, type, users, created_at, due_at, key)
     SELECT 'evt_' || i, env, 'message.read', ARRAY[usr], at, now() + interval '1 day', 'read ' || i FROM ${spread}`,
    `INSERT INTO job_lanes (queue, key, width, next_at) SELECT 'webhook', i, 5, now() + interval '1 day' FROM ${spread} WHERE i <= 5000`,
    `INSERT INTO jobs (queue, key, run_at, ref) SELECT 'webhook', 1 + i % 5000, now() + interval '1 day', i FROM ${spread}`,
    `INSERT INTO webhook_endpoints (env, id, url, events) SELECT env, 'wh_' || i, 'https://example.com/', '{}' FROM ${spread} WHERE i <= 5000`,
    `INSERT INTO webhook_secrets (endpoint, secret) SELECT no, '\\x00' FROM webhook_endpoints`,
    `INSERT INTO webhook_deliveries (id, env, endpoint, event_id, type, event_at, created_at, status)
     SELECT 'whd_' || i, env, 1 + i % 5000, 'evt_' || i, 'message.created', at, at, 'succeeded' FROM ${spread}`,
    `INSERT INTO attachments (env, id, conv, uploader, name, size, content_type, object_key, resource, created_at, ready_at, message, keep_until)
     SELECT env, 'att_' || i, 1 + i % 500, usr, 'a', 1, 'image/png', 'o' || i, 'image', at, at, CASE i % 3 WHEN 0 THEN i END, now() + interval '1 day' FROM ${spread}`,
    `INSERT INTO object_removals (env, object_key, resource, again_at, due_at)
     SELECT env, 'r' || i, 'image', now() + interval '1 day', now() + interval '1 day' FROM ${spread}`,
    `INSERT INTO push_devices (env, usr, provider, token, token_hash, created_at, registered_at)
     SELECT env, usr, 'fcm', 't' || i, sha256(('t' || i)::bytea), at, at FROM ${spread}`,
    `INSERT INTO usage_counters (env, day, name, n) SELECT env, (at - i * interval '1 day')::date, 'pushSent', 1 FROM ${spread}`,
    `INSERT INTO audit (id, created_at, org, env, actor, action, request_id, changes)
     SELECT 'aud_' || i, at, o.no, env, 'a', 'b', 'req_' || i, '{}' FROM ${spread}, organizations o WHERE o.id = 'org_plans'`,
    `INSERT INTO secret_keys (id, env, secret) SELECT 'k' || i, env, '\\x00' FROM ${spread} WHERE i <= 5000`,
  ])
    await run(sql);
}
