import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Conversation } from '@parley/protocol';
import { clientApi } from '../support/api.ts';
import { use, useService } from '../support/use.ts';
import { holdConversation, messageTo, openLog } from './log-tools.ts';
import type { OpenLog } from './log-tools.ts';
import { dump } from './tools.ts';

const { service, server, db } = useService();
const another = use<OpenLog>(
  () => openLog(service),
  (opened) => opened.close(),
);

/** The send was let in before the erasure began, and its turn to commit comes after the erasure has cut the user off. */
test('DECISIONS: a send that is under way when its user is erased leaves nothing behind', async () => {
  const leaving = await clientApi(service.url, 'leaving');
  await server('PUT', '/v1/users/staying', {});
  const created = await leaving('POST', '/v1/conversations', { type: 'direct', members: ['staying'] });
  const { id } = created.body as Conversation;
  const late = { ...(await messageTo(db, id, 'leaving')), text: 'late words' };

  const release = await holdConversation(db, id);
  const refused = assert.rejects(another.log.append(late), { code: 'not_member' });
  assert.equal((await server('DELETE', '/v1/users/leaving')).status, 204);
  await release();
  await refused;
  assert.equal((await dump(db)).includes('late words'), false);
});
