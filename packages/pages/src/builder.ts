import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { buffer, text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const patienceMs = 300_000;

/**
 * Builds in a process of its own: the service must not wait for seconds of work, and the bundler starts a process that
 * would outlive us. Both are one group, which ends with us, whatever they are doing.
 *
 * @returns the packed files.
 */
export async function runBuilder(builder: URL): Promise<Buffer> {
  const child = spawn(
    process.execPath,
    ['--no-warnings', fileURLToPath(new URL('./build.ts', import.meta.url)), builder.href],
    { detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'] } },
  );
  const end = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  process.once('exit', end);
  const timer = setTimeout(end, patienceMs);
  try {
    const [built, complaint, [code]] = await Promise.all([
      buffer(child.stdout),
      text(child.stderr),
      once(child, 'close') as Promise<[number | null]>,
    ]);
    if (code !== 0)
      throw new Error(`The builder of ${builder.pathname} failed: ${complaint.slice(0, 4_000)}`);
    return built;
  } finally {
    clearTimeout(timer);
    process.off('exit', end);
    end();
  }
}
