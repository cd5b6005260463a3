import type { RunningParley, Tenant } from '../servers/parley.ts';

/**
 * Large stores, written by SQL into Parley's own tables (packages/server/migrations): over the API ten million messages would
 * take an hour. The rows are what the API would have left.
 */

const chunk = 1_000_000;
const text = 'lorem ipsum dolor sit amet consectetur adipiscing elit sed do ei';
const conversationColumns =
  'env, id, type, name, last_seq, message_count, last_message_seq, last_activity_at, last_activity_step, created_at';

export const environmentOf = async (parley: RunningParley, tenant: Tenant): Promise<number> => {
  const { rows } = await parley.sql('SELECT no FROM environments WHERE id = $1', [tenant.id]);
  return (rows[0] as { no: number }).no;
};

async function user(parley: RunningParley, env: number, id: string): Promise<string> {
  const { rows } = await parley.sql(
    `INSERT INTO users (env, id, name) VALUES ($1, $2, $2)
     ON CONFLICT (env, id) DO UPDATE SET name = excluded.name RETURNING no`,
    [env, id],
  );
  return (rows[0] as { no: string }).no;
}

/** One conversation with this many messages; returns its id. */
export async function longConversation(
  parley: RunningParley,
  env: number,
  messages: number,
): Promise<string> {
  const id = `conv_01k0long${String(messages).padStart(18, '0')}`;
  const sender = await user(parley, env, 'history-user');
  const { rows } = await parley.sql(
    `INSERT INTO conversations (${conversationColumns})
     VALUES ($1, $2, 'group', 'Long', $3, $3, $3, now(), activity_step(now()), now() - interval '1 day') RETURNING no`,
    [env, id, messages],
  );
  const { no } = rows[0] as { no: string };
  await parley.sql(
    `INSERT INTO members (env, conv, usr, last_activity_step, own_activity_step, own_activity_at)
     VALUES ($1, $2, $3, activity_step(now()), activity_step(now()), now())`,
    [env, no, sender],
  );
  for (let from = 1; from <= messages; from += chunk)
    await parley.sql(
      `INSERT INTO messages (env, conv, seq, id, sender, text, created_at)
       SELECT $1, $2::bigint, g, 'msg_01k0' || lpad($2::text, 6, '0') || lpad(g::text, 16, '0'), $3, $4,
         now() - make_interval(secs => ($6::bigint - g) * 0.001)
       FROM generate_series($5::bigint, least($5 + ${chunk - 1}, $6)) g`,
      [env, no, sender, text, from, messages],
    );
  await parley.sql('VACUUM ANALYZE messages');
  return id;
}

/** A user with this many conversations of two, one message in each; returns the user's id. */
export async function longList(parley: RunningParley, env: number, conversations: number): Promise<string> {
  const id = `list-user-${conversations}`;
  const usr = await user(parley, env, id);
  const peer = await user(parley, env, `${id}-peer`);
  await parley.sql(
    `WITH c AS (
       INSERT INTO conversations (${conversationColumns})
       SELECT $1, 'conv_01k0list' || lpad($4::text, 8, '0') || lpad(g::text, 10, '0'), 'group', 'Conversation ' || g, 1, 1, 1,
         now() - make_interval(secs => g), activity_step(now() - make_interval(secs => g)), now() - interval '1 day'
       FROM generate_series(1, $4::int) g RETURNING no, last_activity_step, last_activity_at, id
     ), m AS (
       INSERT INTO messages (env, conv, seq, id, sender, text, created_at)
       SELECT $1, c.no, 1, 'msg_' || substr(c.id, 6), $3, $5, c.last_activity_at FROM c
     ) INSERT INTO members (env, conv, usr, last_activity_step, own_activity_step, own_activity_at)
       SELECT $1, c.no, u.no, c.last_activity_step, c.last_activity_step, c.last_activity_at FROM c CROSS JOIN (VALUES ($2::bigint), ($3::bigint)) u(no)`,
    [env, usr, peer, conversations, text],
  );
  await parley.sql('VACUUM ANALYZE conversations, members, messages');
  return id;
}

export interface Store {
  tenants: number;
  conversations: number;
  messages: number;
}

/** Adds tenants, conversations of ten and messages until the store is this large. */
export async function grow(parley: RunningParley, from: Store, to: Store): Promise<void> {
  const perConversation = to.messages / to.conversations;
  await parley.sql(
    `INSERT INTO environments (id, org, name, kind, plan)
     SELECT 'env_grown' || g, (SELECT min(no) FROM organizations), 'grown', 'production', 'enterprise'
     FROM generate_series($1::int + 1, $2::int) g`,
    [from.tenants, to.tenants],
  );
  const step = Math.max(10, Math.floor(chunk / perConversation));
  let next = from.conversations + 1;
  const lane = async (): Promise<void> => {
    while (next <= to.conversations) await add((next += step) - step);
  };
  const add = (first: number): Promise<unknown> =>
    parley.sql(
      `WITH e AS (SELECT no, row_number() OVER (ORDER BY no) - 1 AS i, count(*) OVER () AS n FROM environments),
       u AS (
         INSERT INTO users (env, id) SELECT e.no, 'grown-' || g
         FROM generate_series($1::int, $2::int) g JOIN e ON e.i = g % e.n RETURNING env, no, id
       ), c AS (
         INSERT INTO conversations (${conversationColumns})
         SELECT u.env, 'conv_01k0grow' || lpad(substr(u.id, 7), 18, '0'), 'group', u.id, $3::int, $3::int, $3::int,
           now() - interval '1 hour', activity_step(now() - interval '1 hour'), now() - interval '1 day'
         FROM u RETURNING env, no, name, last_activity_step, last_activity_at
       ), m AS (
         INSERT INTO members (env, conv, usr, last_activity_step, own_activity_step, own_activity_at)
         SELECT c.env, c.no, u.no, c.last_activity_step, c.last_activity_step, c.last_activity_at FROM c JOIN u ON u.env = c.env AND u.id = c.name
       ) INSERT INTO messages (env, conv, seq, id, sender, text, created_at)
         SELECT c.env, c.no, s, 'msg_01k1' || lpad(c.no::text, 10, '0') || lpad(s::text, 12, '0'), u.no, $4, c.last_activity_at
         FROM c JOIN u ON u.env = c.env AND u.id = c.name CROSS JOIN generate_series(1, $3::int) s`,
      [first, Math.min(first + step - 1, to.conversations), perConversation, text],
    );
  await Promise.all([lane(), lane()]);
  await parley.sql('VACUUM ANALYZE');
}
