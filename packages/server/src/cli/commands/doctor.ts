import { ConfigError, readConfig } from '../../config.ts';
import { systemClock } from '../../platform/clock.ts';
import { createLogger } from '../../platform/logging.ts';
import type { Command } from '../command.ts';
import { problem } from '../doctor/finding.ts';
import type { Finding } from '../doctor/finding.ts';
import {
  askService,
  lookAtDisk,
  lookAtMedia,
  lookAtPorts,
  lookAtProxy,
  lookAtSettings,
} from '../doctor/machine.ts';
import { lookAtDirectory, lookAtRedis, lookAtStore } from '../doctor/store.ts';

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'Looks at everything the service needs, and says what to do',
  details: [
    'It looks at settings, data directory, store, master key, Redis, ports, media, clock, disk, proxy headers and versions, whether the service runs or not, and changes nothing. It exits with 1 if there is a problem.',
  ],
  columns: ['area', 'status', 'found'],
  needs: 'nothing',
  run: async ({ env, json }) => {
    const findings = await lookAround(env);
    if (findings.some(({ status }) => status === 'problem')) process.exitCode = 1;
    if (json) return findings;
    process.stdout.write(report(findings));
    return undefined;
  },
};

async function lookAround(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  let read: ReturnType<typeof readConfig>;
  try {
    read = readConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [problem('settings', error.message, 'Mend it; npm start -- --help explains the settings.')];
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

const marks = { ok: 'ok', warning: 'LOOK', problem: 'WRONG' } as const;

function report(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ area }) => area.length));
  const lines = findings.flatMap(({ area, status, found, advice }) => [
    `${marks[status].padEnd(5)}  ${area.padEnd(width)}  ${found}`,
    ...(advice === null ? [] : [`${' '.repeat(width + 9)}-> ${advice}`]),
  ]);
  const count = (wanted: Finding['status']) => findings.filter(({ status }) => status === wanted).length;
  const [problems, warnings] = [count('problem'), count('warning')];
  lines.push('', `${problems} wrong, ${warnings} to look at, ${count('ok')} ok`);
  return `${lines.join('\n')}\n`;
}
