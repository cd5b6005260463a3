import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Stands between the service and its PostgreSQL, and does what networks do. */
export interface StoreProxy {
  /** The DATABASE_URL that leads through it. */
  url: string;
  /** The connections that are open now stay open and carry nothing any more; new ones work. */
  silence(): void;
  /** The next query that holds this text runs, and its connection is cut before the answer. Resolves then. */
  loseAnswerTo(text: string): Promise<void>;
  /** The same with the COMMIT of the next transaction that has a statement which holds this text. */
  loseCommitOf(text: string): Promise<void>;
  close(): Promise<void>;
}

/** @param target the address of PostgreSQL's Unix socket. */
export async function startStoreProxy(target: {
  host: string;
  port: number;
  user: string;
  database: string;
}): Promise<StoreProxy> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-proxy-'));
  const pairs = new Set<{ client: Socket; store: Socket; silent: boolean }>();
  let losing: { text: string; commit: boolean; lost: () => void } | undefined;
  const lose = (text: string, commit: boolean): Promise<void> =>
    new Promise((resolve) => (losing = { text, commit, lost: resolve }));
  const server = createServer((client) => {
    const store = connect(join(target.host, `.s.PGSQL.${target.port}`));
    const pair = { client, store, silent: false };
    let lost: (() => void) | undefined;
    /** The transaction that is open has such a statement. */
    let concerned = false;
    pairs.add(pair);
    client.on('data', (data) => {
      if (data.includes('BEGIN')) concerned = false;
      const here = losing !== undefined && data.includes(losing.text);
      concerned ||= here;
      if (losing?.commit ? concerned && data.includes('COMMIT') : here) {
        lost = losing?.lost;
        losing = undefined;
      }
      if (!pair.silent) store.write(data);
    });
    store.on('data', (data) => {
      if (lost) {
        store.destroy();
        client.destroy();
        lost();
      } else if (!pair.silent) client.write(data);
    });
    const end = () => {
      if (pair.silent) return;
      client.destroy();
      store.destroy();
      pairs.delete(pair);
    };
    for (const socket of [client, store]) {
      socket.on('error', () => undefined);
      socket.on('close', end);
    }
  });
  server.listen(join(directory, '.s.PGSQL.5432'));
  await once(server, 'listening');
  return {
    url: `postgresql://${target.user}@localhost/${target.database}?host=${encodeURIComponent(directory)}&port=5432`,
    silence: () => {
      for (const pair of pairs) pair.silent = true;
    },
    loseAnswerTo: (text) => lose(text, false),
    loseCommitOf: (text) => lose(text, true),
    async close() {
      server.close();
      for (const { client, store } of pairs) {
        client.destroy();
        store.destroy();
      }
      await rm(directory, { recursive: true, force: true });
    },
  };
}
