import type { Signals } from '../../features/context.ts';
import { channels } from '../../features/node-bus.ts';
import type { NodeBus, NodeMessages } from '../../features/node-bus.ts';
import type { Hub } from '../../realtime/hub.ts';
import type { Presence } from '../../realtime/presence.ts';
import type { ReceiptRelay } from '../../realtime/receipts.ts';
import type { Sessions } from './sessions.ts';

/** Carries signals from the operations of this node to sockets, on whichever node they are. */
export function createSignals(options: {
  hub: Hub;
  presence: Presence;
  bus: NodeBus;
  node: string;
  sessions: Sessions;
  receipts: ReceiptRelay;
}): Signals {
  const { hub, presence, bus, node, sessions, receipts } = options;
  const closeUser = (user: number, code: number): void => {
    for (const session of [...(hub.registry.users.get(user)?.sessions ?? [])]) session.close(code);
  };
  const closeSession = (session: string): void => sessions.loggedIn.get(session)?.close(4001);
  const block = ({ user, other, cid, blocked }: NodeMessages['block']): void => {
    if (!blocked) return;
    hub.limit(cid);
    presence.watching.drop(other, user);
  };
  const silence = (no: number): void => {
    const user = hub.registry.users.get(no);
    if (user) user.silenced = true;
  };
  bus.on('block', block);
  bus.on('silence', (_, user) => silence(Number(user)));
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
    blocked: (pair) => {
      block(pair);
      const { user, other } = pair;
      bus.publish('block', pair, channels.user(user), channels.user(other), channels.watchersOf(user));
    },
    silenced: (user) => {
      silence(user);
      bus.publish('silence', '', channels.user(user));
    },
    receipt: (mark) => receipts.add(mark),
  };
}
