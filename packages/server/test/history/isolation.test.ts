import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { mainOf, readAnswer } from '../../src/platform/history/messages.ts';
import type { Ask } from '../../src/platform/history/messages.ts';
import { message } from '../../src/platform/history/conformance.ts';
import { createRemoteHistories } from '../../src/platform/history/remote.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { parley } from '../support/cli.ts';
import { hostileCases } from '../support/hostile/cases.ts';
import { int32, pgMessage, startPostgresDouble, startTcp } from '../support/hostile/servers.ts';
import { createScene } from '../support/scene.ts';
import { startService } from '../support/service.ts';
import { StandingTime } from '../support/time.ts';
import { openDb, use } from '../support/use.ts';
import { startCustomerPostgres } from './servers.ts';
import { eventually, openStorage } from './world.ts';

/** docs/storage.md, Safety: customers' databases are spoken with in a process of its own. */

const read: Ask = { op: 'read', range: { conversationId: 'conv_x', after: 0, limit: 3 } };
const good = message({ id: 'msg_1', conversationId: 'conv_x', seq: 1 });
const told = (ask: Ask, value: unknown, problems: string[] = []) =>
  readAnswer(ask, Buffer.from(JSON.stringify({ value })), (problem) => problems.push(problem));

const unfit: [what: RegExp, field: object][] = [
  [/text must be string/, { text: Buffer.from('hello') }],
  [/text must have at most 5000 characters/, { text: 'x'.repeat(5_001) }],
  [/createdAt must match/, { createdAt: 'infinity' }],
  [/createdAt must be string/, { createdAt: null }],
  [/id must be string/, { id: 7 }],
  [/Unknown field/, { other: 1 }],
];
const noJson: [name: 'attachments' | 'metadata', value: unknown][] = [
  ['metadata', '{'],
  ['metadata', 7],
  ['metadata', JSON.stringify({ a: { b: { c: { d: { e: { f: 1 } } } } } })],
  ['metadata', '[]'],
  ['metadata', JSON.stringify({ a: 'x'.repeat(20_000) })],
  ['attachments', JSON.stringify(Array.from({ length: 11 }, () => ({})))],
];

test('docs/storage.md, Safety: what is not what a message can be is left out, and the others are served', () => {
  const other = { ...good, id: 'msg_2', seq: 2, metadata: '{"a":1}' };
  assert.deepEqual(told(read, { data: [other, good], hasMore: true }), {
    data: [other, good],
    hasMore: true,
  });
  for (const [what, field] of unfit) {
    const problems: string[] = [];
    const page = told(read, { data: [{ ...good, seq: 3, ...field }, other], hasMore: true }, problems);
    assert.deepEqual(page, { data: [other], hasMore: true, end: 3 });
    assert.equal(told({ op: 'get', id: 'msg_1' }, { ...good, ...field }, problems), null);
    assert.match(problems.join(), what);
  }
  for (const [name, value] of noJson) {
    const shown = { ...other, [name]: null };
    const page = told(read, { data: [{ ...other, [name]: value }, good], hasMore: false });
    assert.deepEqual(page, { data: [shown, good], hasMore: false }, name);
    assert.deepEqual(told({ op: 'get', id: 'msg_2' }, { ...other, [name]: value }), shown);
  }
});

test('docs/storage.md, Safety: a page of which nothing is left still says where the next one begins', () => {
  const bad = (seq: unknown) => ({ ...good, seq, text: 7 });
  assert.deepEqual(told(read, { data: [bad(9), bad(4)], hasMore: true }), {
    data: [],
    hasMore: true,
    end: 9,
  });
  const down: Ask = { op: 'read', range: { conversationId: 'conv_x', before: 10, limit: 2 } };
  assert.deepEqual(told(down, { data: [bad(9), bad(4)], hasMore: true }), {
    data: [],
    hasMore: true,
    end: 4,
  });
  // Whoever asked for more above 5 would never come to an end.
  const above: Ask = { op: 'read', range: { conversationId: 'conv_x', after: 5, limit: 2 } };
  for (const seq of [1.5, 2 ** 60, '7', null, 5])
    assert.throws(() => told(above, { data: [{ ...good, seq }], hasMore: true }), { message: /has a place/ });
  assert.deepEqual(told(above, { data: [null, { ...good, seq: 5 }], hasMore: false }), {
    data: [],
    hasMore: false,
  });
});

test('docs/storage.md, Safety: a page that is none fails', () => {
  for (const value of [7, [], { data: [good] }, { data: 'x', hasMore: false }, { data: [], hasMore: 'x' }])
    assert.throws(() => told(read, value), { name: 'HistoryError' });
  assert.throws(() => told(read, { data: [good, good, good, good], hasMore: false }), {
    message: /more messages than were asked for/,
  });
});

test('docs/storage.md, Safety: growth is laid to who received more than half of all bytes, or to nobody', () => {
  const of = (...received: number[]) => mainOf(new Map(received.map((bytes, i) => [i + 1, bytes])));
  assert.deepEqual([of(), of(0, 0), of(5, 5), of(4, 3, 3)], [0, 0, 0, 0]);
  assert.deepEqual([of(7), of(2, 7, 3), of(0, 1)], [1, 2, 2]);
});

