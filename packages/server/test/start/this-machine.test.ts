import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { parley } from '../support/cli.ts';
import { createApi } from '../support/api.ts';
import { startService } from '../support/service.ts';
import type { Service } from '../support/service.ts';
import { connect as connectSocket, open } from '../support/socket.ts';
import { devToken } from '../support/tokens.ts';
import { useService } from '../support/use.ts';

/** identity#this-machine: what an unconfigured first start makes by itself is for this machine only. */

const token = devToken({ sub: 'anybody' });

const start = (env: Record<string, string> = {}): Promise<Service> =>
  startService({ env: { CHAT_BOOTSTRAP_ENVIRONMENTS: '', ...env } });

/** Sends the lines as they are and reads all that comes back. */
async function raw(service: Service, lines: string[]): Promise<string> {
  const socket = connect(service.port, '127.0.0.1');
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  return text(socket);
}

interface Asked {
  path?: string;
  host?: string;
  headers?: string[];
  version?: string;
}

/** A request as a proxy, or whoever pretends not to be one, could send it. */
const ask = (
  service: Service,
  { path = '/', host = `127.0.0.1:${service.port}`, headers = [], version = '1.1' }: Asked,
): Promise<string> =>
  raw(service, [
    `GET ${path} HTTP/${version}`,
    ...(host === '' ? [] : [`Host: ${host}`]),
    'Connection: close',
    ...headers,
  ]);

const loud = /SOMEBODY ASKED FOR THE DEMO/g;
const environmentOf = (service: Service): string => /environment +(env_\w+)/.exec(service.output())![1]!;

/** What tells that a request was not made here, or may have been made elsewhere. */
const elsewhere: Record<string, Asked> = {
  'the name of the public site': { host: 'chat.example.com' },
  'a name that only begins like this machine': { host: 'localhost.example.com' },
  'a name that only ends like it': { host: 'evil.localhost' },
  'a name with a user before it': { host: 'localhost@evil.example.com' },
  'another address': { host: '192.168.0.7:8080' },
  'an address that only begins like one': { host: '127.0.0.1.example.com' },
  'X-Forwarded-For': { headers: ['X-Forwarded-For: 127.0.0.1'] },
  'X-Forwarded-Proto': { headers: ['X-Forwarded-Proto: https'] },
  'X-Forwarded-Host': { headers: ['x-forwarded-host: localhost'] },
  Forwarded: { headers: ['Forwarded: for=127.0.0.1'] },
  Via: { headers: ['Via: 1.1 proxy'] },
  'X-Real-IP': { headers: ['X-Real-IP: 127.0.0.1'] },
  'an empty X-Forwarded-For': { headers: ['X-Forwarded-For:'] },
  'the header of a content network': { headers: ['CF-Connecting-IP: 203.0.113.7'] },
  'the page of another site': { headers: ['Origin: https://chat.example.com'] },
  'a page without a site': { headers: ['Origin: null'] },
  'HTTP/1.0, which proxies speak by default': { version: '1.0' },
  'HTTP/1.0 without Host': { version: '1.0', host: '' },
};

