/** How long things take: passed in, so that tests hold it still. It does not jump when somebody sets the clock. */
export interface Timing {
  /** Milliseconds since some moment. */
  now(): number;
  sleep(ms: number): Promise<void>;
}

export const systemTiming: Timing = {
  now: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
};
