import assert from 'node:assert/strict';
import { it } from 'node:test';
import { startNodes } from '../cluster/nodes.ts';
import type { Service } from '../support/service.ts';
import type { TestSocket } from '../support/socket.ts';
import { use } from '../support/use.ts';
import { mediaReady, mediaSettings } from './media-service.ts';
import { audio, receiving } from './rtp.ts';
import { done, start } from './tools.ts';

/** Calls on media nodes of their own: signalled from any gateway, moved when a node leaves, and failed when none is left. */

const gateway = { CHAT_ROLES: 'api,gateway,worker' };
const nodes = use(
  async () => {
    const media = { CHAT_ROLES: 'media' };
    const made = await startNodes([
      gateway,
      gateway,
      { ...media, ...(await mediaSettings(1)) },
      { ...media, ...(await mediaSettings(1)) },
    ]);
    await Promise.all(made.nodes.slice(2).map(mediaReady));
    return made;
  },
  (made) => made.dispose(),
);

const processOf = async (callId: string): Promise<string> => {
  const [row] = await nodes.sql('SELECT node FROM calls WHERE id = $1', [callId]);
  return row!['node'] as string;
};
/** Which of the two media processes has this port. */
const carrier = (port: number): Service =>
  nodes.nodes.slice(2).find((n) => n.env['CHAT_MEDIA_PORT'] === String(port))!;

async function open(socket: TestSocket, callId: string, device: string): Promise<number> {
  const { send } = await socket.request('call.open', { callId, device, rtpCapabilities: receiving });
  return send.iceCandidates[0].port;
}

it('of ten devices over two gateways one answers; a media node that is killed or drained gives its calls to the other within 10 s; without any they fail', async () => {
  const { scene } = nodes;
  const [one, two] = nodes.nodes as [Service, Service];
  const [a, b] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.direct(a, b);
  const { id } = await start(a, cid);
  const phones = await Promise.all(Array.from({ length: 10 }, (_, i) => nodes.online([one, two][i % 2]!, b)));
  const answers = await Promise.all(
    phones.map((phone, i) =>
      nodes
        .at([one, two][i % 2]!, b)
        .api('POST', `/v1/calls/${id}/join?answer=true&sessionId=${phone.hello.sessionId}`),
    ),
  );
  assert.deepEqual(answers.map((r) => r.status).sort(), [200, ...Array<number>(9).fill(409)]);
  const won = answers.findIndex((r) => r.status === 200);
  for (const [i, phone] of phones.entries())
    if (i !== won) assert.equal((await phone.ephemeral('call.ended')).d.endedHere, 'answered_elsewhere');

  const callee = phones[won]!;
  const caller = await nodes.online(one, a);
  const mine = (await done(a.api('POST', `/v1/calls/${id}/join?sessionId=${caller.hello.sessionId}`))).media
    .device;
  const theirs = answers[won]!.body.media.device;
  const port = await open(caller, id, mine);
  assert.equal(await open(callee, id, theirs), port, 'both on the node of the call');
  const mic = () => ({ callId: id, source: 'mic', kind: 'audio', rtpParameters: audio() });
  const { producerId } = await caller.request('call.produce', mic());
  await callee.ephemeral('call.producer', (d) => d.producer.id === producerId);

  const first = await processOf(id);
  const killed = Date.now();
  await carrier(port).kill();
  await Promise.all([caller.ephemeral('call.media'), callee.ephemeral('call.media')]);
  const moved = await open(caller, id, mine);
  assert.notEqual(moved, port);
  assert.notEqual(await processOf(id), first);
  await caller.request('call.produce', mic());
  await open(callee, id, theirs);
  assert.ok(Date.now() - killed < 10_000, `it took ${Date.now() - killed} ms`);

  // The first comes back, and the second leaves in peace.
  const again = await mediaReady(await carrier(port).restart());
  try {
    assert.equal(await carrier(moved).stop(), 0);
    await Promise.all([caller.ephemeral('call.media'), callee.ephemeral('call.media')]);
    assert.equal(await open(caller, id, mine), port);
    await again.kill();
    const { call } = (await callee.ephemeral('call.ended', (d) => d.endedHere === undefined)).d;
    assert.equal(call.endReason, 'failed');
    const refused = await a.api('POST', '/v1/calls', { conversationId: cid, kind: 'audio' });
    assert.equal(refused.body.error.code, 'calls_unavailable');
  } finally {
    await again.kill();
  }
});
