import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../../server/test/cluster/nodes.ts';
import { useService } from '../../../server/test/support/use.ts';
import { newClient } from './people.ts';

/** sdk#report, with a real client of the real service. */

const { service, scene, server } = useService();

test('sdk#report: what the user sees is reported, and the same target gives the same report while it is open', async () => {
  const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
  const { id: cid } = await scene.group(anna, [ben]);
  const { id: messageId } = await scene.send(ben, cid, { text: 'nasty' });
  const client = newClient(service.url, anna.id);
  try {
    await client.connect();
    const report = await client.report({ messageId }, 'abuse', 'look');
    assert.equal(report.status, 'open');
    assert.deepEqual(await client.report({ messageId }, 'spam'), report);
    assert.equal((await client.report({ userId: ben.id }, 'abuse')).status, 'open');
    const { data } = (await server('GET', `/v1/reports?conversationId=${cid}`)).body;
    assert.deepEqual([data[0].id, data[0].latest[0].note], [report.id, 'look']);
    await assert.rejects(client.report({ userId: anna.id }, 'abuse'), { code: 'invalid_request' });
    await assert.rejects(client.report({ messageId: 'msg_unknown' }, 'abuse'), { code: 'not_found' });
    await until(() => client.features?.includes('reports') === true);
  } finally {
    client.disconnect();
  }
});
