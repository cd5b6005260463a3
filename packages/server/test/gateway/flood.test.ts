import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Session } from '../../src/transport/gateway/session.ts';
import { Writer } from '../../src/transport/gateway/writer.ts';

const session = () =>
  new Session({} as never, {} as never, new Writer<Session>(() => undefined), [], {
    now: () => 0,
    monotonic: () => 0,
  });

it('SPEC 7, close 4008: a socket may burst 1,000 small frames, then 100 a second', () => {
  const s = session();
  let sent = 0;
  while (s.spend(0, 0)) sent++;
  assert.equal(sent, 1_000);
  assert.equal(s.spend(0, 5_000), true, 'after a while it goes on');
});

it('SPEC 7, close 4008: large frames count for several', () => {
  const s = session();
  let sent = 0;
  while (s.spend(12_288, 0)) sent++;
  assert.equal(sent, 250);
});
