import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { copyShared } from './shared.ts';

/** Boots the real service, as `npm start` does, on a free port with throw-away data. */

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export const environments = {
  /** Development, all limits off: for most tests. */
  dev: { id: 'env_dev', kind: 'development', plan: 'enterprise', secretKey: key('a') },
  /** Another tenant. */
  other: { id: 'env_other', kind: 'development', plan: 'enterprise', secretKey: key('b') },
  /** Production on the free plan. */
  prod: { id: 'env_prod', kind: 'production', plan: 'free', secretKey: key('c') },
} as const;
export type EnvironmentName = keyof typeof environments;

/** The account that the first start makes. */
export const owner = { email: 'owner@example.com', password: 'correct horse' };

function key(letter: string): string {
  return `sk_live_${letter.repeat(16)}_${letter.repeat(32)}`;
}

export interface Service {
  url: string;
  port: number;
  dataDir: string;
  env: Record<string, string>;
  process: ChildProcess;
  /** Everything written to stdout and stderr so far. */
  output(): string;
  /** SIGTERM, then the exit code. */
  stop(): Promise<number | null>;
  /** kill -9 of the whole process group. */
  kill(): Promise<void>;
  /** Starts again on the same data, on a new port. */
  restart(): Promise<Service>;
  /** Ends it if need be and removes the data. */
  dispose(): Promise<void>;
}

/** What a process of the service gets of our own environment: where programs are, and what is compiled already. */
export const inherited: Record<string, string> = Object.fromEntries(
  ['PATH', 'NODE_COMPILE_CACHE'].map((name) => [name, process.env[name] ?? '']),
);

/** With these a store is made in another way, or is elsewhere. */
const ofStore = /^(DATABASE_URL|CHAT_MASTER_KEY|CHAT_DATA_DIR|CHAT_BOOTSTRAP_\w+)$/;

/** A store as the first start leaves it: making one takes seconds. */
async function makeStore(dataDir: string): Promise<void> {
  const first = await startService({ dataDir });
  if ((await first.stop()) !== 0) throw new Error(`no store could be made:\n${first.output()}`);
}

export async function startService(
  options: { env?: Record<string, string>; dataDir?: string } = {},
): Promise<Service> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'parley-test-')));
  if (!options.dataDir && !Object.keys(options.env ?? {}).some((name) => ofStore.test(name)))
    await copyShared('store', dataDir, makeStore);
  const env: Record<string, string> = {
    PORT: '0',
    CHAT_DATA_DIR: dataDir,
    CHAT_LOG_LEVEL: 'warn',
    // Media has ports of its own, which two services cannot share: its tests ask for it.
    CHAT_ROLES: 'api,gateway,worker',
    // Nothing answers there: no question about a name leaves the machine.
    CHAT_DNS_SERVERS: '127.0.0.1:9',
    CHAT_BOOTSTRAP_ENVIRONMENTS: JSON.stringify(Object.values(environments)),
    CHAT_BOOTSTRAP_EMAIL: owner.email,
    CHAT_BOOTSTRAP_PASSWORD: owner.password,
    ...options.env,
  };
  const child = spawn(process.execPath, [main], {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  const exited = once(child, 'exit') as Promise<[number | null]>;
  const port = await new Promise<number>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    createInterface({ input: child.stdout }).on('line', (line) => {
      output += `${line}\n`;
      const ready = /ready at http:\/\/\S+:(\d+)/.exec(line);
      if (ready) resolve(Number(ready[1]));
    });
    void exited.then(([code]) => reject(new Error(`the service ended with ${code}:\n${output}`)));
  });
  const signal = async (name: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) {
      try {
        if (name === 'SIGKILL') process.kill(-child.pid!, name);
        else child.kill(name);
      } catch {
        // it ended a moment ago
      }
    }
    const [code] = await exited;
    return code;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    dataDir,
    env,
    process: child,
    output: () => output,
    stop: () => signal('SIGTERM'),
    kill: async () => {
      await signal('SIGKILL');
    },
    restart: () => startService({ env: { ...env, PORT: '0' }, dataDir }),
    dispose: async () => {
      await signal('SIGKILL');
      await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}
