import { commonFlags, usageOf } from './command.ts';
import type { Command, Flag } from './command.ts';

/** The texts of `--help`, and of docs/operations/command-line.md, from the declarations. */

const clone = 'In a clone: npm run parley -- <command>. From the package: npx parley <command>.';
const about =
  'Commands work on the store that DATABASE_URL or CHAT_DATA_DIR names, while the service runs or not. Without --json they print tables.';
const codes = 'Exit codes: 0 done, 1 failed, 2 wrong use.';

const pairs = (rows: (readonly [string, string])[]): string[] => {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`);
};
const flagName = ({ name, value, values }: Flag): string =>
  value === undefined ? `--${name}` : `--${name} ${values?.join('|') ?? `<${value}>`}`;

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

const withValues = (text: string, values: readonly string[] | undefined): string =>
  values ? `${text}: ${values.join(', ')}` : text;

/** docs/operations/command-line.md. */
export function document(commands: readonly Command[]): string {
  const sections = commands.map((command) => {
    const { name, summary, details = [], args = [], flags = [] } = command;
    const rows = [
      ...args.map(({ name: arg, text, values }) => [`<${arg}>`, withValues(text, values)]),
      ...flags.map((flag) => [flagName(flag), flag.text]),
    ].map(([left, text]) => `| \`${left!.replaceAll('|', '\\|')}\` | ${text!.replaceAll('|', '\\|')} |`);
    return [
      `## ${name}`,
      '',
      '```',
      `parley ${usageOf(command)}`,
      '```',
      '',
      `${summary}.`,
      ...details.flatMap((text) => ['', text]),
      ...(rows.length > 0 ? ['', '| | |', '|---|---|', ...rows] : []),
    ].join('\n');
  });
  return `${[
    '# The command line',
    '',
    '<!-- written by npm run generate from packages/server/src/cli/commands -->',
    '',
    `${about} ${clone}`,
    '',
    '- `--json` prints the answer as JSON, for programs. Messages go to stderr, answers to stdout.',
    `- ${codes} Wrong use is anything that the person at the command line can correct: an unknown command or flag, a value that the operation refuses, an id that does not exist.`,
    '- A data directory that does not exist is an error: only `start` and `restore` make one.',
    '- `--help` explains a command; `parley --help` lists them; `parley --version` prints the version.',
    '',
    sections.join('\n\n'),
  ].join('\n')}\n`;
}
