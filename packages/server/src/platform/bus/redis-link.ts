import type { Redis } from 'ioredis';

/** Channels per SUBSCRIBE command, and commands that run at once. */
const maxChannels = 500;
const maxCommands = 32;
/** A connection that is silent for this many milliseconds is tested with a PING. */
const pingMs = 5_000;

export interface LinkEvents {
  message(name: string, data: string): void;
  /** All wanted channels are subscribed, for the first time or again. */
  up(): void;
  down(): void;
  /** The server says that another server has the channel now. */
  moved(): void;
}

export type RedisLink = ReturnType<typeof createRedisLink>;

/** The subscriptions that one server carries. All of them are subscribed again whenever the connection is back. */
export function createRedisLink(redis: Redis, sharded: boolean, waitMs: number, events: LinkEvents) {
  const wanted = new Set<string>();
  /** Channels that are wanted but not yet requested. */
  let todo = new Set<string>();
  const waiters: (() => void)[] = [];
  let draining = false;
  let ready = false;
  let up = false;
  let closed = false;
  /** True if the connection was lost for longer than callers wait for it. */
  let away = false;
  let awayTimer: NodeJS.Timeout | undefined;

  async function settled(): Promise<boolean> {
    if (away || closed) return false;
    if (todo.size === 0 && !draining) return up;
    const waiting = new Promise<void>((resolve) => waiters.push(resolve));
    void drain();
    await waiting;
    return up;
  }

  function onReady(): void {
    if (closed) return;
    ready = true;
    todo = new Set(wanted);
    void drain();
  }

  function onClose(): void {
    if (closed) return;
    ready = false;
    if (up) {
      up = false;
      events.down();
    }
    awaitReturn();
  }

  function awaitReturn(): void {
    if (away) return;
    awayTimer ??= setTimeout(() => {
      awayTimer = undefined;
      away = true;
      release();
    }, waitMs);
  }

  function release(): void {
    for (const resolve of waiters.splice(0)) resolve();
  }

  /** Starts over with a new connection: after a failure it is unknown which commands the server executed. */
  function reconnect(): void {
    if (ready) redis.disconnect(true);
  }

  async function drain(): Promise<void> {
    if (draining) return;
    draining = true;
    try {
      while (ready && (todo.size > 0 || waiters.length > 0 || !up)) {
        const served = waiters.splice(0);
        const names = [...todo];
        todo.clear();
        try {
          await send(names);
        } catch (error) {
          waiters.unshift(...served);
          if (error instanceof Error && error.message.startsWith('MOVED')) events.moved();
          reconnect();
          return;
        }
        isUp();
        for (const resolve of served) resolve();
      }
    } finally {
      draining = false;
    }
  }

  function isUp(): void {
    clearTimeout(awayTimer);
    awayTimer = undefined;
    away = false;
    if (up || !ready) return;
    up = true;
    events.up();
  }

  async function send(names: readonly string[]): Promise<void> {
    const batches = [...batchesOf(names)];
    for (let i = 0; i < batches.length; i += maxCommands)
      await Promise.all(
        batches
          .slice(i, i + maxCommands)
          .map((batch) => (sharded ? redis.ssubscribe(...batch) : redis.subscribe(...batch))),
      );
  }

  /** In a cluster, the channels of a command must be in one slot: they share a hash tag. */
  function* batchesOf(names: readonly string[]): Generator<string[]> {
    const groups = sharded
      ? Map.groupBy(names, (name) => name.slice(0, name.indexOf('}')))
      : [['', names] as const];
    for (const [, group] of groups)
      for (let i = 0; i < group.length; i += maxChannels) yield group.slice(i, i + maxChannels);
  }

  redis.on(sharded ? 'smessage' : 'message', (name: string, data: string) => events.message(name, data));
  redis.on('moved', () => {
    events.moved();
    reconnect();
  });
  redis.on('ready', onReady);
  redis.on('close', onClose);
  const pingTimer = setInterval(() => {
    if (ready) redis.ping().catch(reconnect);
  }, pingMs).unref();
  awaitReturn();
  if (redis.status === 'ready') onReady();

  return {
    get up() {
      return up;
    },
    /** Resolves to false if the connection stays away; the channels are then subscribed when it is back. */
    subscribe(names: readonly string[]): Promise<boolean> {
      for (const name of names) {
        if (wanted.has(name)) continue;
        wanted.add(name);
        todo.add(name);
      }
      return settled();
    },
    unsubscribe(names: readonly string[]): void {
      for (const name of names) {
        wanted.delete(name);
        todo.delete(name);
      }
      if (!ready) return;
      for (const batch of batchesOf(names)) {
        const done = sharded ? redis.sunsubscribe(...batch) : redis.unsubscribe(...batch);
        // At worst the server keeps sending messages that are ignored here.
        done.catch(() => undefined);
      }
    },
    close(): void {
      closed = true;
      clearInterval(pingTimer);
      clearTimeout(awayTimer);
      release();
      redis.removeAllListeners('message').removeAllListeners('smessage').removeAllListeners('moved');
      redis.disconnect();
    },
  };
}
