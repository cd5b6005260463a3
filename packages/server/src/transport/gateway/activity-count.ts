import type { Analytics } from '../../features/analytics/service.ts';
import type { Environment, Sockets } from '../../features/context.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Session } from './session.ts';

const hourMs = 3_600_000;
const sampleMs = 60_000;
/** How many users are recorded at once. */
const portion = 500;

export interface ActivityCountOptions {
  sessions: ReadonlyMap<string, Session>;
  analytics: Analytics;
  sockets: Pick<Sockets, 'connections'>;
  clock: Clock;
  logger: Logger;
}

/**
 * What analytics must know about sockets that stay open: in every hour, that their users are active, and how many
 * sockets there are. Logins report both at their own time.
 */
export class ActivityCount {
  readonly #options: ActivityCountOptions;
  #hour: number;
  #sampledTick: number;
  #running: Promise<void> | undefined;

  constructor(options: ActivityCountOptions) {
    this.#options = options;
    this.#hour = this.#hourNow();
    this.#sampledTick = options.clock.monotonic();
  }

  /** Called every second. */
  tick(): void {
    const { clock, logger } = this.#options;
    const turned = this.#hourNow() !== this.#hour;
    if (this.#running || (!turned && clock.monotonic() - this.#sampledTick < sampleMs)) return;
    this.#hour = this.#hourNow();
    this.#sampledTick = clock.monotonic();
    this.#running = this.#count(turned)
      .catch((error: unknown) => logger.warn({ err: error }, 'open sockets were not counted'))
      .finally(() => (this.#running = undefined));
  }

  async idle(): Promise<void> {
    await this.#running;
  }

  #hourNow(): number {
    return Math.floor(this.#options.clock.now() / hourMs);
  }

  async #count(users: boolean): Promise<void> {
    const { sessions, analytics, sockets } = this.#options;
    const online = new Map<number, Environment>();
    const envs = new Set<number>();
    for (const { user, env } of sessions.values()) {
      if (users) online.set(user!.no, env!);
      envs.add(env!.no);
    }
    for (const env of envs) analytics.tally.connections(env, await sockets.connections(env));
    const all = [...online];
    for (let i = 0; i < all.length; i += portion)
      // A user for whom the plan has no room stays connected, uncounted, until it does something.
      await Promise.allSettled(
        all.slice(i, i + portion).map(([user, env]) => analytics.active.connected(env, user)),
      );
  }
}
