import assert from 'node:assert/strict';
import type { PgDb } from '../../src/platform/postgres/db.ts';
import type { Answer } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';

/** A media node that stands in the table and carries nothing: enough to start, ring and end calls. */
export async function pretendNode(db: PgDb, id = 'pretended'): Promise<void> {
  await db.query(
    `INSERT INTO media_nodes (id, state, rtp_capabilities, lease_until) VALUES ($1, 'ready', '{"codecs":[]}', now() + interval '1 day')
     ON CONFLICT (id) DO UPDATE SET state = excluded.state, lease_until = excluded.lease_until`,
    [id],
  );
}

export async function noNode(db: PgDb): Promise<void> {
  await db.query('DELETE FROM media_nodes');
}

export async function start(
  by: Actor,
  conversationId: string,
  fields: Record<string, unknown> = {},
): Promise<Answer['body']> {
  const answer = await by.api('POST', '/v1/calls', { conversationId, kind: 'audio', ...fields });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body;
}

export const act = (by: Actor, callId: string, action: string): Promise<Answer> =>
  by.api('POST', `/v1/calls/${callId}/${action}`);

export async function done(answer: Promise<Answer>): Promise<Answer['body']> {
  const { status, body } = await answer;
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

export const stateOf = (call: Answer['body'], who: Actor): string =>
  call.participants.find((p: { userId: string }) => p.userId === who.id)?.state;

/** Lets jobs of a call run now instead of when they are due. */
export async function hasten(
  db: PgDb,
  callId: string,
  kind: 'ring' | 'gone' | 'unheard' = 'ring',
): Promise<void> {
  await db.query(
    `UPDATE jobs SET run_at = now() WHERE queue = 'calls' AND data->>'kind' = $2 AND ref = (SELECT no FROM calls WHERE id = $1)`,
    [callId, kind],
  );
  await db.query(`UPDATE job_lanes SET next_at = now(), first_at = '-infinity' WHERE queue = 'calls'`);
}
