import { ConfigError, readConfig } from '../../config.ts';
import { systemClock } from '../../platform/clock.ts';
import { createLogger } from '../../platform/logging.ts';
import { problem } from './finding.ts';
import type { Finding } from './finding.ts';
import { askService, lookAtDisk, lookAtMedia, lookAtPorts, lookAtProxy, lookAtSettings } from './machine.ts';
import { lookAtDirectory, lookAtRedis, lookAtStore } from './store.ts';

export async function lookAround(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  let read: ReturnType<typeof readConfig>;
  try {
    read = readConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [problem('settings', error.message, 'Correct it; npm start -- --help explains the settings.')];
  }
  const { config, unknown } = read;
  // What goes wrong is found here and not in a log.
  const logger = createLogger('silent');
  const health = await askService(config);
  return [
    ...lookAtSettings(config, unknown),
    await lookAtDirectory(config),
    ...(await lookAtStore(config, logger, () => systemClock.now())),
    await lookAtRedis(config, logger),
    ...(await lookAtPorts(config, health)),
    await lookAtMedia(config, health),
    await lookAtDisk(config.dataDir),
    lookAtProxy(config),
  ];
}

const marks = { ok: 'ok', warning: 'WARN', problem: 'ERROR' } as const;

export function report(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ area }) => area.length));
  const lines = findings.flatMap(({ area, status, found, advice }) => [
    `${marks[status].padEnd(5)}  ${area.padEnd(width)}  ${found}`,
    ...(advice === null ? [] : [`${' '.repeat(width + 9)}-> ${advice}`]),
  ]);
  const count = (wanted: Finding['status']) => findings.filter(({ status }) => status === wanted).length;
  const [problems, warnings] = [count('problem'), count('warning')];
  lines.push('', `${problems} problems, ${warnings} warnings, ${count('ok')} ok`);
  return `${lines.join('\n')}\n`;
}
