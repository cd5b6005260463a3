import { Type } from '../type.ts';
import { nullable, open, optional } from '../schemas/common.ts';
import {
  BufferRetention,
  DatabaseSlot,
  DatabaseSlotWithSecret,
  DatabaseTest,
  DatabaseType,
  mediaProviders,
  MediaTest,
  SlotParam,
  StorageRecord,
} from '../schemas/storage.ts';
import { operation, table } from './define.ts';

/** storage#callers: needs the dashboard's session, an environment and, for changes, a sign-in within the last 15 minutes. */

const storage = { tag: 'Storage', callers: ['dashboard'] } as const;
const change = { ...storage, permission: 'storage.manage', recent: true } as const;
const Url = Type.String({ minLength: 1, maxLength: 8_192 });
const Schema = Type.String({
  minLength: 1,
  maxLength: 63,
  description: 'Of PostgreSQL; elsewhere another database',
});

const operator = { tag: 'Storage', callers: ['operator'] } as const;
const SlotState = open({
  environmentId: Type.String(),
  slot: SlotParam,
  type: Type.String(),
  url: Type.String({ description: 'Without its password' }),
  active: Type.Boolean(),
  faultedAt: nullable(
    Type.String({ description: 'When it last stopped the process that reads what it sends' }),
  ),
  aside: nullable(Type.String({ description: 'Until when it is set aside, or `operator`' })),
});

const Origin = Type.String({
  minLength: 1,
  maxLength: 300,
  description: 'Of a web page that uploads: its CORS rules are looked at too',
});
const Field = Type.String({ minLength: 1, maxLength: 2_000 });

