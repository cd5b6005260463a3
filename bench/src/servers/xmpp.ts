import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { start } from '../children.ts';
import type { Child } from '../children.ts';
import { listening } from './listening.ts';
import { countRows, query } from './postgres.ts';
import type { Database } from './postgres.ts';
import { accountsOf } from './server.ts';
import type { Plan, Running, Server } from './server.ts';

/** ejabberd and Prosody from Debian's packages, each as its own user, with the archive of group chats in PostgreSQL. */

const packages = ['ejabberd', 'erlang-p1-pgsql', 'prosody', 'lua-dbi-postgresql'];
const password = 'bench';
const templates = new URL('./templates/', import.meta.url);
const schema = '/usr/share/ejabberd/sql/pg.sql';

export const hasEjabberd = (): boolean => existsSync('/usr/sbin/ejabberdctl') && existsSync(schema);
export const hasProsody = (): boolean => existsSync('/usr/bin/prosody');

/** Installs what is missing, as root; otherwise says what to do. Debian's service starters are kept out. */
export function installPeers(): string | null {
  if (hasEjabberd() && hasProsody()) return null;
  const command = `apt-get install -y --no-install-recommends ${packages.join(' ')}`;
  if (process.getuid?.() !== 0)
    return `ejabberd and Prosody are left out: install them as root with ${command}`;
  const policy = '/usr/sbin/policy-rc.d';
  const ours = !existsSync(policy);
  if (ours) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    spawnSync('apt-get', ['update'], { env, stdio: 'ignore' });
    const [program = '', ...args] = command.split(' ');
    spawnSync(program, args, { env, stdio: 'ignore' });
  } finally {
    if (ours) spawnSync('rm', ['-f', policy]);
  }
  return hasEjabberd() && hasProsody()
    ? null
    : `ejabberd or Prosody is left out: ${command} did not bring it`;
}

/** `setpriv`, not `su`, which would lower the limit of open files. */
const asUser = (user: string, command: string[]): string[] =>
  process.getuid?.() === 0
    ? ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--', ...command]
    : command;

const idOf = (user: string, flag: '-u' | '-g'): number =>
  Number(spawnSync('id', [flag, user], { encoding: 'utf8' }).stdout);

function ownDirectory(path: string, user: string): string {
  mkdirSync(path, { recursive: true });
  if (process.getuid?.() === 0) chownSync(path, idOf(user, '-u'), idOf(user, '-g'));
  return path;
}

function fill(name: string, target: string, words: Record<string, string | number>): void {
  let text = readFileSync(new URL(name, templates), 'utf8');
  for (const [word, value] of Object.entries(words)) text = text.replaceAll(`@${word}@`, String(value));
  writeFileSync(target, text, { mode: 0o644 });
}

const running = (
  child: Child,
  port: number,
  database: Database,
  stored: () => Promise<number>,
  addUsers: (plan: Plan) => Promise<void>,
): Running => ({
  wire: 'xmpp',
  port,
  roots: [child.pid, database.pid],
  gateway: child.pid,
  async accounts(plan) {
    await addUsers(plan);
    return names(plan);
  },
  stored,
  stop: () => child.stop(),
});

const names = (plan: Plan) =>
  accountsOf(
    plan,
    (index) => `${plan.name}-r${index}`,
    () => password,
  );

export const createEjabberd = (
  directory: string,
  port: number,
  database: () => Promise<Database>,
): Server => ({
  name: 'ejabberd',
  label: 'ejabberd 23, archive in PostgreSQL',
  durable: true,
  async start() {
    const store = await database();
    if (await store.create('ejabberd')) await query(store.config('ejabberd'), readFileSync(schema, 'utf8'));
    mkdirSync(directory, { recursive: true });
    chmodSync(directory, 0o755);
    const spool = ownDirectory(join(directory, 'spool'), 'ejabberd');
    const logs = ownDirectory(join(directory, 'logs'), 'ejabberd');
    const config = join(directory, 'ejabberd.yml');
    const control = join(directory, 'ejabberdctl.cfg');
    fill('ejabberd.yml.template', config, { PORT: port, PGPORT: store.port, MAM: 'sql' });
    // A port of its own for distribution: without it a daemon, epmd, would be started and stay.
    writeFileSync(
      control,
      `ERL_OPTIONS="-env ERL_CRASH_DUMP_BYTES 0"\nINET_DIST_INTERFACE=127.0.0.1\nERL_DIST_PORT=${port + 1}\n`,
    );
    const args = ['--node', 'bench@localhost', '--config-dir', directory, '--ctl-config', control];
    const command = [
      'ejabberdctl',
      ...args,
      '--config',
      config,
      '--spool',
      spool,
      '--logs',
      logs,
      'foreground',
    ];
    const [program = '', ...rest] = asUser('ejabberd', command);
    const child = start(program, rest, {
      cwd: spool,
      env: {
        PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        HOME: spool,
        ERL_EPMD_ADDRESS: '127.0.0.1',
      },
    });
    await listening(child, port);
    const archived = () => countRows(store.config('ejabberd'), 'archive');
    return running(child, port, store, archived, async (plan) => {
      await query(
        store.config('ejabberd'),
        'INSERT INTO users (username, password) SELECT unnest($1::text[]), $2 ON CONFLICT DO NOTHING',
        [names(plan).map((a) => a.name), password],
      );
    });
  },
});

export const createProsody = (
  directory: string,
  port: number,
  database: () => Promise<Database>,
): Server => ({
  name: 'prosody',
  label: 'Prosody 0.12, archive in PostgreSQL',
  durable: true,
  async start() {
    const store = await database();
    await store.create('prosody');
    mkdirSync(directory, { recursive: true });
    chmodSync(directory, 0o755);
    const data = ownDirectory(join(directory, 'data'), 'prosody');
    const config = join(directory, 'prosody.cfg.lua');
    fill('prosody.cfg.lua.template', config, {
      PORT: port,
      PGPORT: store.port,
      DATA: data,
      GC: 'gc = { mode = "generational" }',
    });
    const [program = '', ...rest] = asUser('prosody', ['prosody', '--config', config, '-F']);
    const child = start(program, rest, { cwd: data, env: { PATH: '/usr/bin:/bin' } });
    await listening(child, port);
    const archived = () => countRows(store.config('prosody'), 'prosodyarchive', `store = 'muc_log'`);
    return running(child, port, store, archived, async (plan) => {
      const accounts = ownDirectory(
        join(ownDirectory(join(data, 'localhost'), 'prosody'), 'accounts'),
        'prosody',
      );
      // Prosody writes `-` in a file's name as %2d.
      for (const { name } of names(plan))
        writeFileSync(
          join(accounts, `${name.replaceAll('-', '%2d')}.dat`),
          `return { ["password"] = "${password}" };\n`,
        );
    });
  },
});
