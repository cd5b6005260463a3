/**
 * Every column that holds something sealed with the master key, and what its value is bound to. A test compares the list with
 * the schema: each column of bytes stands here or, with the reason, in the test.
 */
export interface SealedTable {
  table: string;
  /** The primary key, by which the table is walked: its columns with their types. */
  key: Readonly<Record<string, string>>;
  columns: readonly string[];
  /** What `context` needs besides the key, as SQL. */
  needs?: readonly string[];
  context: (row: Readonly<Record<string, unknown>>) => string;
  /** Of jsonb: the sealed value is a string in base64, in the rows for which `only` holds. */
  form?: 'json';
  only?: string;
}

const text = (value: unknown): string => String(value as string | number);
const erased = (row: Readonly<Record<string, unknown>>): string => `erased user ${text(row['env'])}`;

/** Values move from `outbox` to `webhook_deliveries`, so the one stands before the other. */
export const sealedTables: readonly SealedTable[] = [
  {
    table: 'secret_keys',
    key: { id: 'text' },
    columns: ['secret'],
    context: ({ id }) => `secret key ${text(id)}`,
  },
  {
    table: 'accounts',
    key: { no: 'bigint' },
    columns: ['totp_secret'],
    context: ({ no }) => `one-time codes of account ${text(no)}`,
  },
  {
    table: 'webhook_secrets',
    key: { no: 'bigint' },
    columns: ['secret'],
    needs: ['(SELECT e.id FROM webhook_endpoints e WHERE e.no = t.endpoint) AS endpoint_id'],
    context: (row) => `webhook ${text(row['endpoint_id'])}`,
  },
  {
    table: 'hook_secrets',
    key: { no: 'bigint' },
    columns: ['secret'],
    needs: ['t.hook'],
    context: ({ hook }) => `hook ${text(hook)}`,
  },
  {
    table: 'push_credentials',
    key: { no: 'bigint' },
    columns: ['sealed'],
    needs: ['t.env', 't.provider'],
    context: ({ env, provider }) => `push credentials ${text(env)} ${text(provider)}`,
  },
  {
    table: 'storage_slots',
    key: { env: 'int', slot: 'text' },
    columns: ['url', 'replica_url', 'secrets'],
    context: ({ env, slot }) => `storage ${text(env)} ${text(slot)}`,
  },
  {
    table: 'media_storages',
    key: { no: 'int' },
    columns: ['config'],
    needs: ['t.env'],
    context: ({ env }) => `media storage ${text(env)}`,
  },
  {
    table: 'sink_erasures',
    key: { no: 'bigint' },
    columns: ['subject'],
    needs: ['t.env'],
    context: erased,
  },
  {
    table: 'reports',
    key: { env: 'int', id: 'text' },
    columns: ['snapshot'],
    context: ({ env, id }) => `report ${text(env)} ${text(id)}`,
  },
  {
    table: 'idempotency',
    key: { env: 'int', key: 'text', route: 'bytea' },
    columns: ['body'],
    context: ({ env, key }) => `idempotency ${text(env)} ${text(key)}`,
  },
  {
    table: 'jobs',
    key: { no: 'bigint' },
    columns: ['data'],
    context: () => 'account mail',
    form: 'json',
    only: `t.queue = 'mail'`,
  },
  {
    table: 'outbox',
    key: { no: 'bigint' },
    columns: ['sealed'],
    needs: ['t.env'],
    context: erased,
  },
  {
    table: 'webhook_deliveries',
    key: { no: 'bigint' },
    columns: ['sealed'],
    needs: ['t.env'],
    context: erased,
  },
];
