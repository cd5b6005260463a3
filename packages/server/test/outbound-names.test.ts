import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { createOutbound, OutboundUnresolved } from '../src/platform/outbound/outbound.ts';
import { createResolver, NameTimeout } from '../src/platform/outbound/resolver.ts';
import type { ResolverBounds } from '../src/platform/outbound/resolver.ts';
import { startDns } from './support/dns.ts';
import type { Known } from './support/dns.ts';

const hour = 3_600_000;

async function start(t: TestContext, names: Record<string, Known>, bounds: Partial<ResolverBounds> = {}) {
  const dns = await startDns(names);
  t.after(() => dns.close());
  const time = { at: 1_000_000 };
  const resolver = createResolver({
    now: () => time.at,
    servers: [dns.address],
    bounds,
    hostsFile: '/nowhere',
  });
  t.after(() => resolver.close());
  return { dns, time, resolver, resolve: (host: string, tenant = 1) => resolver.resolve(host, tenant) };
}
const v4 = (address: string) => ({ address, family: 4 });
const v6 = (address: string) => ({ address, family: 6 });

test('the addresses of a name, IPv4 first; one family is enough', async (t) => {
  const { resolve } = await start(t, {
    'both.example': ['2606:4700::1111', '192.0.2.7', '192.0.2.8'],
    'four.example': ['192.0.2.7'],
    'six.example': ['2606:4700::1111'],
  });
  const both = await resolve('both.example');
  assert.deepEqual(both.at(-1), v6('2606:4700::1111'));
  assert.deepEqual(
    both.slice(0, 2).toSorted((a, b) => a.address.localeCompare(b.address)),
    [v4('192.0.2.7'), v4('192.0.2.8')],
  );
  assert.deepEqual(await resolve('FOUR.example.'), [v4('192.0.2.7')]);
  assert.deepEqual(await resolve('six.example'), [v6('2606:4700::1111')]);
  assert.deepEqual(await resolve('192.0.2.9'), [v4('192.0.2.9')], 'addresses are not looked up');
});

test('of a name with very many addresses, 32 are used', async (t) => {
  const many = Array.from({ length: 60 }, (_, n) => `192.0.2.${n + 1}`);
  const { resolve } = await start(t, { 'many.example': many });
  assert.equal((await resolve('many.example')).length, 32);
});

test('a family that never answers does not hold up the other', async (t) => {
  const { resolve } = await start(
    t,
    { 'half.example': { a: ['192.0.2.7'], aaaa: 'silent' } },
    { timeoutMs: hour },
  );
  assert.deepEqual(await resolve('half.example'), [v4('192.0.2.7')]);
});

test('a name that does not exist fails at once for 5 s, then is asked for again', async (t) => {
  const { dns, time, resolve } = await start(t, {});
  for (let i = 0; i < 5; i++) await assert.rejects(resolve('missing.example'), { code: 'ENOTFOUND' });
  assert.deepEqual(dns.asked, ['missing.example']);
  dns.names.set('missing.example', ['192.0.2.7']);
  time.at += 4_999;
  await assert.rejects(resolve('missing.example'));
  time.at += 1;
  assert.deepEqual(await resolve('missing.example'), [v4('192.0.2.7')]);
});

test('a name that never answers is given up in time, and fails at once for 30 s', async (t) => {
  const { dns, time, resolve } = await start(t, { 'silent.example': 'silent' }, { timeoutMs: 2_000 });
  await assert.rejects(resolve('silent.example'), NameTimeout);
  const asked = dns.asked.length;
  time.at += 29_999;
  await assert.rejects(resolve('silent.example'), NameTimeout);
  assert.equal(dns.asked.length, asked);
  dns.names.set('silent.example', ['192.0.2.7']);
  time.at += 1;
  assert.deepEqual(await resolve('silent.example'), [v4('192.0.2.7')]);
});

