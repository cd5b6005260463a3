import pg from 'pg';

/** The limit of the store: rows as Parley keeps them, from one bare client, in batches. Prints rows per second by batch size. */

const seconds = Number(process.argv[2] ?? 3);
const client = new pg.Client({ connectionString: process.env['DATABASE_URL'] });
await client.connect();
await client.query(`DROP TABLE IF EXISTS limit_messages`);
await client.query(`CREATE TABLE limit_messages (
  env int NOT NULL, conv bigint NOT NULL, seq bigint NOT NULL, id text COLLATE "C" NOT NULL, sender bigint, text text,
  created_at timestamptz(3) NOT NULL, PRIMARY KEY (env, conv, seq), UNIQUE (env, id))`);

const insert = {
  name: 'insert',
  text: `INSERT INTO limit_messages SELECT 1, c, s, 'msg_01k0000000' || lpad(s::text, 16, '0'), c, t, now()
    FROM unnest($1::bigint[], $2::bigint[], $3::text[]) u(c, s, t)`,
};
const text = 'lorem ipsum dolor sit amet consectetur adipiscing elit sed do ei';
let seq = 0;
const rates: Record<string, number> = {};
for (const size of [1, 10, 100, 1_000]) {
  const begin = performance.now();
  let rows = 0;
  while (performance.now() - begin < seconds * 1_000) {
    const seqs = Array.from({ length: size }, () => ++seq);
    const values = [seqs.map((s) => s % 100), seqs, seqs.map(() => text)];
    await client.query({ ...insert, values });
    rows += size;
  }
  rates[size] = (rows * 1_000) / (performance.now() - begin);
}
await client.end();
console.log(`rates ${JSON.stringify(rates)}`);
