import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { serverApi } from '../support/api.ts';
import { ok, startReceiver } from './receiver.ts';
import { addEndpoint } from './tools.ts';
import { use, useService } from '../support/use.ts';

const { service, server: mine, db } = useService({ own: true });
const well = use(startReceiver, (r) => r.close());
const dead = use(startReceiver, (r) => r.close());

test('docs/webhooks.md: one endpoint that never answers delays no other, in its own environment or another’s', async () => {
  const theirs = serverApi(service.url, 'other');
  let [open, most] = [0, 0];
  dead.answer = (_, res) => {
    most = Math.max(most, ++open);
    res.on('close', () => open--);
  };
  well.answer = ok;
  await addEndpoint(mine, dead.url, ['message.created']);
  for (const [api, count] of [
    [mine, 3],
    [theirs, 2],
  ] as const)
    for (let i = 0; i < count; i++) await addEndpoint(api, `${well.url}/${i}`, ['message.created']);
  const ids = await Promise.all(
    [mine, theirs].map(
      async (api) =>
        (await api('POST', '/v1/conversations', { type: 'group', members: ['a'] })).body.id as string,
    ),
  );
  const events = 200;
  for (let n = 0; n < events; n += 20)
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        Promise.all(
          [mine, theirs].map((api, e) =>
            api('POST', `/v1/conversations/${ids[e]}/messages`, { text: `${n + i}` }),
          ),
        ),
      ),
    );
  // On a slow machine an answer may come too late, and the event comes again.
  const distinct = async (n: number): Promise<number> =>
    new Set((await well.wait(n)).map((r) => r.path + r.id)).size;
  for (let n = events * 5; (await distinct(n)) < events * 5; n++);
  assert.ok(most > 0 && most <= 10, `${most} at once at the dead one`);
  const [row] = await db.query<{ n: number }>(`SELECT count(*) AS n FROM jobs WHERE queue = 'webhook'`);
  assert.ok(row!.n >= events - 10, 'the dead one’s own deliveries are all still to do');
});

test('an endpoint that answers well gets more at once, up to a hundred, and one that hangs hardly any', async (t) => {
  const { body } = await mine('POST', '/v1/conversations', { type: 'group', members: ['a'] });
  const wide = await startReceiver();
  t.after(() => wide.close());
  const held: ServerResponse[] = [];
  let most = 0;
  // Whatever comes within this time is answered together, still promptly: it does not matter how fast the machine is.
  wide.answer = (_, res) => {
    most = Math.max(most, held.push(res));
    if (held.length > 1) return;
    setTimeout(() => {
      for (const one of held.splice(0)) one.writeHead(204).end();
    }, 300);
  };
  await addEndpoint(mine, wide.url, ['message.created']);
  const events = 600;
  for (let n = 0; n < events; n += 50)
    await Promise.all(
      Array.from({ length: 50 }, () => mine('POST', `/v1/conversations/${body.id}/messages`, { text: 'x' })),
    );
  await wide.wait(events);
  assert.ok(most > 10 && most <= 100, `${most} at once`);
});
