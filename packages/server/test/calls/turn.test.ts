import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { iceServers } from '../../src/features/calls/turn.ts';

/** What coturn checks with `use-auth-secret`: the name begins with the second at which it ends, and is signed. */
test('TURN credentials are of one user and call, last an hour, and are signed with the secret', () => {
  const now = Date.UTC(2026, 0, 15);
  const settings = { urls: ['stun:s.example', 'turn:t.example?transport=udp'], secret: 'shared' };
  const ask = (user: number, callId: string) => iceServers(settings, { user, callId }, now);
  const [stun, turn] = ask(7, 'call_a');
  assert.deepEqual(stun, { urls: ['stun:s.example'] });
  const username = `${now / 1_000 + 3_600}:7:call_a`;
  const credential = createHmac('sha1', 'shared').update(username).digest('base64');
  assert.deepEqual(turn, { urls: ['turn:t.example?transport=udp'], username, credential });
  for (const [, other] of [ask(8, 'call_a'), ask(7, 'call_b')])
    assert.notEqual(other!.credential, credential);
  assert.deepEqual(iceServers({ urls: [], secret: undefined }, { user: 7, callId: 'call_a' }, now), []);
});
