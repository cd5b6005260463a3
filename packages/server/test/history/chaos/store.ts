import pg from 'pg';

/** Our own store, past the service. */
export interface Store {
  /** As if two days had passed for an environment since everything in it happened. */
  age(env: string): Promise<void>;
  /** As if a minute had passed since old messages were last looked for. */
  lookForOld(env: string): Promise<void>;
  /** Messages, by conversation and seq, that only the customer's database has. */
  cold(env: string): Promise<Set<string>>;
  /** How many old messages are still here, other than the latest of each conversation. */
  old(env: string): Promise<number>;
  /** What says that it is later than it is: a time that a node's wrong clock wrote, by its column. */
  ahead(env: string): Promise<string[]>;
  /** The sink need not wait after its last failure. */
  hurry(env: string): Promise<void>;
  /** What is known of a message, for whoever looks for it. */
  describe(env: string, conversation: string, seq: number): Promise<string>;
}

export const placeOf = (conversation: string, seq: number): string => `${conversation} ${seq}`;

export function openStore(connectionString: string): Store {
  async function run<T extends object = object>(
    ...statements: [sql: string, values: unknown[]][]
  ): Promise<T[]> {
    const client = new pg.Client({ connectionString });
    // A query that it interrupts fails by itself.
    client.on('error', () => undefined);
    await client.connect();
    try {
      let rows: T[] = [];
      for (const [sql, values] of statements) ({ rows } = await client.query<T>(sql, values));
      return rows;
    } finally {
      await client.end();
    }
  }
  const no = '(SELECT no FROM environments WHERE id = $1)';
  const ago = (column: string) => `${column} = ${column} - interval '2 days'`;
  return {
    async age(env) {
      // Locks in the order of the service. Changes that have not been written age with what they are about.
      await run(
        ['BEGIN', []],
        [`SELECT 1 FROM storage WHERE env = ${no} FOR UPDATE`, [env]],
        [`SELECT 1 FROM conversations WHERE env = ${no} ORDER BY no FOR UPDATE`, [env]],
        [
          `UPDATE messages SET ${ago('created_at')}, ${ago('edited_at')}, ${ago('deleted_at')} WHERE env = ${no} AND id IS NOT NULL`,
          [env],
        ],
        [`UPDATE sink_conversations SET ${ago('oldest_at')} WHERE env = ${no}`, [env]],
        [`UPDATE sink_log SET ${ago('at')} WHERE env = ${no}`, [env]],
        [`UPDATE storage SET pruned_at = '-infinity' WHERE env = ${no}`, [env]],
        ['COMMIT', []],
      );
    },
    async lookForOld(env) {
      await run([`UPDATE storage SET pruned_at = '-infinity' WHERE env = ${no}`, [env]]);
    },
    async cold(env) {
      const rows = await run<{ id: string; seq: string }>([
        `SELECT c.id, m.seq FROM messages m JOIN conversations c ON c.env = m.env AND c.no = m.conv
         WHERE m.env = ${no} AND m.id IS NULL AND NOT m.hard`,
        [env],
      ]);
      return new Set(rows.map(({ id, seq }) => placeOf(id, Number(seq))));
    },
    async old(env) {
      const [row] = await run<{ n: number }>([
        `SELECT count(*)::int AS n FROM messages m JOIN conversations c ON c.env = m.env AND c.no = m.conv
         WHERE m.env = ${no} AND m.id IS NOT NULL AND NOT m.hard AND m.seq < c.last_message_seq
           AND greatest(m.created_at, m.edited_at, m.deleted_at) < now() - interval '25 hours'`,
        [env],
      ]);
      return row!.n;
    },
    async ahead(env) {
      const rows = await run<{ name: string; at: string }>([
        `SELECT x.name, x.at::text FROM storage s, LATERAL (VALUES ('due_at', s.due_at), ('pruned_at', s.pruned_at)) x(name, at)
         WHERE s.env = ${no} AND x.at > clock_timestamp() + interval '1 hour'`,
        [env],
      ]);
      return rows.map(({ name, at }) => `${name} is ${at}`);
    },
    async hurry(env) {
      await run([`UPDATE storage SET due_at = '-infinity' WHERE env = ${no}`, [env]]);
    },
    async describe(env, conversation, seq) {
      const [row] = await run([
        `SELECT m.id, m.text, m.version, m.hard, m.created_at AS "createdAt", m.deleted_at AS "deletedAt", s.cold_seq AS "coldSeq", s.oldest_at AS "oldestAt",
           (SELECT count(*)::int FROM sink_log l WHERE l.env = m.env AND l.conv = m.conv AND l.message = m.seq) AS waiting,
           (SELECT count(*)::int FROM sink_refused r WHERE r.env = m.env AND r.conv = m.conv AND r.message = m.seq) AS refused
         FROM messages m JOIN conversations c ON c.env = m.env AND c.no = m.conv
         LEFT JOIN sink_conversations s ON s.env = m.env AND s.conv = m.conv WHERE m.env = ${no} AND c.id = $2 AND m.seq = $3`,
        [env, conversation, seq],
      ]);
      return JSON.stringify(row ?? null);
    },
  };
}
