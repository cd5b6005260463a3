import { styleText } from 'node:util';
import v8 from 'node:v8';
import { prepareDashboard } from '@parley/dashboard';
import { startService } from './compose.ts';
import type { Service } from './compose.ts';
import { help, listenOrigin, readConfig } from './config.ts';
import type { Config } from './config.ts';
import { pooledRandom, systemClock } from './platform/clock.ts';
import { explain } from './explain.ts';
import { createLogger, endLog } from './platform/logging.ts';
import type { Logger } from './platform/logging.ts';
import { openStore } from './platform/postgres/store.ts';
import { inheritedStore, runPrimary, workerIndex } from './primary.ts';
import type { Started } from './primary.ts';
import { listenForSignals } from './signals.ts';
import type { Signals } from './signals.ts';

const quietMs = 100;

/** Runs the service until a signal ends it, and then ends the process. */
export async function serve(args: readonly string[]): Promise<never> {
  if (args.includes('--help')) {
    process.stdout.write(help());
    process.exit(0);
  }
  // V8 would let the heap grow to four times its live size and hardly give any memory back, so that one busy minute would
  // cost that memory for ever.
  v8.setFlagsFromString('--heap-growing-percent=100');
  try {
    await run(args.includes('--force'));
    return await exit(0);
  } catch (error) {
    process.stderr.write(`Parley could not start: ${explain(error)}\n`);
    return exit(1);
  }
}

async function run(force: boolean): Promise<void> {
  const { config, unknown } = readConfig(process.env);
  const logger = createLogger(config.logLevel);
  for (const name of unknown) logger.warn(`${name} is not a setting of Parley; see npm start -- --help`);

  const signals = listenForSignals(exit);
  const inherited = inheritedStore(config.databaseUrl);
  if (inherited && config.metricsPort !== undefined) config.metricsPort += workerIndex();
  // Only one process can use the ports of media.
  if (inherited && workerIndex() > 0) config.roles = new Set([...config.roles].filter((r) => r !== 'media'));
  if (config.processes > 1 && !inherited)
    await runPrimary(config, logger, signals, (started) => announce(config, logger, started));
  else await runService(config, logger, signals, inherited, force);
  logger.info('stopped');
  await endLog(logger);
}

/**
 * At its end Node waits for the threads in which V8 compiles hot functions, and such a thread may wait for a collection of garbage that only the
 * main thread can make: neither ends (nodejs/node#54918). The process is idle for a moment first, so that they finish.
 */
async function exit(code: number): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, quietMs));
  process.exit(code);
}

async function runService(
  config: Config,
  logger: Logger,
  signals: Signals,
  inherited: ReturnType<typeof inheritedStore>,
  force: boolean,
): Promise<void> {
  const store = inherited ?? (await openStore(config, logger));
  signals.attach({
    end: () => {
      logger.level = 'silent';
      return store.stop();
    },
  });
  let service: Service | void;
  try {
    const starting = startService({
      config,
      store,
      logger,
      clock: systemClock,
      random: Math.random,
      randomBytes: pooledRandom(),
      force,
    });
    starting.catch(() => undefined);
    service = await Promise.race([starting, signals.stop]);
  } catch (error) {
    await store.stop();
    throw error;
  }
  if (service) {
    const { port, first, open } = service;
    if (inherited) process.send?.({ port, first, open } satisfies Started);
    else announce(config, logger, service);
    await signals.stop;
    logger.info('stopping');
    signals.attach({ hurry: () => service.hurry() });
    await service.stop();
  } else {
    logger.info('stopped before it was ready');
    // What was under way loses the store now, and has nothing to say about it.
    logger.level = 'silent';
  }
  await store.stop();
}

function announce(config: Config, logger: Logger, { port, first, open }: Started): void {
  const url = listenOrigin({ host: config.host, port });
  const lines = [
    `Parley is ready at ${url}`,
    `  demo         ${url}/`,
    `  dashboard    ${config.origin ?? url}/dashboard`,
    `  docs         ${url}/docs`,
  ];
  if (first) {
    lines.push('', 'Shown once, so keep them:');
    for (const env of first.environments)
      lines.push(
        `  environment  ${env.id} (${env.kind})${env.local ? ', for this machine only' : ''}`,
        ...(env.secretKey ? [`  secret key   ${env.secretKey}`] : []),
      );
    lines.push(
      `  owner        ${first.email}`,
      ...(first.password ? [`  password     ${first.password}`] : []),
    );
  }
  for (const id of open)
    lines.push(styleText('red', `  ${id} takes unsigned tokens: ANYBODY CAN BE ANYBODY there`));
  process.stdout.write(`${lines.join('\n')}\n`);
  // Built now, while nobody waits for it. Workers find it in the cache.
  prepareDashboard().catch((error: unknown) =>
    logger.warn({ err: error }, 'the dashboard could not be built'),
  );
}
