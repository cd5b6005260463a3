import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { MessageVersion } from '@parley/protocol';
import { signedInOwner } from '../accounts/dashboard.ts';
import { assertError } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import { setUp, useService } from '../support/use.ts';
import { addEndpoint } from '../webhooks/tools.ts';

/** GET /v1/messages/{id}/versions: the history of edits, as far as it is kept. */

const { service, scene, server } = useService();
let dashboard: Api;
setUp(async () => {
  dashboard = (await signedInOwner(service.url)).in('env_dev');
});

const edit = (api: Api, id: string, text: string, expectedVersion: number) =>
  api('PATCH', `/v1/messages/${id}`, { text, expectedVersion });
async function versions(id: string): Promise<[string, number, string | null, boolean, string | null][]> {
  const { status, body } = await dashboard('GET', `/v1/messages/${id}/versions`);
  assert.equal(status, 200, JSON.stringify(body));
  return (body.data as MessageVersion[]).map((v) => [v.type, v.version, v.text, v.kept, v.actorId]);
}

it('says when and by whom; what it said where webhooks are told of edits; nothing of what was deleted', async () => {
  const ann = await scene.actor('ann');
  const { id } = await scene.group(ann, []);
  const plain = await scene.send(ann, id, { text: 'one' });
  await edit(ann.api, plain.id, 'two', 1);
  assert.deepEqual(await versions(plain.id), [
    ['created', 1, null, false, ann.id],
    ['edited', 2, 'two', true, ann.id],
  ]);

  const hook = await addEndpoint(server, 'https://hooks.example.com/x', [
    'message.created',
    'message.updated',
  ]);
  const told = await scene.send(ann, id, { text: 'one' });
  await edit(ann.api, told.id, 'two', 1);
  await edit(server, told.id, 'three', 2);
  assert.deepEqual(await versions(told.id), [
    ['created', 1, 'one', true, ann.id],
    ['edited', 2, 'two', true, ann.id],
    ['edited', 3, 'three', true, null],
  ]);
  await ann.api('DELETE', `/v1/messages/${told.id}`);
  assert.deepEqual(await versions(told.id), [
    ['created', 1, null, false, ann.id],
    ['edited', 2, null, false, ann.id],
    ['edited', 3, null, false, null],
    ['deleted', 3, null, false, ann.id],
  ]);
  await server('DELETE', `/v1/webhooks/${hook.id}`);
  const { body } = await dashboard('GET', '/v1/audit?action=messages.list');
  assert.equal(body.data[0].target, id, 'reading is noted');
  assertError(await dashboard('GET', '/v1/messages/msg_none/versions'), 404, 'not_found');
});