export const storageOperations = table(
  operation('storage.get', 'GET /v1/storage', {
    ...storage,
    permission: 'environments.read',
    summary: 'Where history and files are kept, and how the sink does',
    text: 'Passwords in URLs are masked.',
    response: StorageRecord,
  }),

  operation('storage.update', 'PATCH /v1/storage', {
    ...change,
    summary:
      'Keep history in a database of one’s own, or with this service; set how long the buffer holds it',
    text: '`byo_db` needs an active slot whose last test passed. History is copied in the background, oldest conversations first; the service keeps working meanwhile.',
    body: {
      mode: optional(
        Type.Unsafe<'managed' | 'byo_db' | 'byo'>({
          type: 'string',
          enum: ['managed', 'byo_db', 'byo'],
          description: 'byo is another name for byo_db',
        }),
      ),
      bufferRetention: optional(BufferRetention),
    },
    response: StorageRecord,
  }),

  operation('storage.setDatabase', 'PUT /v1/storage/database/{slot}', {
    ...change,
    summary: 'Set the database of a slot; an http endpoint’s signing secret is shown this once',
    text: 'Two slots let credentials change without a gap: set the other one, test it, promote it.',
    params: { slot: SlotParam },
    body: { url: Url, type: optional(DatabaseType), schema: optional(Schema), replicaUrl: optional(Url) },
    response: DatabaseSlotWithSecret,
  }),

  operation('storage.rotateSecret', 'POST /v1/storage/database/{slot}/rotate-secret', {
    ...change,
    summary: 'Make a new signing secret for an http endpoint; the old one counts for 24 hours more',
    text: 'Only for slots of type `http`.',
    params: { slot: SlotParam },
    response: open({ signingSecret: Type.String() }),
    errors: ['not_found'],
  }),

  operation('storage.testDatabase', 'POST /v1/storage/database/test', {
    ...change,
    summary: 'Try a slot’s database: version, user, TLS, grants, tables, round trip',
    text: 'The answer describes every problem and its solution in words.',
    body: { slot: optional(SlotParam) },
    response: DatabaseTest,
    errors: ['not_found'],
    repeatable: true,
    cost: 0,
  }),

  operation('storage.migrateDatabase', 'POST /v1/storage/database/migrate', {
    ...change,
    summary:
      'Create the tables and a database user with an admin’s URL, which is not stored; the new user’s URL goes into slot a',
    text: 'If a database user cannot be created for you, `runtimeUrl` is null and `notes` has the statements to run by hand.',
    body: { adminUrl: Url, type: optional(DatabaseType), schema: optional(Schema) },
    response: open({
      runtimeUrl: nullable(Type.String({ description: 'Without its password; null: make the user by hand' })),
      notes: Type.Array(Type.String()),
      slot: nullable(DatabaseSlot),
    }),
    repeatable: true,
    cost: 0,
  }),

  operation('storage.promote', 'POST /v1/storage/database/promote/{slot}', {
    ...change,
    summary: 'Use this slot from now on; where it is another database, history is copied into it',
    text: 'Reads and writes then go to this slot.',
    params: { slot: SlotParam },
    response: StorageRecord,
    errors: ['not_found'],
    repeatable: true,
    cost: 0,
  }),

  operation('storage.resync', 'POST /v1/storage/database/resync', {
    ...change,
    summary: 'Write the contents of the buffer into the database again',
    text: 'Use it after the database was restored from a backup.',
    statuses: [202],
    response: StorageRecord,
  }),

  operation('storage.listSlots', 'GET /v1/storage/slots', {
    ...operator,
    scope: 'organizations',
    summary: 'List the slots of all environments or of one, and which are set aside',
    text: 'For the operator.',
    query: { environmentId: optional(Type.String({ minLength: 1, maxLength: 100 })) },
    response: open({ data: Type.Array(SlotState) }),
    errors: ['not_found'],
  }),

  operation('storage.setAside', 'PUT /v1/storage/slots/{slot}/aside', {
    ...operator,
    summary: 'Set a slot aside: nothing connects to its database until it is taken back',
    text: 'For the operator. Messages wait with this service meanwhile.',
    params: { slot: SlotParam },
    errors: ['not_found'],
  }),

  operation('storage.takeBack', 'DELETE /v1/storage/slots/{slot}/aside', {
    ...operator,
    summary: 'Use a slot again that is set aside',
    text: 'For the operator: the slot is tried again at once.',
    params: { slot: SlotParam },
    errors: ['not_found'],
  }),

  operation('storage.setMedia', 'PUT /v1/storage/media', {
    ...change,
    summary: 'Keep new files in a storage of one’s own; it is used when its test passes',
    text: 'The service tests the storage first: it uploads, reads and deletes a file, and checks the CORS rules if `origin` is given. Existing files stay where they are.',
    body: {
      provider: Type.Unsafe<(typeof mediaProviders)[number]>({ type: 'string', enum: [...mediaProviders] }),
      cloudinaryUrl: optional(Field),
      folder: optional(Field),
      preset: optional(Field),
      endpoint: optional(Field),
      region: optional(Field),
      bucket: optional(Field),
      accessKeyId: optional(Field),
      secretAccessKey: optional(Field),
      prefix: optional(Field),
      forcePathStyle: optional(Type.Boolean()),
      account: optional(Field),
      accountKey: optional(Field),
      container: optional(Field),
      origin: optional(Origin),
    },
    response: MediaTest,
    cost: 0,
  }),

  operation('storage.testMedia', 'POST /v1/storage/media/test', {
    ...change,
    summary: 'Try the media storage: upload, read, delete, and CORS where an origin is given',
    text: 'With `origin`, the address of your web app, the CORS rules are checked as well.',
    body: { origin: optional(Origin) },
    response: MediaTest,
    repeatable: true,
    cost: 0,
  }),

  operation('storage.removeMedia', 'DELETE /v1/storage/media', {
    ...change,
    summary: 'Keep new files with this service again; old files stay in your storage and can still be read',
    text: 'New files go to the service’s own storage again; files in your storage stay there and can be read as long as its credentials work.',
  }),
);
