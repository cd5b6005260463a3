import type { Logger } from './logging.ts';

/** A part of the service that starts and stops with the process. */
export interface Part<Role extends string> {
  name: string;
  /** The part runs in processes that have one of these roles; if unset, in every process. */
  roles?: readonly Role[];
  start?: () => unknown;
  stop?: () => unknown;
  /** Milliseconds that its stop may take. After that it is abandoned, and the parts below it stop. */
  stopMs?: number;
}

/** Parts in the order in which they start. Parts in an inner list do not need each other, and start and stop together. */
export type PartList<Role extends string> = readonly (Part<Role> | readonly Part<Role>[])[];

export interface Parts<Role extends string> {
  readonly state: 'starting' | 'running' | 'stopping';
  /**
   * Starts the parts in order. If one fails, those that had started are stopped again and its error is thrown. A stop
   * that is requested meanwhile waits for the part that is just starting, and no further one is started.
   */
  start(list: PartList<Role>): Promise<void>;
  /** Stops the started parts in reverse order. It never throws: parts that fail or take too long are logged. */
  stop(): Promise<void>;
}

const defaultStopMs = 15_000;

export function createParts<Role extends string>(roles: ReadonlySet<Role>, logger: Logger): Parts<Role> {
  const mine = (part: Part<Role>): boolean => part.roles?.some((role) => roles.has(role)) ?? true;
  const started: Part<Role>[][] = [];
  let state: Parts<Role>['state'] = 'starting';
  let starting: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;

  async function startAll(list: PartList<Role>): Promise<void> {
    const steps = list.map((entry) => (Array.isArray(entry) ? entry : [entry]).filter(mine) as Part<Role>[]);
    for (const step of steps) {
      if (stopping) return;
      const done: Part<Role>[] = [];
      started.push(done);
      const results = await Promise.allSettled(
        step.map(async (part) => {
          await part.start?.();
          done.push(part);
        }),
      );
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    }
    if (!stopping) state = 'running';
  }

  async function stopAll(): Promise<void> {
    await starting?.catch(() => undefined);
    for (const step of started.reverse()) await Promise.all(step.map((part) => stopOne(part, logger)));
  }

  const stop = (): Promise<void> => {
    state = 'stopping';
    return (stopping ??= stopAll());
  };

  return {
    get state() {
      return state;
    },
    start: async (list) => {
      starting = startAll(list);
      try {
        await starting;
      } catch (error) {
        await stop();
        throw error;
      }
    },
    stop,
  };
}

async function stopOne<Role extends string>(part: Part<Role>, logger: Logger): Promise<void> {
  const { name, stop, stopMs = defaultStopMs } = part;
  if (!stop) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, stopMs, 'late');
  });
  try {
    if ((await Promise.race([stop(), late])) === 'late')
      logger.error({ part: name, stopMs }, 'a part did not stop in time and was left behind');
  } catch (error) {
    logger.error({ part: name, err: error }, 'a part failed to stop');
  } finally {
    clearTimeout(timer);
  }
}
