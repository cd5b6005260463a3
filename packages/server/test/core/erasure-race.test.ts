import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Conversation } from '@parley/protocol';
import type { Services } from '../../src/features/context.ts';
import { resumeErasures } from '../../src/features/erasure/operations.ts';
import type { Db } from '../../src/platform/postgres/db.ts';
import { clientApi } from '../support/api.ts';
import { until } from '../start/npm-start.ts';
import { use, useService } from '../support/use.ts';
import { holdConversation, messageTo, openLog } from './log-tools.ts';
import type { OpenLog } from './log-tools.ts';
import { dump } from './tools.ts';

const { service, server, db } = useService({ own: true });
const another = use<OpenLog>(
  () => openLog(service),
  (opened) => opened.close(),
);

const cutOff = async (userId: string): Promise<boolean> =>
  (await db.query('SELECT 1 FROM users WHERE id = $1', [userId])).length === 0;

/** The send was let in before the erasure began, and its turn to commit comes after the erasure has cut the user off. */
test('users#erasure-races: a send that is under way when its user is erased leaves nothing behind', async () => {
  const leaving = await clientApi(service.url, 'leaving');
  await server('PUT', '/v1/users/staying', {});
  const created = await leaving('POST', '/v1/conversations', { type: 'direct', members: ['staying'] });
  const { id } = created.body as Conversation;
  const late = { ...(await messageTo(db, id, 'leaving')), text: 'late words' };

  const release = await holdConversation(db, id);
  const refused = assert.rejects(another.log.append(late), { code: 'not_member' });
  const erased = server('DELETE', '/v1/users/leaving');
  await until(() => cutOff('leaving'));
  await release();
  await refused;
  assert.equal((await erased).status, 204);
  assert.equal((await dump(db)).includes('late words'), false);
});

/** The change read the author's id before the erasure, and is committed after it has looked what names the user. */
test('users#erasure-everywhere: a change that is under way when its user is erased keeps no payload that names the user', async () => {
  const editing = await clientApi(service.url, 'editing');
  await server('PUT', '/v1/users/reading', {});
  const created = await editing('POST', '/v1/conversations', { type: 'direct', members: ['reading'] });
  const { id } = created.body as Conversation;
  let ended = false;
  const erased = await db.tx(async (tx) => {
    await tx.query('SELECT 1 FROM conversations WHERE id = $1 FOR NO KEY UPDATE', [id]);
    await tx.query(
      `INSERT INTO webhook_payloads (event_id, env, conv, message, data, event_at)
       SELECT 'evt_late', env, no, 2, '{"message":{"senderId":"editing"}}', now() FROM conversations WHERE id = $1`,
      [id],
    );
    const erasing = server('DELETE', '/v1/users/editing').finally(() => (ended = true));
    await until(async () => ended || ((await cutOff('editing')) && (await waiting()) > 0));
    return { erasing };
  });
  assert.equal((await erased.erasing).status, 204);
  assert.deepEqual(await db.query(`SELECT data FROM webhook_payloads WHERE strpos(data, 'editing') > 0`), []);
});

/** How many sessions wait for a row that another one has locked. */
const waiting = async (): Promise<number> =>
  (await db.query(`SELECT 1 FROM pg_locks WHERE NOT granted AND locktype IN ('transactionid', 'tuple')`))
    .length;

/** An append that had begun before the erasure is committed after the search for the user's messages, and before it leaves. */
test('users#erasure-races: a message that is committed behind the search for what must be deleted is deleted too', async () => {
  const writer = await clientApi(service.url, 'writer');
  await server('PUT', '/v1/users/reader', {});
  const created = await writer('POST', '/v1/conversations', { type: 'direct', members: ['reader'] });
  const { id } = created.body as Conversation;
  const { env, sender } = await messageTo(db, id, 'writer');
  assert.equal((await server('DELETE', '/v1/users/writer')).status, 204);
  await db.query(
    `UPDATE users SET erasing = 'delete', erased_at = now() - interval '2 minutes' WHERE env = $1 AND no = $2`,
    [env, sender],
  );
  let searches = 0;
  const searching: Db = {
    tx: (run) => db.tx(run),
    query: async <R extends object>(sql: string, values?: unknown[]) => {
      const rows = await db.query<R>(sql, values);
      if (sql.includes('m.sender = $3') && ++searches === 1)
        await db.query(
          `WITH c AS (
             UPDATE conversations SET last_seq = last_seq + 1, message_count = message_count + 1, last_message_seq = last_seq + 1
             WHERE id = $1 RETURNING env, no, last_seq
           ) INSERT INTO messages (env, conv, seq, id, sender, text, created_at)
             SELECT env, no, last_seq, 'msg_behind', $2, 'words behind', now() FROM c`,
          [id, sender],
        );
      return rows;
    },
  };
  const services = {
    log: { publish: () => undefined, committed: () => undefined },
    happenings: { messagesEmptied: [], memberRemoved: [] },
  } as unknown as Services;
  await resumeErasures({ db: searching, services });
  assert.equal(searches, 1);
  assert.equal((await dump(db)).includes('words behind'), false);
});
