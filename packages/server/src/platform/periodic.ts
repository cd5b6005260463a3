import type { Logger } from './logging.ts';

export interface Periodic {
  start(): void;
  /** Waits for the run under way. */
  stop(): Promise<void>;
}

/** Runs `job` at once and then every `ms`, never twice at the same time; a failure is logged and the next run tries again. */
export function createPeriodic(ms: number, logger: Logger, name: string, job: () => Promise<void>): Periodic {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  const run = (): void => {
    running ??= job()
      .catch((error: unknown) => logger.warn({ err: error }, `${name} failed`))
      .finally(() => {
        running = undefined;
      });
  };
  return {
    start: () => {
      timer ??= setInterval(run, ms).unref();
      run();
    },
    stop: async () => {
      clearInterval(timer);
      await running;
    },
  };
}
