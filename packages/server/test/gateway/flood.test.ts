import assert from 'node:assert/strict';
import { it } from 'node:test';
import { systemTimers } from '../../src/platform/clock.ts';
import { useService } from '../support/use.ts';
import { Session } from '../../src/transport/gateway/session.ts';
import { Writer } from '../../src/transport/gateway/writer.ts';

const session = () =>
  new Session({} as never, {} as never, new Writer<Session>(systemTimers, () => undefined), still, {
    address: '',
    named: [],
    sdk: null,
  });
const still = { now: () => 0, monotonic: () => 0 };

const { scene } = useService();

it('socket#flood: a socket may burst 1,000 small frames, then 100 a second', () => {
  const s = session();
  let sent = 0;
  while (s.spend(0, 0)) sent++;
  assert.equal(sent, 1_000);
  assert.equal(s.spend(0, 5_000), true, 'after a while it goes on');
});

it('socket#flood: large frames count for several', () => {
  const s = session();
  let sent = 0;
  while (s.spend(12_288, 0)) sent++;
  assert.equal(sent, 250);
});

it('socket#flood: pings and pongs count as frames do, and the close says when to come back', async () => {
  for (const frame of ['ping', 'pong'] as const) {
    const { actor, socket } = await scene.person();
    const answers: string[] = [];
    socket.ws.on('pong', (data: Buffer) => answers.push(data.toString()));
    for (let i = 0; i < 3_000 && socket.ws.readyState === 1; i++) socket.ws[frame](String(i));
    const { code, reason } = await socket.closed;
    assert.equal(code, 4008);
    assert.ok(JSON.parse(reason).retryAfterMs >= 10_000, reason);
    if (frame === 'ping') {
      assert.ok(answers.length >= 900, `${answers.length} pings were answered before`);
      assert.deepEqual(answers.slice(0, 3), ['0', '1', '2']);
    }
    await (await scene.online(actor)).barrier();
  }
});

it('a frame in very many pieces, empty ones too, is no client’s', async () => {
  const { socket } = await scene.person();
  socket.ws.send('{', { fin: false });
  for (let i = 0; i < 100; i++) socket.ws.send('', { fin: false });
  assert.equal((await socket.closed).code, 1008);
});
