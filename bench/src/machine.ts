import { readFileSync } from 'node:fs';
import { arch, availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { postgresVersion } from './servers/postgres.ts';

export async function describeMachine(): Promise<[string, string][]> {
  const system = /^PRETTY_NAME="(.*)"/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? type();
  return [
    ['Processor', `${cpus()[0]?.model.trim() ?? 'unknown'}, ${availableParallelism()} cores, ${arch()}`],
    ['Memory', `${Math.round(totalmem() / 2 ** 30)} GB`],
    ['System', `${system}, Linux ${release()}`],
    ['Node', process.version],
    [
      'PostgreSQL',
      `${await postgresVersion()}, fsync on, the same binaries and settings for every server that stores`,
    ],
  ];
}
