// docs/operations/command-line.md, made from the commands' declarations: npm run generate writes it, npm run check checks it
// (--check).
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { commandList } from '../packages/server/src/cli/commands/index.ts';
import { flagName, usageOf } from '../packages/server/src/cli/command.ts';
import type { Command } from '../packages/server/src/cli/command.ts';
import { about, clone, codes, withValues } from '../packages/server/src/cli/help.ts';

const file = new URL('../docs/operations/command-line.md', import.meta.url);
const wanted = document(commandList);

function current(): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

if (current() !== wanted) {
  if (process.argv.includes('--check')) {
    console.error('stale: docs/operations/command-line.md (run npm run generate)');
    process.exitCode = 1;
  } else {
    mkdirSync(new URL('.', file), { recursive: true });
    writeFileSync(file, wanted);
    console.log('wrote docs/operations/command-line.md');
  }
}

function document(commands: readonly Command[]): string {
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
