import { commonFlags, UsageError, usageOf } from './command.ts';
import type { Command, Flag } from './command.ts';

/** Finds the command that words name and takes the rest apart. Whatever is not known is named, with the nearest that is. */

export interface Parsed {
  command: Command;
  args: Record<string, string>;
  flags: Record<string, string | true | undefined>;
}

/** How many letters differ: changed, missing, added or swapped with the next. */
export function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, before[j - 2]! + 1);
      next.push(least);
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}

/** The known word that was probably meant: at most a third of it is wrong. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const cut = word.slice(0, 60);
  const [best] = known
    .map((name) => ({ name, far: name.startsWith(cut) && cut.length > 1 ? 0 : distance(cut, name) }))
    .sort((a, b) => a.far - b.far);
  return best && best.far <= Math.max(1, Math.floor(best.name.length / 3)) ? best.name : undefined;
}

const meant = (name: string | undefined): string => (name === undefined ? '' : ` Did you mean ${name}?`);

/** The command that the first words name, and how many words that are. */
export function findCommand(
  words: readonly string[],
  commands: readonly Command[],
): { command: Command; length: number } | undefined {
  for (const length of [2, 1]) {
    const name = words.slice(0, length).join(' ');
    const command = commands.find((one) => one.name === name);
    if (command) return { command, length };
  }
  return undefined;
}

function unknownCommand(words: readonly string[], commands: readonly Command[]): UsageError {
  const names = commands.map(({ name }) => name);
  const [group = ''] = words;
  const ofGroup = names.filter((name) => name.startsWith(`${group} `));
  if (ofGroup.length > 0 && words.length === 1)
    return new UsageError(`${group} needs another word: ${ofGroup.join(', ')}.`);
  const typed = words.slice(0, 2).join(' ');
  const near = nearest(typed, names) ?? nearest(group, names);
  const groups = nearest(group, [...new Set(names.map((name) => name.split(' ')[0]!))]);
  const hint = near ?? names.find((name) => groups !== undefined && name.split(' ')[0] === groups);
  return new UsageError(`Unknown command: ${typed}.${meant(hint)} parley --help lists the commands.`);
}

export function parse(line: readonly string[], commands: readonly Command[]): Parsed {
  const words: string[] = [];
  const given: [name: string, value: string | undefined][] = [];
  const all = [...commonFlags, ...commands.flatMap(({ flags = [] }) => flags)];
  // Which flags take a value is the same for all commands, so the words can be told apart before the command is known.
  const takesValue = (name: string): boolean =>
    all.some((flag) => flag.name === name && flag.value !== undefined);
  for (let i = 0; i < line.length; i++) {
    const word = line[i]!;
    if (word === '--') {
      words.push(...line.slice(i + 1));
      break;
    }
    if (!word.startsWith('--')) {
      words.push(word);
      continue;
    }
    const [, name = '', value] = /^--([^=]*)(?:=([^]*))?$/.exec(word)!;
    given.push([name, value ?? (takesValue(name) ? line[++i] : undefined)]);
  }
  const found = findCommand(words, commands);
  if (!found) throw unknownCommand(words, commands);
  const { command, length } = found;
  return {
    command,
    args: readArguments(command, words.slice(length)),
    flags: readFlags(command, given),
  };
}

const usage = (command: Command): string => `\nUsage: parley ${usageOf(command)}`;

function oneOf(what: string, value: string, values: readonly string[] | undefined): void {
  if (values && !values.includes(value))
    throw new UsageError(
      `${what} must be one of ${values.join(', ')}; it is ${value}.${meant(nearest(value, values))}`,
    );
}

function readArguments(command: Command, words: string[]): Record<string, string> {
  const declared = command.args ?? [];
  const args: Record<string, string> = {};
  for (const [i, { name, optional, values }] of declared.entries()) {
    const word = words[i];
    if (word === undefined || word === '') {
      if (optional) continue;
      throw new UsageError(`<${name}> is missing.${usage(command)}`);
    }
    oneOf(`<${name}>`, word, values);
    args[name] = word;
  }
  const extra = words[declared.length];
  if (extra !== undefined) throw new UsageError(`Unexpected argument: ${extra}.${usage(command)}`);
  return args;
}

function readFlags(command: Command, given: [string, string | undefined][]): Parsed['flags'] {
  const known: readonly Flag[] = [...(command.flags ?? []), ...commonFlags];
  const flags: Parsed['flags'] = {};
  for (const [name, value] of given) {
    const flag = known.find((one) => one.name === name);
    if (!flag) {
      const near = nearest(
        name,
        known.map((one) => one.name),
      );
      throw new UsageError(
        `Unknown flag of ${command.name}: --${name}.${meant(near && `--${near}`)}${usage(command)}`,
      );
    }
    if (flag.value === undefined && value !== undefined)
      throw new UsageError(`--${name} takes no value.${usage(command)}`);
    if (flag.value !== undefined && value === undefined)
      throw new UsageError(`--${name} needs a value.${usage(command)}`);
    if (value !== undefined) oneOf(`--${name}`, value, flag.values);
    flags[name] = value ?? true;
  }
  for (const { name, required } of known)
    if (required && flags[name] === undefined && flags['help'] === undefined)
      throw new UsageError(`--${name} is missing.${usage(command)}`);
  return flags;
}
