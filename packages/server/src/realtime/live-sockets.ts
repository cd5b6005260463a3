import { realtime } from '@parley/protocol';
import type { EphemeralFrame } from '@parley/protocol';
import type { ClosedSession, Confirmation, Sockets } from '../features/context.ts';
import type { SocketChoice } from '../features/node-bus.ts';
import type { Logger } from '../platform/logging.ts';
import type { LostSocket, PresenceRegistry } from '../platform/presence/port.ts';
import type { Hub } from './hub.ts';

/** Milliseconds for which a client on a node that died may have been silent: until its node, and that node's lease, ended. */
const lostWithNodeMs = realtime.livenessMs + 30_000;

type Registry = Pick<PresenceRegistry, 'onDeadNode' | 'connections'>;

/** Lets features reach users' sockets, and learn that a session closed. */
export class LiveSockets implements Sockets {
  readonly #hub: Hub;
  readonly #registry: Registry;
  readonly #logger: Logger;
  readonly #listeners = new Set<(closed: ClosedSession) => void>();
  readonly #confirmed = new Set<(confirmed: Confirmation) => void>();
  readonly #lost = new Set<(lost: LostSocket) => Promise<void>>();

  constructor(hub: Hub, registry: Registry, logger: Logger) {
    this.#hub = hub;
    this.#registry = registry;
    this.#logger = logger;
    registry.onDeadNode(({ sessions }) => {
      for (const session of sessions) {
        this.closed(session);
        void this.lost({ ...session, silentMs: lostWithNodeMs });
      }
    });
  }

  connections(env: number): Promise<number> {
    return this.#registry.connections(env);
  }

  toUsers(env: number, users: readonly number[], frame: EphemeralFrame, where?: SocketChoice): void {
    this.#hub.ephemeral.toUsers(env, users, JSON.stringify(frame), where);
  }

  toConversation(cid: string, frame: EphemeralFrame): void {
    this.#hub.ephemeral.relay(cid, JSON.stringify(frame), null);
  }

  onSessionClosed(listener: (closed: ClosedSession) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  onConfirmed(listener: (confirmed: Confirmation) => void): () => void {
    this.#confirmed.add(listener);
    return () => void this.#confirmed.delete(listener);
  }

  /**
   * The listener is called for each socket that was found dead, after the registry has forgotten it. It must not
   * reject.
   */
  onLost(listener: (lost: LostSocket) => Promise<void>): void {
    this.#lost.add(listener);
  }

  async lost(lost: LostSocket): Promise<void> {
    for (const listener of this.#lost) await listener(lost);
  }

  confirmed(confirmed: Confirmation): void {
    for (const listener of this.#confirmed) listener(confirmed);
  }

  /** A listener that fails does not keep the others from being called. */
  closed(session: ClosedSession): void {
    for (const listener of this.#listeners) {
      try {
        listener(session);
      } catch (error) {
        this.#logger.error({ err: error, session: session.session }, 'hearing of a closed session failed');
      }
    }
  }
}
