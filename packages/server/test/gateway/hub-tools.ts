import type { EventName } from '@parley/protocol';
import { NodeBus } from '../../src/features/node-bus.ts';
import type { LogEvent } from '../../src/log/events.ts';
import { eventFrame } from '../../src/log/events.ts';
import { MemoryBroker } from './memory-broker.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { Hub } from '../../src/realtime/hub.ts';
import type { Membership } from '../../src/realtime/registry.ts';
import type { Session } from '../../src/transport/gateway/session.ts';
import { StandingTime } from '../support/time.ts';

/** A hub without sockets, whose time stands still, and two of them on one bus. */

const logger = createLogger('silent');
export const cid = 'conv_1';

export interface Probe extends Session {
  got: any[];
}
export const probe = (): Probe => {
  const got: any[] = [];
  const send = (frame: Buffer) => got.push(JSON.parse(frame.subarray(frame[1] === 126 ? 4 : 2).toString()));
  return { got, send } as unknown as Probe;
};
export const seqs = (p: Probe) => p.got.filter((f) => f.t === 'event').map((f) => f.seq);

export function event(
  seq: number,
  routes: { join?: number[]; leave?: number[] } = {},
  e: EventName = 'message.new',
): LogEvent {
  return { env: 1, conv: 1, cid, seq, e, frame: eventFrame(cid, seq, e, {}), ...routes };
}

export function setup(
  options: {
    memberships?: (user: number) => Promise<Membership[]>;
    missed?: (after: number) => Promise<LogEvent[] | null>;
    bus?: NodeBus;
    onLeave?: (user: number) => void;
  } = {},
) {
  const time = new StandingTime();
  const hub = new Hub({
    timers: time.timers,
    bus: options.bus ?? new NodeBus(new MemoryBroker().bus()),
    logger,
    memberships: (_env, user) => options.memberships?.(user) ?? Promise.resolve([{ cid, lastSeq: 0 }]),
    missed: (_env, _cid, after) => options.missed?.(after) ?? Promise.resolve([]),
    onLeave: (user) => options.onLeave?.(user),
  });
  return {
    hub,
    time,
    async join(user = 1): Promise<Probe> {
      const session = probe();
      await hub.registry.attach(session, 1, user, `user-${user}`);
      return session;
    },
  };
}

export const deferred = <T>() => Promise.withResolvers<T>();

/** Two nodes in one process. */
export function pair(missed: (after: number) => Promise<LogEvent[] | null> = () => Promise.resolve([])) {
  const broker = new MemoryBroker();
  const nodes = [0, 1].map(() =>
    setup({ bus: new NodeBus(broker.bus()), missed, memberships: () => Promise.resolve([]) }),
  );
  return nodes as [(typeof nodes)[0], (typeof nodes)[0]];
}
export const settled = () => new Promise((resolve) => setImmediate(resolve));
