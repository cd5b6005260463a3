import type { Signals } from '../../features/context.ts';
import { channels } from '../../features/node-bus.ts';
import type { NodeBus } from '../../features/node-bus.ts';
import type { Hub } from '../../realtime/hub.ts';
import type { ReceiptRelay } from '../../realtime/receipts.ts';
import type { Sessions } from './sessions.ts';

/** Carries signals from the operations of this node to sockets, on whichever node they are. */
export function createSignals(options: {
  hub: Hub;
  bus: NodeBus;
  node: string;
  sessions: Sessions;
  receipts: ReceiptRelay;
}): Signals {
  const { hub, bus, node, sessions, receipts } = options;
  const closeUser = (user: number, code: number): void => {
    for (const session of [...(hub.users.get(user)?.sessions ?? [])]) session.close(code);
  };
  const closeSession = (session: string): void => sessions.loggedIn.get(session)?.close(4001);
  bus.on('userOut', (code, user) => closeUser(Number(user), code));
  bus.on('sessionOut', closeSession);
  bus.on('receipt', (receipt) => receipts.heard(receipt));
  return {
    userOut: (_env, user, code) => {
      closeUser(user, code);
      bus.publish('userOut', code, channels.user(user));
    },
    sessionOut: (on, session) => {
      if (on === node) closeSession(session);
      else bus.publish('sessionOut', session, channels.node(on));
    },
    receipt: (mark) => receipts.add(mark),
  };
}
