import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { track } from './children.ts';
import type { Child } from './children.ts';
import type {
  FromLoad,
  HttpReport,
  HttpRequest,
  LoadReport,
  LoadRequest,
  OpenReport,
  OpenRequest,
  RunReport,
  RunRequest,
} from './load/messages.ts';
import { cpuOf } from './procfs.ts';

/** The harness's side of the load generator. CPU of the server is taken exactly over the measured window. */

const generator = fileURLToPath(new URL('./load/generator.ts', import.meta.url));

/** With the CPU of the server and, within it, of its database. */
export type Measured<T> = T & { serverCpuMs: number; databaseCpuMs: number };

export class Load {
  readonly #child: Child;

  constructor() {
    const child = fork(generator, [], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      detached: true,
      serialization: 'advanced', // keeps NaN
    });
    this.#child = track(child);
  }

  open(request: Omit<OpenRequest, 'do'>): Promise<OpenReport> {
    return this.#ask({ do: 'open', ...request }, () => undefined) as Promise<OpenReport>;
  }

  async close(): Promise<void> {
    await this.#ask({ do: 'close' }, () => undefined);
  }

  run(request: Omit<RunRequest, 'do'>, roots: readonly number[]): Promise<Measured<RunReport>> {
    return this.#measure({ do: 'run', ...request }, roots) as Promise<Measured<RunReport>>;
  }

  http(request: Omit<HttpRequest, 'do'>, roots: readonly number[]): Promise<Measured<HttpReport>> {
    return this.#measure({ do: 'http', ...request }, roots) as Promise<Measured<HttpReport>>;
  }

  stop(): Promise<void> {
    return this.#child.stop('SIGKILL');
  }

  async #measure(request: LoadRequest, roots: readonly number[]): Promise<Measured<NonNullable<LoadReport>>> {
    let begin = { all: 0, database: 0 };
    let end = begin;
    const report = await this.#ask(request, (edge) => {
      if (edge === 'begin') begin = cpuOf(roots);
      else end = cpuOf(roots);
    });
    return {
      ...report!,
      serverCpuMs: end.all - begin.all,
      databaseCpuMs: end.database - begin.database,
    };
  }

  #ask(request: LoadRequest, window: (edge: 'begin' | 'end') => void): Promise<LoadReport> {
    const { process: child } = this.#child;
    return new Promise((resolve, reject) => {
      const over = (): void => {
        child.off('message', onMessage);
        child.off('exit', onExit);
      };
      const onExit = (): void => reject(new Error('the load generator ended'));
      const onMessage = (message: FromLoad): void => {
        if ('window' in message) return window(message.window);
        over();
        if ('failure' in message) reject(new Error(message.failure));
        else resolve(message.report);
      };
      child.on('message', onMessage);
      child.once('exit', onExit);
      child.send(request);
    });
  }
}
