import { chmod, lstat, mkdir, mkdtemp, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { giveTo, launch, nameOf, type Runner } from './runner.ts';
import { collectOutput, whenEnded } from './output.ts';

export const SUPERUSER = 'parley';
export const PORT = 5432;

const SOCKET = `.s.PGSQL.${PORT}`;
const TEMPORARY = 'postgres-init-';
/** Longest usable path in `sockaddr_un`, without its final zero. */
const SOCKET_PATH_LIMIT = process.platform === 'linux' ? 107 : 103;

/** Creates the database directory unless it exists. It appears complete, by a rename, or not at all. */
export async function ensureCluster(
  runner: Runner,
  dataDir: string,
  pgdata: string,
  log: (line: string) => void,
): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (!name.startsWith(TEMPORARY)) continue;
    log(`removing what an interrupted initialization left: ${name}`);
    await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 5 });
  }
  if (await stat(join(pgdata, 'PG_VERSION')).catch(() => undefined)) {
    if (runner.owner) await giveTree(runner, pgdata);
    return;
  }
  const directory = await mkdtemp(join(dataDir, TEMPORARY));
  await giveTo(runner, directory);
  // There is no password: the socket lies in a directory that only the owner may enter. `peer` would compare user
  // names, which depend on how the server is run.
  const child = launch(
    runner,
    [
      runner.binaries.initdb,
      '-D',
      nameOf(runner, directory),
      '-U',
      SUPERUSER,
      '--auth=trust',
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--no-instructions',
    ],
    directory,
  );
  const output = collectOutput(child, () => undefined);
  const end = await whenEnded(child);
  if (end.code !== 0) {
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    throw new Error(`initdb failed (${end.signal ?? end.code}): ${output.tail()}`);
  }
  await rename(directory, pgdata);
  const parent = await open(dataDir);
  await parent.sync().finally(() => parent.close());
}

/** Takes over a directory written under another identity, when user namespaces were still available. */
async function giveTree(runner: Runner, directory: string): Promise<void> {
  if ((await stat(directory)).uid === runner.owner?.uid) return;
  for (const entry of await readdir(directory, { recursive: true }))
    await giveTo(runner, join(directory, entry));
  // The directory itself comes last, so that an interrupted walk is repeated.
  await giveTo(runner, directory);
}

/**
 * The directory of the socket: the database directory itself (0700) or, if its path is too long for a socket, a
 * private one in the temporary directory.
 */
export function socketDirectory(pgdata: string): string {
  if (Buffer.byteLength(join(pgdata, SOCKET)) <= SOCKET_PATH_LIMIT) return pgdata;
  const hash = createHash('sha256').update(pgdata).digest('hex').slice(0, 16);
  const [base = '/tmp'] = [tmpdir(), '/tmp'].filter((path) => Buffer.byteLength(path) < 60);
  return join(base, `parley-${hash}`);
}

export async function prepareSocketDirectory(runner: Runner, pgdata: string): Promise<string> {
  const directory = socketDirectory(pgdata);
  if (directory !== pgdata) {
    await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    // Others may write to the temporary directory too, so we must check that the directory is ours.
    const found = await lstat(directory);
    const owners = [process.getuid?.(), runner.owner?.uid];
    if (!found.isDirectory() || !owners.includes(found.uid)) {
      throw new Error(
        `${directory} belongs to somebody else: remove it, or use a data directory with a shorter path`,
      );
    }
    await chmod(directory, 0o700);
    await giveTo(runner, directory);
  }
  // No server runs here now, and a killed one leaves these files behind, with a pid that another process may have by
  // now.
  for (const stale of [SOCKET, `${SOCKET}.lock`]) await rm(join(directory, stale), { force: true });
  return directory;
}
