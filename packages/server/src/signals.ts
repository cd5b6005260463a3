import { setTimeout as delay } from 'node:timers/promises';

/**
 * What signals ask of a process of the service.
 *
 * - SIGTERM: drain, then exit with 0. A second one changes nothing, because the whole process group may be signalled.
 * - SIGINT (Ctrl-C): the same, but without waiting for clients that waiting does not help, and within `interruptMs`. A second
 *   Ctrl-C ends the process at once.
 */
export interface Signals {
  /** Resolves at the first signal. */
  readonly stop: Promise<void>;
  /** Tells what to do from now on. `hurry` is called at a Ctrl-C, also one that came before. */
  attach(running: Partial<Running>): void;
}

interface Running {
  /** Stops waiting for clients that waiting does not help. */
  hurry(): void;
  /** Ends what this process started, without regard to work under way. */
  end(): Promise<unknown>;
}

/** Milliseconds in which one Ctrl-C may arrive twice, from the terminal and from npm. One that comes later was pressed again. */
const sameKeyMs = 300;
/** Milliseconds after which a Ctrl-C ends the process even if a request is still under way. */
const interruptMs = 30_000;
/** Milliseconds that the embedded PostgreSQL and the workers get to end at once. They end by themselves too, without us. */
const endMs = 5_000;

export function listenForSignals(exit: (code: number) => unknown): Signals {
  const running: Running = { hurry: () => undefined, end: () => Promise.resolve() };
  const { promise: stop, resolve: requested } = Promise.withResolvers<void>();
  let interruptedAt = 0;
  let ending = false;

  async function endNow(code: number): Promise<void> {
    // Pressed a third time.
    if (ending) process.exit(code);
    ending = true;
    await Promise.race([running.end().catch(() => undefined), delay(endMs)]);
    exit(code);
  }

  process.on('SIGTERM', () => requested());
  process.on('SIGINT', () => {
    requested();
    if (interruptedAt === 0) {
      interruptedAt = performance.now();
      setTimeout(() => void endNow(0), interruptMs).unref();
    } else if (performance.now() - interruptedAt > sameKeyMs) return void endNow(130);
    running.hurry();
  });
  return {
    stop,
    attach: (more) => {
      Object.assign(running, more);
      if (interruptedAt !== 0) running.hurry();
    },
  };
}
