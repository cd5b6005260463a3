import type { Logger } from '../logging.ts';

export interface Periodic {
  start(): void;
  /** Runs the job soon, after the present run; does nothing before the start. */
  wake(): void;
  /** Resolves when the present run is over. */
  stop(): Promise<void>;
}

/** Runs `job` at once and then every `ms`, never twice at the same time; a failure is logged and the next run tries again. */
export function createPeriodic(ms: number, logger: Logger, name: string, job: () => Promise<void>): Periodic {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  const run = (): void => {
    running ??= job()
      .catch((error: unknown) => logger.warn({ err: error }, `${name} failed`))
      .finally(() => {
        running = undefined;
        if (again && timer) run();
        again = false;
      });
  };
  return {
    start: () => {
      timer ??= setInterval(run, ms).unref();
      run();
    },
    wake: () => {
      if (running) again = true;
      else if (timer) run();
    },
    stop: async () => {
      clearInterval(timer);
      timer = undefined;
      await running;
    },
  };
}
