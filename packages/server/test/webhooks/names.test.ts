import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertError, serverApi } from '../support/api.ts';
import { startDns } from '../support/dns.ts';
import type { Known, TestDns } from '../support/dns.ts';
import { startService } from '../support/service.ts';
import { startReceiver } from './receiver.ts';
import type { Receiver } from './receiver.ts';
import { addEndpoint, deliveries } from './tools.ts';

let dns: TestDns;
let receiver: Receiver;
before(async () => {
  const names: Record<string, Known> = {
    'good.example': ['127.0.0.1'],
    'inside.example': ['10.0.0.7'],
    'here.example': ['127.0.0.1'],
    'silent.example': 'silent',
  };
  for (let i = 0; i < 20; i++) names[`silent-${i}.example`] = 'silent';
  [dns, receiver] = await Promise.all([startDns(names), startReceiver()]);
});
after(async () => {
  await dns.close();
  await receiver.close();
});

const start = (allowPrivate: boolean) =>
  startService({
    env: { CHAT_DNS_SERVERS: dns.address, CHAT_ALLOW_PRIVATE_TARGETS: String(allowPrivate) },
  });

test('endpoints on names that never resolve delay no other tenant’s webhooks', async () => {
  const service = await start(true);
  try {
    const [mine, theirs] = [serverApi(service.url, 'dev'), serverApi(service.url, 'other')];
    for (let i = 0; i < 20; i++) await addEndpoint(mine, `http://silent-${i}.example/`, ['message.created']);
    const { port } = new URL(receiver.url);
    await addEndpoint(theirs, `http://good.example:${port}/`, ['message.created']);
    const group = async (api: typeof mine) =>
      (await api('POST', '/v1/conversations', { type: 'group', members: ['a'] })).body.id as string;
    const [own, other] = [await group(mine), await group(theirs)];
    for (let n = 0; n < 10; n++) await mine('POST', `/v1/conversations/${own}/messages`, { text: `${n}` });
    while (dns.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await theirs('POST', `/v1/conversations/${other}/messages`, { text: 'hello' });
    const [received] = await receiver.wait(1);
    assert.equal(received!.data.message.text, 'hello');
  } finally {
    await service.dispose();
  }
});

test('the delivery log says the same of a name inside our network, one that is missing and one that is silent', async () => {
  const service = await start(false);
  try {
    const server = serverApi(service.url);
    const errors = new Set<string>();
    for (const host of ['inside.example', 'here.example', 'missing.example', 'silent.example']) {
      const made = await server('POST', '/v1/webhooks', {
        url: `https://${host}/`,
        events: ['message.created'],
      });
      assert.equal(made.status, 201);
      const { body } = await server('POST', `/v1/webhooks/${made.body.id}/test`);
      assert.equal(body.status, 'failed');
      errors.add(body.attempts[0].error);
    }
    assert.deepEqual([...errors], ['no connection (the name has no address that may be used)']);

    // A hook has the same guard: its name is looked up for the call, whatever it was when the hook was set.
    const hook = '/v1/hooks/before-send';
    for (const url of [
      'http://example.com/',
      'https://10.0.0.1/',
      'https://[::1]/',
      'https://169.254.169.254/',
    ])
      assertError(await server('PUT', hook, { url }), 400, 'invalid_request', 'url');
    dns.names.set('moves.example', ['203.0.113.7']);
    assert.equal((await server('PUT', hook, { url: 'https://moves.example/' })).status, 200);
    dns.names.set('moves.example', ['203.0.113.7', '127.0.0.1']);
    const { body } = await server('POST', `${hook}/test`);
    assert.equal(body.error, 'the name does not resolve (the name has no address that may be used)');
  } finally {
    await service.dispose();
  }
});

test('deliveries to a name that just failed are tried again on the schedule, with the same words in their log', async () => {
  const service = await start(true);
  try {
    const server = serverApi(service.url);
    const endpoint = await addEndpoint(server, 'http://missing.example/', ['message.created']);
    const made = await server('POST', '/v1/conversations', { type: 'group', members: ['a'] });
    for (let n = 0; n < 40; n++)
      await server('POST', `/v1/conversations/${made.body.id}/messages`, { text: `${n}` });
    const tried = async () => (await deliveries(server, endpoint.id)).filter((d) => d.attempts.length > 0);
    while ((await tried()).length < 40) await new Promise((resolve) => setTimeout(resolve, 50));
    for (const { status, attempts } of await tried()) {
      assert.equal(status, 'pending');
      assert.equal(attempts[0]!.error, 'no connection (the name has no address that may be used)');
    }
    assert.ok(dns.asked.filter((name) => name === 'missing.example').length < 40, 'the name is remembered');
  } finally {
    await service.dispose();
  }
});
