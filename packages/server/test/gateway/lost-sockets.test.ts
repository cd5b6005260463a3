import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../src/platform/logging.ts';
import type { SocketChoice } from '../../src/features/context.ts';
import type { LostSocket } from '../../src/platform/presence/port.ts';
import { decodeToUser, encodeToUser } from '../../src/transport/gateway/bus-messages.ts';
import type { Hub } from '../../src/transport/gateway/hub.ts';
import { LiveSockets } from '../../src/transport/gateway/live-sockets.ts';
import type { Presence } from '../../src/transport/gateway/presence.ts';

test('docs/push.md: sockets of a node that died count as found dead, silent for up to 90 s', () => {
  const presence = {} as Pick<Presence, 'onLost'>;
  const sockets = new LiveSockets({} as Hub, presence as Presence, createLogger('silent'));
  const lost: LostSocket[] = [];
  sockets.onLost = ({ env, user, silentMs }) => {
    lost.push({ env, user, silentMs });
    return Promise.resolve();
  };
  presence.onLost({ env: 1, user: 2, session: 'ses_1' });
  assert.deepEqual(lost, [{ env: 1, user: 2, silentMs: 90_000 }]);
});

test('A frame for a user’s sockets carries to other nodes which ones it is for, and what they should confirm', () => {
  const choices: SocketChoice[] = [
    {},
    { only: 'ses_1' },
    { except: 'ses_2', confirm: 'call_1' },
    { confirm: 'call_1' },
  ];
  for (const where of choices)
    assert.deepEqual(decodeToUser(encodeToUser(7, '{"t":"x"}', where)), {
      env: 7,
      frame: '{"t":"x"}',
      where,
    });
});
