/**
 * The identity under which PostgreSQL runs, because it refuses to run as root.
 *
 * - An ordinary user runs it directly.
 * - root runs it in a user namespace where root looks like an ordinary user and still owns its files.
 * - root without user namespaces runs it as an unprivileged uid that owns the database directory.
 *
 * As root on Linux the server gets its directory as its working directory, so that it needs no permission on the
 * directories above (a 0700 home): `/proc/self/cwd` is entered without walking through them.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { chown, readFile, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { delimiter, join } from 'node:path';
import { stageBinaries, type Binaries } from './binaries.ts';

interface Identity {
  prefix: string[];
  /** Set if the server runs as another user than we do. */
  owner?: { uid: number; gid: number };
}

export interface Runner extends Identity {
  binaries: Binaries;
  viaWorkingDirectory: boolean;
}

const PATH = process.env['PATH'] || '/usr/local/bin:/usr/bin:/bin';

/** The server gets nothing of our environment: it holds secrets, and PG* or LC_* variables would change the server. */
const ENV = { PATH, LC_ALL: 'C', TZ: 'UTC' };

export async function chooseRunner(options: {
  pgdata: string;
  binaries: Binaries;
  log: (line: string) => void;
}): Promise<Runner> {
  const { pgdata, binaries, log } = options;
  if (process.getuid?.() !== 0) {
    const identity = hasName() ? { prefix: [] } : await namespaced();
    return { ...identity, binaries, viaWorkingDirectory: false };
  }
  const viaWorkingDirectory = process.platform === 'linux';
  const existing = await stat(pgdata).catch(() => undefined);
  let identity: Identity = await namespaced();
  if (existing && existing.uid !== 0) {
    identity = { prefix: [], owner: { uid: existing.uid, gid: existing.gid } };
    log(`embedded PostgreSQL runs as uid ${existing.uid}, the owner of ${pgdata}`);
  } else if (!succeeds(identity, ['true'])) {
    identity = { prefix: [], owner: await unprivileged() };
    log(`user namespaces are not available: embedded PostgreSQL runs as uid ${identity.owner?.uid}`);
  }
  if (succeeds(identity, [binaries.postgres, '--version']))
    return { ...identity, binaries, viaWorkingDirectory };
  const staged = await stageBinaries(binaries);
  if (!succeeds(identity, [staged.postgres, '--version'])) {
    throw new Error(`the PostgreSQL binaries do not run: try \`${binaries.postgres} --version\``);
  }
  log(`the PostgreSQL binaries are out of the server's reach: running a copy, ${staged.postgres}`);
  return { ...identity, binaries: staged, viaWorkingDirectory };
}

/** The path under which the server knows its data directory. */
export function nameOf(runner: Runner, directory: string): string {
  return runner.viaWorkingDirectory ? '/proc/self/cwd' : directory;
}

export async function giveTo(runner: Runner, path: string): Promise<void> {
  if (runner.owner) await chown(path, runner.owner.uid, runner.owner.gid);
}

/**
 * Starts a command in a session of its own, so that signals to our process group do not reach it. It is tied to our
 * process, so that it gets SIGINT (a fast shutdown) even if we are killed with SIGKILL.
 */
export function launch(runner: Runner, command: string[], cwd: string): ChildProcess {
  const tied = process.platform === 'linux' && inPath('setpriv');
  // The death signal is set last, because a change of credentials clears it. If we died before that, it never comes,
  // so the shell checks once more that we are alive.
  const tie = [
    'setpriv',
    '--pdeathsig',
    'INT',
    '--',
    'sh',
    '-c',
    '[ "$PPID" = "$0" ] && exec "$@"',
    `${process.pid}`,
  ];
  const [file = '', ...args] = [...runner.prefix, ...(tied ? tie : []), ...command];
  const child = spawn(file, args, {
    cwd,
    env: ENV,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...runner.owner,
  });
  if (!tied) watch(child);
  return child;
}

/** For systems without a death signal: a shell that waits until our end of a pipe closes. */
function watch(child: ChildProcess): void {
  if (child.pid === undefined) return;
  const script = 'read -r _; kill -INT "$0" 2>/dev/null';
  const watcher = spawn('sh', ['-c', script, `${child.pid}`], {
    env: ENV,
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.on('error', () => undefined);
  watcher.unref();
  child.once('exit', () => watcher.kill('SIGKILL'));
}

function succeeds(identity: Identity, command: string[]): boolean {
  const [file = '', ...args] = [...identity.prefix, ...command];
  const result = spawnSync(file, args, {
    cwd: '/',
    env: ENV,
    stdio: 'ignore',
    timeout: 10_000,
    ...identity.owner,
  });
  return result.status === 0;
}

/** `initdb` needs a uid that has a name, so the uid in the namespace must be one. */
async function namespaced(): Promise<Identity> {
  const { uid, gid } = (await accounts()).find((account) => account.uid !== 0) ?? { uid: 1000, gid: 1000 };
  return { prefix: ['unshare', '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--'] };
}

async function unprivileged(): Promise<{ uid: number; gid: number }> {
  const known = await accounts();
  const account = ['postgres', 'nobody'].map((name) => known.find((one) => one.name === name)).find(Boolean);
  if (!account || account.uid === 0) {
    throw new Error(
      'PostgreSQL refuses to run as root, user namespaces are not available, and there is no user `postgres` or ' +
        '`nobody` to run it as: start the service as an ordinary user, or set DATABASE_URL.',
    );
  }
  return { uid: account.uid, gid: account.gid };
}

async function accounts(): Promise<{ name: string; uid: number; gid: number }[]> {
  const text = await readFile('/etc/passwd', 'utf8').catch(() => '');
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => /^\d+$/.test(fields[2] ?? '') && /^\d+$/.test(fields[3] ?? ''))
    .map((fields) => ({ name: fields[0] ?? '', uid: Number(fields[2]), gid: Number(fields[3]) }));
}

function hasName(): boolean {
  try {
    return userInfo().username !== '';
  } catch {
    return false;
  }
}

function inPath(name: string): boolean {
  return PATH.split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
