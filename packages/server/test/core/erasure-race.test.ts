import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Conversation } from '@parley/protocol';
import { runningPostgres } from '../../src/platform/postgres/embedded/index.ts';
import { freePort } from '../start/npm-start.ts';
import { assertError, clientApi } from '../support/api.ts';
import { dump } from './tools.ts';
import { useService } from '../support/use.ts';

const port = await freePort();
const metrics = `http://127.0.0.1:${port}/metrics`;
const { service, server, db } = useService({ env: { CHAT_METRICS_PORT: String(port) } });

const until = async (holds: () => Promise<boolean>): Promise<void> => {
  while (!(await holds())) await delay(10);
};
const waitingForLocks = async (): Promise<number> =>
  (await db.query<{ n: number }>('SELECT count(*) AS n FROM pg_locks WHERE NOT granted'))[0]!.n;
const waitingForCommit = async (): Promise<string | undefined> =>
  /^parley_commit_waiting (\d+)/m.exec(await (await fetch(metrics)).text())?.[1];

/** The send was let in before the erasure began, and its turn to commit comes after the erasure is through. */
test('DECISIONS: a send that is under way when its user is erased leaves nothing behind', async () => {
  const leaving = await clientApi(service.url, 'leaving');
  await server('PUT', '/v1/users/staying', {});
  const created = await leaving('POST', '/v1/conversations', { type: 'direct', members: ['staying'] });
  const { id } = created.body as Conversation;
  const path = `/v1/conversations/${id}/messages`;

  const holder = new pg.Client(await runningPostgres(service.dataDir));
  await holder.connect();
  try {
    await holder.query('BEGIN');
    await holder.query('SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE', [id]);
    const first = server('POST', path, { text: 'first' });
    await until(async () => (await waitingForLocks()) === 1);
    const late = leaving('POST', path, { clientMsgId: 'late', text: 'late words' });
    await until(async () => (await waitingForCommit()) === '1');
    const erased = server('DELETE', '/v1/users/leaving?messages=delete');
    await until(async () => (await waitingForLocks()) === 2);
    await holder.query('COMMIT');
    assert.equal((await first).status, 201);
    assert.equal((await erased).status, 204);
    assertError(await late, 403, 'not_member');
  } finally {
    await holder.end();
  }
  assert.equal((await dump(db)).includes('late words'), false);
});
