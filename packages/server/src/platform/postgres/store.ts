import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../logging.ts';
import type { ConnectionSettings } from './db.ts';
import { runningPostgres, startEmbeddedPostgres } from './embedded/index.ts';
import type { EmbeddedPostgres } from './embedded/index.ts';
import { outsideConnection } from './outside.ts';

/**
 * Messages to ignore: PostgreSQL logs a FATAL for each question whether it is up yet, or has our database yet, while
 * it has not.
 */
const expected =
  /the database system is (starting up|not yet accepting connections|shutting down)|database "parley" does not exist/;
const noteworthy = (line: string): boolean =>
  /(WARNING|ERROR|FATAL|PANIC): /.test(line) && !expected.test(line);

export interface Store {
  connection: ConnectionSettings;
  stop(): Promise<void>;
}

const restartDelayMs = 1_000;

/** The driver would take settings of our sessions from the environment; they are those of db.ts alone. */
const ignoreOptions = (): void => void delete process.env['PGOPTIONS'];

/** Opens the server that DATABASE_URL names, or the embedded one, which is started again whenever it ends. */
export async function openStore(
  options: { databaseUrl: string | undefined; dataDir: string },
  logger: Logger,
): Promise<Store> {
  ignoreOptions();
  if (options.databaseUrl !== undefined) {
    const { connection, tls } = outsideConnection(options.databaseUrl, process.env);
    if (tls === 'unverified')
      logger.warn(
        'DATABASE_URL says sslmode=require: the connection is encrypted, but anybody can pose as the server; sslmode=verify-full verifies it',
      );
    return { connection, stop: () => Promise.resolve() };
  }

  let stopping = false;
  const start = (): Promise<EmbeddedPostgres> =>
    startEmbeddedPostgres({
      dataDir: options.dataDir,
      log: (line) => logger[noteworthy(line) && !stopping ? 'warn' : 'debug']({ part: 'postgres' }, line),
    });
  let server = await start();

  const watch = async (): Promise<void> => {
    while (!stopping) {
      const end = await server.exited;
      if (stopping) return;
      logger.error({ part: 'postgres', ...end }, 'the embedded PostgreSQL ended; starting it again');
      while (!stopping) {
        try {
          server = await start();
          break;
        } catch (error) {
          logger.error({ part: 'postgres', err: error }, 'the embedded PostgreSQL did not start');
          await delay(restartDelayMs, undefined, { ref: false });
        }
      }
    }
  };
  void watch();

  return {
    connection: server.connection,
    stop: async () => {
      stopping = true;
      await server.stop();
    },
  };
}

/** For a command beside the service: connects to the service's embedded server, or starts one for the time of the command. */
export async function attachStore(
  options: { databaseUrl: string | undefined; dataDir: string },
  logger: Logger,
): Promise<Store> {
  ignoreOptions();
  if (options.databaseUrl === undefined) {
    const connection = await runningPostgres(options.dataDir);
    if (connection) return { connection, stop: () => Promise.resolve() };
  }
  return openStore(options, logger);
}
