import { lstat, mkdir, open, readdir, unlink } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { createManagedHandler } from './managed-http.ts';
import type { HandlerConfig } from './managed-http.ts';
import { signGrant } from './managed-url.ts';
import type { Grant } from './managed-url.ts';
import { checkKey, HEAD_BYTES, StorageUnavailable } from './port.ts';
import type { MediaStorage } from './port.ts';

export interface ManagedConfig extends Omit<HandlerConfig, 'incoming' | 'pathOf'> {
  /** Holds objects in `objects/` and unfinished uploads in `incoming/`. */
  directory: string;
}

export interface ManagedStorage extends MediaStorage {
  provider: 'managed';
  /** Creates the directories and deletes uploads that a crash left unfinished. */
  open(): Promise<void>;
  /**
   * Mounted before the API and its body parser. Returns false, and does nothing, if the path does not belong to this
   * storage.
   */
  handle(req: IncomingMessage, res: ServerResponse, stamp?: () => Promise<void>): boolean;
}

const STALE_MS = 3_600_000;

/** The embedded default: an object store on the local disk, whose signed URLs this server answers itself. */
export function createManaged(config: ManagedConfig): ManagedStorage {
  const baseUrl = config.baseUrl.replace(/\/+$/, '');
  const objects = join(config.directory, 'objects');
  const incoming = join(config.directory, 'incoming');
  const pathOf = (key: string) => join(objects, checkKey(key));
  const sign = (grant: Grant) => signGrant(baseUrl, config.secrets[0]!, grant);

  return {
    provider: 'managed',
    handle: createManagedHandler({ ...config, baseUrl, incoming, pathOf }),
    async open() {
      await disk(async () => {
        await mkdir(objects, { recursive: true, mode: 0o700 });
        await mkdir(incoming, { recursive: true, mode: 0o700 });
        for (const name of await readdir(incoming)) {
          const path = join(incoming, name);
          const file = await lstat(path).catch(missing);
          if (file && config.now().getTime() - file.mtimeMs > STALE_MS) await unlink(path).catch(missing);
        }
      });
    },
    async ticket(o) {
      const { contentType: type, size } = o;
      const grant = { op: 'put', key: checkKey(o.key), expires: o.expiresAt.getTime(), type, size } as const;
      return {
        method: 'PUT',
        url: sign(grant),
        headers: { 'content-type': type },
      };
    },
    inspect: (key) =>
      disk(async () => {
        const file = await open(pathOf(key)).catch(missing);
        if (!file) return null;
        try {
          const { size } = await file.stat();
          const head = Buffer.alloc(Math.min(size, HEAD_BYTES));
          const { bytesRead } = await file.read(head, 0, head.length, 0);
          return { size, head: head.subarray(0, bytesRead) };
        } finally {
          await file.close();
        }
      }),
    async downloadUrl(o) {
      const expires = config.now().getTime() + o.expiresIn * 1000;
      const { contentType: type, filename: name, disposition } = o;
      return sign({ op: 'get', key: checkKey(o.key), expires, type, name, disposition });
    },
    remove: (key) => disk(async () => void (await unlink(pathOf(key)).catch(missing))),
  };
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

async function disk<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof Error) || !('syscall' in cause)) throw cause;
    throw new StorageUnavailable(`the media directory failed: ${(cause as NodeJS.ErrnoException).code}`, {
      cause,
    });
  }
}
