import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { it } from 'node:test';
import { createApi } from '../support/api.ts';
import { postgresPrograms, startPostgres } from '../support/postgres.ts';
import { createScene } from '../support/scene.ts';
import { environments, startService } from '../support/service.ts';
import { openDb, use } from '../support/use.ts';
import { repositoryFile } from './files.ts';

/** docs/operations/deployment.md, PostgreSQL outside: /usr/lib/postgresql is Debian's. */

const postgres = use(startPostgres, (server) => server.stop());

it('deploy/postgresql/roles.sql: the service starts, migrates and sends as a role that owns its database and nothing else', async () => {
  const superuser = new URL(await postgres.createDatabase());
  // The superuser of this throw-away server has the name already.
  const input = repositoryFile('deploy/postgresql/roles.sql').replaceAll(/\bparley(?=[ _;])/g, 'operated');
  const made = spawnSync(
    join(postgresPrograms(), 'psql'),
    [
      ...['--no-psqlrc', '--set=ON_ERROR_STOP=1', '--set=password=secret', '--set=backup_password=secret'],
      ...[
        '--host',
        superuser.searchParams.get('host')!,
        '--username=parley',
        '--dbname=postgres',
        '--file=-',
      ],
    ],
    { input, encoding: 'utf8' },
  );
  assert.equal(made.status, 0, made.stderr);
  const url = new URL(superuser);
  url.username = 'operated';
  url.password = 'secret';
  url.pathname = '/operated';
  const service = await startService({
    env: { DATABASE_URL: url.href, CHAT_MASTER_KEY: randomBytes(32).toString('base64') },
  });
  try {
    const db = await openDb(service);
    const [role] = await db.query(
      `SELECT rolname, rolsuper, rolcreatedb, rolcreaterole, rolreplication FROM pg_roles WHERE rolname = current_user`,
    );
    await db.close();
    assert.deepEqual(role, {
      rolname: 'operated',
      rolsuper: false,
      rolcreatedb: false,
      rolcreaterole: false,
      rolreplication: false,
    });
    const scene = createScene(service.url);
    const [ann, bob] = [await scene.actor('ann'), await scene.actor('bob')];
    const { id } = await scene.direct(ann, bob);
    await scene.send(ann, id, { text: 'hello' });
    assert.equal((await scene.item(bob, id)).unreadCount, 1);
    const ready = await createApi(service.url, environments.dev.secretKey)('GET', '/readyz');
    assert.equal(ready.status, 200);
  } finally {
    await service.dispose();
  }
});
