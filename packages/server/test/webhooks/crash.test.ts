import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createApi, serverApi } from '../support/api.ts';
import { environments, startService } from '../support/service.ts';
import type { Service } from '../support/service.ts';
import { startReceiver, verify } from './receiver.ts';
import type { Receiver } from './receiver.ts';
import { addEndpoint } from './tools.ts';

const open: { service?: Service; receiver?: Receiver } = {};
after(async () => {
  await open.service?.dispose();
  await open.receiver?.close();
});

test('kill -9 under load: every acknowledged change is delivered, at least once, with the same id', async () => {
  const receiver = (open.receiver = await startReceiver());
  let service = (open.service = await startService());
  const server = serverApi(service.url);
  const { secret } = await addEndpoint(server, receiver.url, [
    'message.created',
    'message.updated',
    'message.read',
  ]);
  const cid = (await server('POST', '/v1/conversations', { type: 'group', members: ['a', 'b'] })).body
    .id as string;
  // Some answers get lost: those deliveries come again, under the same id.
  let count = 0;
  receiver.answer = (_, res) => (++count % 10 === 0 ? res.destroy() : res.writeHead(204).end());

  const acked = new Set<string>();
  const edited = new Set<string>();
  let reads = 0;
  const rounds = 3;
  for (let round = 1; round <= rounds; round++) {
    const url = service.url;
    const killed = { yes: false };
    const token = (await serverApi(url)('POST', '/v1/tokens', { userId: 'b' })).body.token as string;
    const reader = createApi(url, token);
    const api = createApi(url, environments.dev.secretKey);
    const target = acked.size + 150;
    let reached!: () => void;
    const enough = new Promise<void>((resolve) => (reached = resolve));
    const writers = Array.from({ length: 8 }, async (_, w) => {
      try {
        for (let n = 0; ; n++) {
          const sent = await api('POST', `/v1/conversations/${cid}/messages`, { text: `${round} ${w} ${n}` });
          assert.equal(sent.status, 201);
          acked.add(sent.body.id);
          if (n % 4 === 0) {
            const edit = await api('PATCH', `/v1/messages/${sent.body.id}`, {
              text: 'edited',
              expectedVersion: 1,
            });
            assert.equal(edit.status, 200);
            edited.add(sent.body.id);
          }
          if (w === 0) {
            const read = await reader('POST', `/v1/conversations/${cid}/read`, { seq: sent.body.seq });
            if (read.status === 200) reads = read.body.lastReadSeq;
          }
          if (acked.size >= target) reached();
        }
      } catch (error) {
        if (!killed.yes) throw error;
      }
    });
    await Promise.race([enough, Promise.all(writers)]);
    killed.yes = true;
    await service.kill();
    await Promise.all(writers);
    service = open.service = await service.restart();
  }

  const arrived = async (type: string, ids: Set<string>): Promise<void> => {
    const seen = (): Set<string> =>
      new Set(receiver.received.filter((r) => r.type === type).map((r) => r.data.message.id as string));
    for (let missing = ids; missing.size > 0; missing = missing.difference(seen()))
      await receiver.wait(1, (r) => r.type === type && missing.has(r.data.message.id));
  };
  await arrived('message.created', acked);
  await arrived('message.updated', edited);
  await receiver.wait(1, (r) => r.type === 'message.read' && r.data.lastReadSeq >= reads);

  const ids = new Map<string, string>();
  for (const r of receiver.received) {
    verify(secret, r);
    const about = `${r.type} ${r.data.seq ?? r.data.lastReadSeq}`;
    assert.equal(ids.get(about) ?? r.id, r.id, 'one event, one id');
    ids.set(about, r.id);
  }
  assert.ok(acked.size >= rounds * 150);
});
