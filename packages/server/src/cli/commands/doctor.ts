import type { Command } from '../command.ts';

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'Checks everything that the service needs, and suggests fixes',
  details: [
    'It looks at settings, data directory, store, master key, Redis, ports, media, clock, disk, proxy headers and versions, whether the service runs or not, and changes nothing. It exits with 1 if there is a problem.',
  ],
  columns: ['area', 'status', 'found'],
  needs: 'nothing',
  run: async ({ env, json }) => {
    const { lookAround, report } = await import('../doctor/look-around.ts');
    const findings = await lookAround(env);
    if (findings.some(({ status }) => status === 'problem')) process.exitCode = 1;
    if (json) return findings;
    process.stdout.write(report(findings));
    return undefined;
  },
};
