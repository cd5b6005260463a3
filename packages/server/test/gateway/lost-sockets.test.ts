import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../src/platform/logging.ts';
import type { LostSocket, PresenceRegistry } from '../../src/platform/presence/port.ts';
import type { Hub } from '../../src/realtime/hub.ts';
import { LiveSockets } from '../../src/realtime/live-sockets.ts';

test('docs/push.md: sockets of a node that died count as found dead, silent for up to 90 s', () => {
  let die!: Parameters<PresenceRegistry['onDeadNode']>[0];
  const registry: Pick<PresenceRegistry, 'onDeadNode' | 'connections'> = {
    onDeadNode: (listener) => (die = listener),
    connections: () => Promise.resolve(0),
  };
  const sockets = new LiveSockets({} as Hub, registry, createLogger('silent'));
  const lost: LostSocket[] = [];
  sockets.onLost(({ env, user, silentMs }) => {
    lost.push({ env, user, silentMs });
    return Promise.resolve();
  });
  die({ sessions: [{ env: 1, user: 2, session: 'ses_1' }], offline: [] });
  assert.deepEqual(lost, [{ env: 1, user: 2, silentMs: 90_000 }]);
});
