import type { Config } from '../config.ts';
import type { OpenedStore } from '../features/accounts/master-key.ts';
import type { ControlContext } from '../features/context.ts';
import type { Logger } from '../platform/logging.ts';
import type { ConnectionSettings } from '../platform/postgres/db.ts';

/**
 * One declaration a command: how it is called, what its help says, and what it does. Parsing, help, tables and
 * docs/operations/command-line.md follow from the list in commands/index.ts.
 */

export interface Argument {
  name: string;
  text: string;
  optional?: true;
  values?: readonly string[];
}

export interface Flag {
  name: string;
  /** What stands for its value in the usage; a flag without it has none. */
  value?: string;
  text: string;
  required?: true;
  values?: readonly string[];
}

/** A command line that fits its declaration. */
export interface Line {
  /** By the names of the declaration, which are all there unless they are optional. */
  args: Readonly<Record<string, string>>;
  flags: Readonly<Record<string, string | true | undefined>>;
  /** True if the answer is for a program. */
  json: boolean;
  config: Config;
  logger: Logger;
  env: NodeJS.ProcessEnv;
}

/** A command line with the store that the settings name, which the service may be using. */
export interface StoreLine extends Line {
  ctx: ControlContext;
  connection: ConnectionSettings;
  /** The master keys, and what the store says about them. */
  opened: OpenedStore;
}

interface Declared {
  name: string;
  summary: string;
  /** More for the page of this command: paragraphs. */
  details?: readonly string[];
  args?: readonly Argument[];
  flags?: readonly Flag[];
  /** The fields that a table of its answer shows, in this order; all of them if unset. */
  columns?: readonly string[];
}

/** The answer of `run` is shown as a table, or as JSON with `--json`; nothing is shown of undefined. */
export type Command = Declared &
  (
    | { needs: 'store'; run(line: StoreLine): Promise<unknown> }
    | { needs: 'settings'; run(line: Line): Promise<unknown> }
    // Reads the settings by itself, because it has something to say about bad ones.
    | { needs: 'nothing'; run(line: Omit<Line, 'config' | 'logger'>): Promise<unknown> }
  );

/** The person at the command line can correct it: exit code 2. */
export class UsageError extends Error {}

/** `--json` and `--help` belong to every command. */
export const commonFlags: readonly Flag[] = [
  { name: 'json', text: 'prints JSON, for programs' },
  { name: 'help', text: 'explains the command' },
];

const shownArgument = ({ name, optional }: Argument): string => (optional ? `[<${name}>]` : `<${name}>`);
export const flagName = ({ name, value, values }: Flag): string =>
  value === undefined ? `--${name}` : `--${name} ${values?.join('|') ?? `<${value}>`}`;
const shownFlag = (flag: Flag): string => (flag.required ? flagName(flag) : `[${flagName(flag)}]`);

/** `env create --name <name> …`, without the program's own name. */
export const usageOf = ({ name, args = [], flags = [] }: Command): string =>
  [name, ...args.map(shownArgument), ...flags.map(shownFlag)].join(' ');