/** The processes that a process started. */
async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.trim().split(' ').filter(Boolean).map(Number);
}
async function childOf(parent: number): Promise<number> {
  return eventually(async () => {
    for (const pid of await childrenOf(parent))
      if ((await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).includes('history/child.ts'))
        return pid;
    return null;
  }, 'the process of databases runs');
}

/** A process that works for one database all the time, because that never stops to send notices. */
async function busyProcess(time: StandingTime) {
  let notices = 0;
  const server = await startTcp((socket) => {
    socket.once('data', () => {
      const notice = pgMessage('N', Buffer.from('SNOTICE\0Mhello\0\0'));
      const sending = setInterval(() => (notices++, socket.write(notice)), 1);
      socket.on('close', () => clearInterval(sending)).on('error', () => undefined);
    });
  });
  const faults: string[] = [];
  const remote = createRemoteHistories({
    settings: { allowPrivate: true, dnsServers: [] },
    clock: time,
    timers: time.timers,
    logger: createLogger('silent'),
  });
  const url = `postgres://u:p@127.0.0.1:${server.port}/db?sslmode=disable`;
  const opened = await remote.open({ url }, { no: 1, id: 'env_a' }, (fault) => faults.push(fault));
  const asked = opened.get('msg_1').then(
    () => 'found',
    (error: Error) => error.message,
  );
  await eventually(() => Promise.resolve(notices > 50), 'it works for it');
  return {
    faults,
    asked,
    pid: await childOf(process.pid),
    close: async () => {
      await remote.close();
      await server.close();
    },
  };
}

test('docs/storage.md, Safety: no database is blamed for a process that the system or the operator killed', async (t) => {
  const { pid, faults, asked, close } = await busyProcess(new StandingTime());
  t.after(close);
  process.kill(pid, 'SIGKILL');
  assert.match(await asked, /was replaced/);
  assert.deepEqual(faults, []);
});

test('docs/storage.md, Safety: no database is blamed for a process that gets no time', async (t) => {
  const time = new StandingTime();
  const { pid, faults, asked, close } = await busyProcess(time);
  t.after(close);
  process.kill(pid, 'SIGSTOP');
  for (let i = 0; i < 70 && existsSync(`/proc/${pid}`); i++) await time.pass(1_000);
  await eventually(() => Promise.resolve(!existsSync(`/proc/${pid}`)), 'the process is killed');
  await asked;
  assert.deepEqual(faults, []);
});

const secret = 'the-operators-own-password';
const home = use(
  async () => {
    const path = await mkdtemp(join(tmpdir(), 'parley-home-'));
    await writeFile(join(path, '.pgpass'), `*:*:*:*:${secret}\n`, { mode: 0o600 });
    return { path };
  },
  ({ path }) => rm(path, { recursive: true }),
);
const ours = () => ({
  PGPASSWORD: secret,
  PGUSER: secret,
  USER: secret,
  PGOPTIONS: `-c search_path=${secret}`,
  PGAPPNAME: secret,
  PGDATABASE: secret,
  PGPASSFILE: join(home.path, '.pgpass'),
  HOME: home.path,
  AWS_SECRET_ACCESS_KEY: secret,
  HTTPS_PROXY: `http://${secret}@127.0.0.1:9`,
  CHAT_ALLOW_PRIVATE_TARGETS: 'true',
});

test('docs/storage.md, Safety: a database that asks for a password in clear gets nothing of the operator’s', async () => {
  const service = await startService({ env: ours() });
  let heard = '';
  const listening = (socket: Socket) => {
    socket.on('data', (data) => {
      heard += data.toString('latin1');
      // AuthenticationCleartextPassword.
      socket.write(pgMessage('R', int32(3)));
    });
  };
  const server = await startTcp(listening);
  const db = await openDb(service);
  try {
    const { api } = await openStorage(service, db);
    const put = (url: string) => api('PUT', '/v1/storage/database/a', { url });
    const at = `127.0.0.1:${server.port}/db?sslmode=disable`;
    const nobody = await put(`postgres://${at}`);
    assert.deepEqual([nobody.status, nobody.body.error.param], [400, 'url']);
    assert.match(nobody.body.error.message, /must name a user/);
    assert.equal((await put(`mysql://127.0.0.1:${server.port}/db?tls=false`)).status, 400);
    assert.equal((await put(`postgres://their-user@${at}`)).status, 200);
    assert.equal((await api('POST', '/v1/storage/database/test', { slot: 'a' })).body.ok, false);
    assert.match(heard, /their-user/);
    assert.ok(!heard.includes(secret), heard);
    const child = await childOf(service.process.pid!);
    assert.equal(await readFile(`/proc/${child}/environ`, 'utf8'), '');
    assert.equal(await readlink(`/proc/${child}/cwd`), '/');
  } finally {
    await db.close();
    await server.close();
    await service.dispose();
  }
});

