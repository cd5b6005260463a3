import { ApiError } from '@parley/protocol';
import { UsageError } from './cli/command.ts';
import type { Line } from './cli/command.ts';
import { commandList } from './cli/commands/index.ts';
import { overview, page } from './cli/help.ts';
import { shown } from './cli/output.ts';
import { findCommand, parse } from './cli/parse.ts';
import { withStore } from './cli/store.ts';
import { ConfigError, readConfig } from './config.ts';
import { explain } from './explain.ts';
import { createLogger } from './platform/logging.ts';
import { version } from './platform/version.ts';

/**
 * The command line: a binding over the operation table, like REST. It runs the operations that the operator may call,
 * with the same checks and the same audit log.
 */

async function main(line: readonly string[]): Promise<void> {
  if (line[0] === '--version') return print(`${version}\n`);
  const words = line.filter((word) => !word.startsWith('-') && word !== 'help');
  const wantsHelp = line.includes('--help') || line[0] === 'help';
  if (words.length === 0 && wantsHelp) return print(overview(commandList));
  if (words.length === 0 && line.length === 0) throw new UsageError(overview(commandList).trimEnd());
  if (wantsHelp) {
    const found = findCommand(words, commandList);
    const group = commandList.some(({ name }) => name.startsWith(`${words[0]} `)) ? words[0] : undefined;
    if (found) return print(page(found.command));
    if (group !== undefined && words.length === 1) return print(overview(commandList, group));
  }
  const { command, args, flags } = parse(line, commandList);
  const json = flags['json'] === true;
  const answer = await run(command, { args, flags, json, env: process.env });
  if (answer !== undefined)
    print(`${json ? JSON.stringify(answer, null, 2) : shown(answer, command.columns)}\n`);
}

function run(command: (typeof commandList)[number], line: Omit<Line, 'config' | 'logger'>): Promise<unknown> {
  if (command.needs === 'nothing') return command.run(line);
  const { config } = readConfig(line.env);
  const logger = createLogger(config.logLevel === 'info' ? 'warn' : config.logLevel);
  const whole = { ...line, config, logger };
  return command.needs === 'settings' ? command.run(whole) : withStore(whole, (one) => command.run(one));
}

function print(text: string): void {
  process.stdout.write(text);
}

/** True for errors that the person at the command line can correct: everything but failures of the service. */
const isMistake = (error: unknown): boolean =>
  error instanceof UsageError ||
  error instanceof ConfigError ||
  (error instanceof ApiError && (error.row.http ?? 500) < 500);

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${explain(error)}\n`);
  process.exit(isMistake(error) ? 2 : 1);
}