describe('identity#this-machine: the environment of an unconfigured first start', () => {
  const { service, sql } = useService({ start: (env) => start(env) });
  const withToken = (
    asked: Asked,
    path = `/v1/conversations?env=${environmentOf(service)}`,
  ): Promise<string> =>
    ask(service, { ...asked, path, headers: [`Authorization: Bearer ${token}`, ...(asked.headers ?? [])] });

  it('takes unsigned tokens from this machine, and shows the demo', async () => {
    const id = environmentOf(service);
    for (const host of ['127.0.0.1', 'localhost', `localhost:${service.port}`, 'LOCALHOST', '[::1]:8080']) {
      assert.match(await withToken({ host }), /^HTTP\/1\.1 200 /, host);
      assert.ok((await ask(service, { host })).includes(id), host);
    }
    assert.match(await withToken({ headers: ['Origin: http://localhost:5173'] }), /^HTTP\/1\.1 200 /);
    const socket = await connectSocket(service, token, { env: id });
    socket.ws.close();
    assert.doesNotMatch(service.output(), loud);
  });

  for (const [name, asked] of Object.entries(elsewhere))
    it(`is closed to others: ${name}`, async () => {
      const id = environmentOf(service);
      const inQuery = await withToken(asked);
      assert.match(inQuery, /^HTTP\/1\.1 403 /);
      assert.match(inQuery, /"code":"dev_tokens_disabled"/);
      const inHeader = await withToken(
        { ...asked, headers: [`Chat-Env: ${id}`, ...(asked.headers ?? [])] },
        '/v1/conversations',
      );
      assert.match(inHeader, /"code":"dev_tokens_disabled"/);
      for (const path of ['/', '/connection-test']) {
        const page = await ask(service, { ...asked, path });
        assert.match(page, /^HTTP\/1\.1 200 [^]*for the machine that Parley runs on/, path);
        assert.ok(!page.includes(id), path);
      }
    });

  it('is closed to a target that names another host than Host does', async () => {
    for (const target of ['http://chat.example.com', `http://127.0.0.1:${service.port}`]) {
      const answer = await withToken({}, `${target}/v1/conversations?env=${environmentOf(service)}`);
      assert.doesNotMatch(answer, /^HTTP\/1\.1 200 /);
    }
  });

  it('closes sockets of others with 4003', async () => {
    const id = environmentOf(service);
    for (const headers of [
      { 'x-forwarded-for': '203.0.113.7' },
      { host: 'chat.example.com' },
      { origin: 'https://evil.example.com' },
    ] as Record<string, string>[]) {
      const socket = open(service, { env: id, headers });
      await socket.opened;
      socket.send('auth', { token });
      assert.equal((await socket.closed).code, 4003);
    }
  });

  it('leaves no user behind for who was refused, and takes signed tokens from anywhere', async () => {
    const id = environmentOf(service);
    const stranger = devToken({ sub: 'stranger' });
    const refused = createApi(service.url, stranger, { 'chat-env': id, via: '1.1 proxy' });
    assert.equal((await refused('POST', '/v1/uploads', {})).body.error.code, 'dev_tokens_disabled');
    assert.deepEqual(await sql(`SELECT 1 FROM users WHERE id = 'stranger'`), []);
    const key = /sk_live_\w+/.exec(service.output())![0];
    const { body } = await createApi(service.url, key)('POST', '/v1/tokens', { userId: 'known' });
    const known = createApi(service.url, body.token, { via: '1.1 proxy' });
    assert.equal((await known('GET', '/v1/conversations')).status, 200);
  });

  it('the log says it once, and what to set', () => {
    assert.equal(service.output().match(loud)?.length, 1);
    assert.match(service.output(), /set CHAT_ORIGIN and CHAT_TRUST_PROXY/);
  });

  it('is opened by the operator alone', async () => {
    const id = environmentOf(service);
    assert.equal((await parley(service, 'env', 'set', id, '--local', 'false')).local, false);
    assert.match(await withToken({ headers: ['Via: 1.1 proxy'] }), /^HTTP\/1\.1 200 /);
    assert.equal((await parley(service, 'env', 'set', id, '--local', 'true')).local, true);
    assert.match(await withToken({ headers: ['Via: 1.1 proxy'] }), /^HTTP\/1\.1 403 /);
  });
});

describe('identity#this-machine: stores of earlier first starts', () => {
  const { service, sql } = useService({ start: (env) => start(env) });
  it('the environment that they made is marked; one that somebody made later is not', async () => {
    const file = new URL('../../migrations/0055_local_environments.sql', import.meta.url);
    const [, mark] = (await readFile(file, 'utf8')).split(/^(?=UPDATE )/m);
    await parley(service, 'env', 'create', '--name', 'Try', '--kind', 'development');
    await sql('UPDATE environments SET local = false');
    await sql(mark!);
    const rows = await sql('SELECT id, local FROM environments ORDER BY no');
    assert.deepEqual(
      rows.map((row) => row['local']),
      [true, false],
    );
  });
});

describe('identity#this-machine: where a proxy is named', () => {
  for (const [name, value] of [
    ['CHAT_TRUST_PROXY', 'true'],
    ['CHAT_ORIGIN', 'https://chat.example.com'],
  ] as const)
    it(`the first start makes an environment of production, and a later one closes that of this machine: ${name}`, async () => {
      const env = { [name]: value };
      const first = await start(env);
      try {
        assert.match(first.output(), /environment +env_\w+ \(production\)/);
      } finally {
        await first.dispose();
      }
      const service = await start();
      try {
        const id = environmentOf(service);
        await service.stop();
        const later = await startService({ env: { ...service.env, ...env }, dataDir: service.dataDir });
        const here = createApi(later.url, token, { 'chat-env': id });
        assert.equal((await here('GET', '/v1/conversations')).body.error.code, 'dev_tokens_disabled');
        await later.stop();
      } finally {
        await service.dispose();
      }
    });
});

describe('identity#this-machine: a development environment that somebody made on purpose', () => {
  const { service } = useService({ own: true });
  it('takes unsigned tokens from anywhere, and the start says so', async () => {
    const api = createApi(service.url, token, { 'chat-env': 'env_dev', 'x-forwarded-for': '203.0.113.7' });
    assert.equal((await api('GET', '/v1/conversations')).status, 200);
    assert.match(service.output(), /env_dev takes unsigned tokens: ANYBODY CAN BE ANYBODY there/);
    assert.match(service.output(), /ANYBODY WHO REACHES THIS SERVICE CAN BE ANY USER/);
  });

  it('is one that an organization makes in the dashboard or on the command line', async () => {
    const made = await parley(service, 'env', 'create', '--name', 'Try', '--kind', 'development');
    assert.equal(made.local, false);
    const api = createApi(service.url, token, { 'chat-env': made.id, via: '1.1 proxy' });
    assert.equal((await api('GET', '/v1/conversations')).status, 200);
  });
});
