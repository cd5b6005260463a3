import { commonFlags, flagName, usageOf } from './command.ts';
import type { Command } from './command.ts';

/** The texts of `--help`, from the declarations. scripts/command-line.ts writes docs/operations/command-line.md with the same words. */

export const clone = 'In a clone: npm run parley -- <command>. From the package: npx parley <command>.';
export const about =
  'Commands work on the store that DATABASE_URL or CHAT_DATA_DIR names, while the service runs or not. Without --json they print tables.';
export const codes = 'Exit codes: 0 done, 1 failed, 2 wrong use.';

const pairs = (rows: (readonly [string, string])[]): string[] => {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`);
};

/** @param group the first word of the commands to list; all of them if unset. */
export function overview(commands: readonly Command[], group?: string): string {
  const listed = commands.filter(({ name }) => group === undefined || name.split(' ')[0] === group);
  return `${[
    'Usage: parley <command> [--json]   (parley <command> --help explains one)',
    '',
    ...pairs(listed.map(({ name, summary }) => [name, summary])),
    '',
    about,
    codes,
    clone,
  ].join('\n')}\n`;
}

export function page(command: Command): string {
  const { summary, details = [], args = [], flags = [] } = command;
  const rows = [
    ...args.map(({ name, text, values }) => [`<${name}>`, withValues(text, values)] as const),
    ...[...flags, ...commonFlags].map((flag) => [flagName(flag), flag.text] as const),
  ];
  return `${[
    `Usage: parley ${usageOf(command)}`,
    '',
    `${summary}.`,
    ...details.flatMap((text) => ['', text]),
    '',
    ...pairs(rows),
  ].join('\n')}\n`;
}

export const withValues = (text: string, values: readonly string[] | undefined): string =>
  values ? `${text}: ${values.join(', ')}` : text;
