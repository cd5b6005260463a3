import { createSocketHistory } from '../features/live/history.ts';
import { channels } from '../features/node-bus.ts';
import { createRetention } from '../features/storage/retention.ts';
import { createSharing } from '../features/users/sharing.ts';
import { systemTimers } from '../platform/clock.ts';
import { version } from '../platform/version.ts';
import { Hub } from '../realtime/hub.ts';
import { LiveSockets } from '../realtime/live-sockets.ts';
import { Presence } from '../realtime/presence.ts';
import { ReceiptRelay } from '../realtime/receipts.ts';
import { routeSources } from '../realtime/route-sources.ts';
import type { Session } from '../transport/gateway/session.ts';
import { Sessions } from '../transport/gateway/sessions.ts';
import { createSignals } from '../transport/gateway/signals.ts';
import { Tracing } from '../realtime/tracing.ts';
import { Writer } from '../transport/gateway/writer.ts';
import type { Platform } from './platform.ts';

/** What reaches the sockets of this node, and learns of them. */
export function createRealtime(platform: Platform) {
  const { config, db, bus, registry, node, clock, timers, ids, logger, metrics } = platform;
  const retentionMs = createRetention(db, config.eventRetentionMs);
  const sharing = createSharing(db);
  const presence = new Presence({ registry, bus, db, sharing, clock, logger });
  const hub = new Hub({
    bus,
    timers,
    logger,
    ...routeSources(db, retentionMs, clock),
    onLeave: (user, sessions) => presence.watching.left(user, sessions),
  });
  metrics.gauge('parley_routes', 'Conversations with a live member here', () => hub.registry.routes.size);
  const sessions = new Sessions(timers);
  const receipts = new ReceiptRelay({
    deliver: (cid, frame) => hub.ephemeral.relayHere(cid, frame, null),
    publish: (receipt) => bus.publish('receipt', receipt, channels.conversation(receipt.cid)),
    now: () => clock.monotonic(),
  });
  return {
    retentionMs,
    sharing,
    hub,
    presence,
    sessions,
    receipts,
    signals: createSignals({ hub, presence, bus, node, sessions, receipts }),
    sockets: new LiveSockets(hub, registry, logger),
    tracing: new Tracing({ bus, hub, node, clock, timers, ids }),
    /** What this node knows about conversations is wrong, so clients have to come back and load again. */
    restart: () => {
      hub.registry.restart();
      receipts.forget();
      for (const session of sessions.loggedIn.values()) session.close(1012);
    },
    writer: new Writer<Session>(systemTimers, (session) => {
      logger.info({ session: session.id }, 'a socket could not keep up and was cut off');
      session.closeCode ||= 1013;
      session.ws.terminate();
    }),
    history: createSocketHistory({
      db,
      clock,
      logger,
      node,
      version,
      roles: [...config.roles],
      open: () => sessions.loggedIn.keys(),
    }),
  };
}

export type Realtime = ReturnType<typeof createRealtime>;