test('docs/storage.md, Safety: the process ends with the service, however that ends, and while it hangs too', async () => {
  const silent = await startPostgresDouble(Buffer.alloc(0));
  const hanging = await hostileCases['PostgreSQL: an error without its end']!();
  const hashing = await hostileCases['MongoDB: SCRAM with two billion iterations']!();
  for (const [signal, { url, connections }] of [
    ['SIGTERM', silent],
    ['SIGKILL', hanging],
    ['SIGKILL', hashing],
  ] as const) {
    const service = await startService({ env: { CHAT_ALLOW_PRIVATE_TARGETS: 'true' } });
    const db = await openDb(service);
    try {
      const { api } = await openStorage(service, db);
      await api('PUT', '/v1/storage/database/a', { url });
      const tried = api('POST', '/v1/storage/database/test', { slot: 'a' }).catch(() => undefined);
      await eventually(() => Promise.resolve(connections() > 0), 'it connects');
      const child = await childOf(service.process.pid!);
      await db.close();
      service.process.kill(signal);
      await eventually(() => Promise.resolve(!existsSync(`/proc/${child}`)), 'the process is gone');
      await tried;
    } finally {
      await service.dispose();
    }
  }
  for (const server of [silent, hanging, hashing]) await server.close();
});

/** A way to a database that may lead to another one, which harms who reads it. */
async function relay(url: string) {
  const { port } = new URL(url);
  const open = new Set<Socket>();
  const state = { hostile: false, harmed: 0 };
  const server = await startTcp((near) => {
    open.add(near);
    near.on('close', () => open.delete(near));
    if (state.hostile) {
      state.harmed += 1;
      near.once('data', () => near.write(pgMessage('R', int32(99))));
      return;
    }
    const far = connect({ host: '127.0.0.1', port: Number(port) });
    far.on('error', () => near.destroy()).on('close', () => near.destroy());
    near.on('close', () => far.destroy());
    near.pipe(far).pipe(near);
  });
  return {
    state,
    close: server.close,
    url: url.replace(`:${port}/`, `:${server.port}/`),
    turn(hostile: boolean) {
      state.hostile = hostile;
      for (const socket of open) socket.destroy();
    },
  };
}

const customer = use(startCustomerPostgres, (it) => it.stop());

test('docs/storage.md, Safety: a slot whose database stopped the process twice is set aside, also after a restart, until it is tried by hand', async () => {
  const way = await relay(await customer.createDatabase());
  let service = await startService({ env: { CHAT_ALLOW_PRIVATE_TARGETS: 'true' } });
  let db = await openDb(service);
  try {
    let world = await openStorage(service, db);
    await world.connect(way.url);
    const scene = createScene(service.url);
    const ann = await scene.actor();
    const { id } = await scene.group(ann, []);
    way.turn(true);
    await scene.send(ann, id);
    const set = await eventually(async () => {
      const { sink } = await world.record();
      return /set aside/.test(sink.error ?? '') ? sink : null;
    }, 'the slot is set aside');
    assert.match(set.error, /twice within an hour\. It is tried again at 20/);
    assert.match(service.output(), /is set aside: it stopped the process/);
    assert.equal(way.state.harmed, 2, 'it was connected to twice');
    await db.close();
    await service.stop();
    service = await service.restart();
    db = await openDb(service);
    world = await openStorage(service, db);
    // Every turn of the sink says so, without a connection.
    await db.query(`UPDATE storage SET error = NULL, due_at = '-infinity'`);
    await eventually(async () => {
      const [row] = await db.query<{ error: string | null }>('SELECT error FROM storage');
      return row!.error?.includes('set aside');
    }, 'the sink has had a turn after the restart');
    assert.equal(way.state.harmed, 2, 'nothing connects to it');
    const [slot] = await parley(service, 'storage', 'list', 'env_dev');
    assert.deepEqual([slot.slot, slot.active], ['a', true]);
    assert.match(slot.aside, /^20/);
    assert.match(slot.url, /:\*\*\*@/);

    // Its test still harms: it stays aside.
    const tested = await world.api('POST', '/v1/storage/database/test', {});
    assert.equal(tested.body.ok, false);
    assert.match((await world.record()).sink.error, /set aside/);

    way.turn(false);
    const { body } = await world.api('POST', '/v1/storage/database/test', {});
    assert.equal(body.ok, true, JSON.stringify(body));
    await world.settled();
    await eventually(async () => (await world.record()).sink.error === null, 'the sink has no error');

    // The operator's word counts more than a test.
    await parley(service, 'storage', 'set-aside', 'env_dev', 'a');
    const refused = await world.api('POST', '/v1/storage/database/test', {});
    assert.equal(refused.body.ok, false);
    assert.match(refused.body.errors[0], /set aside: the operator/);
    await parley(service, 'storage', 'retry', 'env_dev', 'a');
    assert.equal((await world.api('POST', '/v1/storage/database/test', {})).body.ok, true);
    const audit = await parley(service, 'audit', 'list', 'env_dev', '--action', 'storage.setAside');
    assert.equal(audit.length, 1);
  } finally {
    await db.close();
    await service.dispose();
    await way.close();
  }
});