test('names that never answer stop neither other tenants nor files', async (t) => {
  const names: Record<string, Known> = { 'good.example': ['192.0.2.7'] };
  for (let i = 0; i < 32; i++) names[`silent-${i}.example`] = 'silent';
  const { resolve } = await start(t, names, { timeoutMs: 3_000 });
  const hanging = Array.from({ length: 32 }, (_, i) =>
    resolve(`silent-${i}.example`, 1).catch((error: unknown) => error),
  );
  let given = false;
  void Promise.any(hanging).then(() => (given = true));
  assert.deepEqual(await resolve('good.example', 2), [v4('192.0.2.7')]);
  assert.ok((await readFile(new URL(import.meta.url))).length > 0);
  assert.equal(given, false, 'none of them had been given up by then');
  for (const result of await Promise.all(hanging)) assert.ok(result instanceof NameTimeout);
});

test('what one tenant has waiting is bounded: more fail at once', async (t) => {
  const names: Record<string, Known> = {};
  for (let i = 0; i < 6; i++) names[`silent-${i}.example`] = 'silent';
  const { resolve } = await start(t, names, { timeoutMs: 500, perTenant: 2, waiting: 3 });
  const order: number[] = [];
  await Promise.all(Object.keys(names).map((host, i) => resolve(host).catch(() => void order.push(i))));
  assert.equal(order[0], 5, 'the one for which there was no place');
});

test('the table of names on the machine is honoured, and localhost is this machine', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'hosts-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const hostsFile = join(directory, 'hosts');
  await writeFile(hostsFile, '# a comment\n10.1.2.3  box.internal Box # more\n::9 box\nnonsense line\n');
  const dns = await startDns({});
  t.after(() => dns.close());
  const { resolve } = createResolver({ now: () => 0, servers: [dns.address], hostsFile });
  assert.deepEqual(await resolve('box.internal', 1), [v4('10.1.2.3')]);
  assert.deepEqual(await resolve('BOX', 1), [v4('10.1.2.3'), v6('::9')]);
  for (const name of ['localhost', 'api.localhost'])
    assert.deepEqual(await resolve(name, 1), [v4('127.0.0.1'), v6('::1')]);
  assert.deepEqual(dns.asked, []);
});

test('guard: what a name resolves to is checked, and one private address refuses it', async (t) => {
  const { resolver } = await start(t, {
    'inside.example': ['10.0.0.7'],
    'mixed.example': ['93.184.216.34', '::1'],
    'outside.example': ['93.184.216.34'],
  });
  const out = createOutbound({ allowPrivate: false, resolve: resolver.resolve });
  t.after(() => out.close());
  for (const host of ['inside.example', 'mixed.example', 'missing.example'])
    await assert.rejects(out.request({ url: `https://${host}/` }), OutboundUnresolved);
  assert.deepEqual(await out.resolve('outside.example', 1), [v4('93.184.216.34')]);
});

test('a name that failed a moment ago is known before anything is made for a request', async (t) => {
  const { resolver } = await start(t, { 'good.example': ['127.0.0.1'] });
  const out = createOutbound({ allowPrivate: true, resolve: resolver.resolve, failed: resolver.failed });
  t.after(() => out.close());
  assert.equal(out.failed('https://Missing.example./hook'), undefined, 'nobody has asked yet');
  await assert.rejects(out.resolve('missing.example'));
  assert.ok(out.failed('https://Missing.example./hook') instanceof OutboundUnresolved);
  await out.resolve('good.example');
  for (const url of ['https://good.example/', 'https://127.0.0.1/', 'nonsense'])
    assert.equal(out.failed(url), undefined);
});

test('a name that two tenants ask for is looked up in the turn of each: nobody waits for the other', async () => {
  const outbound = createOutbound({
    allowPrivate: true,
    resolve: (_host, tenant) =>
      tenant === 1 ? new Promise(() => undefined) : Promise.resolve([v4('192.0.2.7')]),
  });
  void outbound.resolve('shared.example', 1);
  assert.deepEqual(await outbound.resolve('shared.example', 2), [v4('192.0.2.7')]);
  outbound.close();
});
