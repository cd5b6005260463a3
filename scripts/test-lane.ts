// One of the lanes in which test files run one after the other: it keeps a service running for those that need no
// service to themselves (`useService()` of packages/server/test/support/use.ts).
import type { Service } from '../packages/server/test/support/service.ts';
import { sources } from './test-parts.ts';

export type Lane = {
  /** What the process of the file gets: the service, if it may need it. */
  environment(file: string): Promise<Record<string, string>>;
  close(): Promise<void>;
};

export function createLane(): Lane {
  let running: Service | undefined;
  process.once('exit', () => {
    if (running) process.kill(-running.process.pid!, 'SIGKILL');
  });
  return {
    async environment(file): Promise<Record<string, string>> {
      if (!/\buseService\(\)/.test(sources([file]))) return {};
      // Not before scripts/test.ts has said what all processes share.
      const { startService } = await import('../packages/server/test/support/service.ts');
      running ??= await startService();
      const { url, port, dataDir, env } = running;
      return { TEST_SERVICE: JSON.stringify({ url, port, dataDir, env }) };
    },
    async close() {
      await running?.dispose();
      running = undefined;
    },
  };
}
