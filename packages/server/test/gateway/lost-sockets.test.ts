import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../src/platform/logging.ts';
import type { LostSocket } from '../../src/platform/presence/port.ts';
import type { Hub } from '../../src/transport/gateway/hub.ts';
import { LiveSockets } from '../../src/transport/gateway/live-sockets.ts';
import type { Presence } from '../../src/transport/gateway/presence.ts';

test('docs/push.md: sockets of a node that died count as found dead, silent for up to 90 s', () => {
  const presence = {} as Pick<Presence, 'onLost'>;
  const sockets = new LiveSockets({} as Hub, presence as Presence, createLogger('silent'));
  const lost: LostSocket[] = [];
  sockets.onLost(({ env, user, silentMs }) => {
    lost.push({ env, user, silentMs });
    return Promise.resolve();
  });
  presence.onLost({ env: 1, user: 2, session: 'ses_1' });
  assert.deepEqual(lost, [{ env: 1, user: 2, silentMs: 90_000 }]);
});
