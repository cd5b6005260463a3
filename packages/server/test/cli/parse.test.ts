import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { commandList } from '../../src/cli/commands/index.ts';
import { page } from '../../src/cli/help.ts';
import { shown } from '../../src/cli/output.ts';
import { parse } from '../../src/cli/parse.ts';

/** How the command line reads words and shows answers. */

const read = (line: string) => parse(line.split(' '), commandList);

describe('words of a command line', () => {
  test('arguments and flags are found by their names, wherever the flags stand', () => {
    const { command, args, flags } = read('--json env set env_a --name=Shop --status suspended');
    assert.equal(command.name, 'env set');
    assert.deepEqual(args, { 'env id': 'env_a' });
    assert.deepEqual(flags, { json: true, name: 'Shop', status: 'suspended' });
    assert.deepEqual(read('backup -- --file').args, { file: '--file' });
  });

  const refused: [string, RegExp][] = [
    ['nonsense', /Unknown command: nonsense\. parley --help/],
    ['env', /env needs another word: env list, env create, env set\./],
    ['evn list', /Unknown command: evn list\. Did you mean env list\?/],
    ['key craete env_a', /Unknown command: key craete\. Did you mean key create\?/],
    ['bakcup x', /Did you mean backup\?/],
    ['env list --nope', /Unknown flag of env list: --nope\.\nUsage: parley env list/],
    ['env list --jsn', /--jsn\. Did you mean --json\?/],
    ['env list --name x', /Unknown flag of env list: --name/],
    ['env set', /<env id> is missing\.\nUsage: parley env set <env id>/],
    ['env set env_a --status actve', /--status must be one of active, suspended; it is actve\. Did you mean/],
    ['env set env_a --name', /--name needs a value/],
    ['env list --json=x', /--json takes no value/],
    ['env create --name x', /--kind is missing/],
    ['token env_a ann more', /Unexpected argument: more/],
  ];
  for (const [line, says] of refused)
    test(`parley ${line}`, () => assert.throws(() => read(line), { message: says }));

  test('a flag that one command takes with a value takes one in all', () => {
    const kinds = new Map<string, boolean>();
    for (const { name, flags = [] } of commandList)
      for (const flag of flags) {
        const takes = flag.value !== undefined;
        assert.equal(kinds.get(flag.name) ?? takes, takes, `${name} --${flag.name}`);
        kinds.set(flag.name, takes);
      }
  });

  test('every command has a page that names all it takes', () => {
    for (const command of commandList) {
      const text = page(command);
      for (const { name } of command.args ?? []) assert.ok(text.includes(`<${name}>`), command.name);
      for (const { name } of command.flags ?? []) assert.ok(text.includes(`--${name}`), command.name);
    }
  });
});

describe('answers for people', () => {
  test('a list is a table, one thing its fields, and nothing acts on the terminal', () => {
    const rows = [
      { id: 'env_a', local: true, createdAt: null, settings: { pushMode: 'off' } },
      { id: 'env_longer', local: false, createdAt: 'then\u001b[2J', settings: { pushMode: 'providers' } },
    ];
    assert.equal(
      shown(rows),
      [
        'ID          LOCAL  CREATED AT  SETTINGS.PUSH MODE',
        'env_a       yes    -           off',
        'env_longer  no     then [2J    providers',
      ].join('\n'),
    );
    assert.equal(shown(rows, ['id']), 'ID\nenv_a\nenv_longer');
    assert.equal(shown([]), 'None.');
    assert.equal(shown({ revoked: 'k', list: ['a', 'b'] }), 'revoked  k\nlist     a, b');
  });
});
