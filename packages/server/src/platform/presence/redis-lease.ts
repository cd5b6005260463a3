import type { Clock } from '../clock.ts';
import type { Logger } from '../logging.ts';
import { runScript } from '../redis.ts';
import type { RedisConnection } from '../redis.ts';
import type { Lost } from './port.ts';
import { beatScript, endScript, leaseKeys, listKey, openKey, reapScript, userKeys } from './redis-scripts.ts';

const chunk = 500;

/** A node's sign of life, named `<node>#<generation>`; if it is not renewed, another node clears it. */
export class RedisLease {
  readonly #connection: RedisConnection;
  readonly #clock: Clock;
  readonly #node: string;
  readonly #leaseMs: number;
  readonly #logger: Logger;
  #generation = 0;
  #name: string;
  #begun = false;
  #surelyUntil = 0;
  #beating: Promise<void> | undefined;
  /** Earlier generations of this node, which end when nothing is registered under them any more. */
  readonly former = new Set<string>();
  /** Leases that have ended and that this node took over to clear. */
  readonly ended = new Set<string>();
  /** Called with each new generation. */
  onRenew: () => void = () => undefined;

  constructor(options: {
    connection: RedisConnection;
    clock: Clock;
    node: string;
    leaseMs: number;
    logger: Logger;
  }) {
    this.#connection = options.connection;
    this.#clock = options.clock;
    this.#node = options.node;
    this.#leaseMs = options.leaseMs;
    this.#logger = options.logger;
    this.#name = this.#nextName();
  }

  get name(): string {
    return this.#name;
  }

  get begun(): boolean {
    return this.#begun;
  }

  /** Returns the lease to register under: one that certainly still runs. */
  async hold(): Promise<string> {
    if (this.#clock.monotonic() >= this.#surelyUntil) await this.beat();
    if (this.#clock.monotonic() >= this.#surelyUntil) throw new Error('no lease');
    return this.#name;
  }

  renew(): void {
    this.former.add(this.#name);
    this.#name = this.#nextName();
    this.#begun = false;
    this.#surelyUntil = 0;
    this.onRenew();
  }

  #nextName(): string {
    return `${this.#node}#${this.#clock.now().toString(36)}.${this.#generation++}`;
  }

  beat(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => (this.#beating = undefined));
    return this.#beating;
  }

  async #beat(): Promise<void> {
    const name = this.#name;
    const sentAt = this.#clock.monotonic();
    const args = [name, this.#leaseMs, this.#begun ? '' : '1'];
    const reply = await runScript(this.#connection.client, beatScript, leaseKeys, args);
    const [runs, ended] = reply as [number, string];
    if (ended !== '') this.ended.add(ended);
    if (name !== this.#name) return;
    if (runs === 1) {
      this.#begun = true;
      this.#surelyUntil = sentAt + this.#leaseMs * (2 / 3);
    } else {
      this.#logger.warn('the presence lease had ended; the sockets are registered again');
      this.renew();
    }
  }

  async end(name: string, inMs: number): Promise<void> {
    await runScript(this.#connection.client, endScript, leaseKeys, [name, inMs, this.#leaseMs]);
  }
}

/**
 * Clears a lease that has ended, and yields what was registered under it. Doing it twice, or partly and then again,
 * does no harm.
 */
export async function* clearLease(connection: RedisConnection, lease: string): AsyncGenerator<Lost> {
  const { client } = connection;
  const envs = new Set<number>();
  let cursor = '0';
  do {
    const [next, keys] = await client.sscan(listKey(lease), cursor, 'COUNT', chunk);
    const taken = (await Promise.all(
      keys.map((key) => runScript(client, reapScript, userKeys(key), [lease])),
    )) as [number, ...string[]][];
    const refs = keys
      .map((key) => key.split(':').map(Number))
      .map(([env, user]) => ({ env: env!, user: user! }));
    for (const { env } of refs) envs.add(env);
    yield {
      sessions: refs.flatMap((ref, i) =>
        taken[i]!.slice(1).map((session) => ({ ...ref, session: String(session) })),
      ),
      offline: refs.filter((_, i) => taken[i]![0] === 1),
    };
    cursor = next;
  } while (cursor !== '0');
  for (const env of envs) await closeAll(connection, env, lease);
  await client.del(listKey(lease));
  await client.zrem(leaseKeys[1], lease);
}

/** Also removes entries of which nothing else was written, because the node died in between. */
async function closeAll({ client }: RedisConnection, env: number, lease: string): Promise<void> {
  let cursor = '0';
  do {
    const [next, members] = await client.sscan(openKey(env), cursor, 'COUNT', chunk);
    const gone = members.filter((member) => member.endsWith(`|${lease}`));
    if (gone.length > 0) await client.srem(openKey(env), ...gone);
    cursor = next;
  } while (cursor !== '0');
}
