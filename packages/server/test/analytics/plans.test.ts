import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import pg from 'pg';
import { plans } from '@parley/protocol';
import { parsePlans } from '../../src/features/plans/table.ts';
import { assertError, createApi } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import type { Actor } from '../support/scene.ts';
import { startService } from '../support/service.ts';
import { connect, open } from '../support/socket.ts';
import { devToken } from '../support/tokens.ts';
import { openDb, use, useService } from '../support/use.ts';
import { startInProcess } from '../cluster/in-process.ts';
import type { InProcess } from '../cluster/in-process.ts';
import { startParts, until } from '../cluster/nodes.ts';
import { start } from '../calls/tools.ts';
import { startSmtp } from '../webhooks/smtp.ts';

test('plans#mau: mauLimit over two nodes is passed by none but users who act at the same moment; whoever is counted goes on, others wait for a larger plan', async () => {
  const parts = await startParts();
  const [a, b] = (await startInProcess(parts.env, 2, {
    plans: { ...plans, free: { ...plans.free, mauLimit: 5 } },
  })) as [InProcess, InProcess];
  const pool = new pg.Pool({ connectionString: parts.env['DATABASE_URL'], max: 1 });
  const setPlan = (plan: string) =>
    pool.query(`UPDATE environments SET plan = $1 WHERE id = 'env_prod'`, [plan]);
  try {
    const scene = createScene(a.url, 'prod');
    const people = await Promise.all(Array.from({ length: 16 }, () => scene.actor()));
    const group = await scene.group(people[0]!, people);
    // On both nodes: a third connects, a third sends, a third reads. Three at a time.
    const tries: number[] = [];
    const act = async (person: Actor, i: number): Promise<number> => {
      const node = i % 2 ? b : a;
      if (i % 3 === 0)
        return connect(node, scene.token(person)).then(
          () => 200,
          () => 429,
        );
      const api = createApi(node.url, scene.token(person));
      const path = `/v1/conversations/${group.id}`;
      const answer =
        i % 3 === 1
          ? await api('POST', `${path}/messages`, { clientMsgId: randomUUID(), text: 'x' })
          : await api('POST', `${path}/read`, { seq: 1 });
      if (answer.status === 429) assertError(answer, 429, 'plan_limit_reached');
      return answer.status === 429 ? 429 : 200;
    };
    for (let i = 0; i < people.length; i += 3)
      tries.push(...(await Promise.all(people.slice(i, i + 3).map((person, k) => act(person, i + k)))));
    const active = tries.filter((status) => status === 200).length;
    assert.ok(active >= 5 && active <= 7, JSON.stringify(tries));
    const totals = async () => (await scene.server('GET', '/v1/analytics')).body.totals;
    assert.equal((await totals()).mauThisMonth, active);
    assert.equal((await totals()).activeUsers, active);
    const counted = people[tries.indexOf(200)]!;
    const refused = people[tries.indexOf(429)]!;
    for (let i = 0; i < 3; i++) await scene.send(counted, group.id);
    await (await connect(b, scene.token(counted))).close();
    // A send that fails for another reason counts nobody.
    const socket = open(b);
    await socket.opened;
    socket.send('auth', { token: scene.token(refused) });
    const { code, reason } = await socket.closed;
    assert.equal(code, 4008);
    assert.ok(JSON.parse(reason).retryAfterMs > 0);
    assert.equal((await totals()).mauThisMonth, active);
    // Joining a call is acting, over REST alone too; what fails for another reason counts nobody.
    await pool.query(
      `INSERT INTO media_nodes (id, state, rtp_capabilities, lease_until) VALUES ('n', 'ready', '{"codecs":[]}', now() + interval '1 day')`,
    );
    const call = await start(counted, group.id);
    const join = (person: Actor, on: InProcess, id: string) =>
      createApi(on.url, scene.token(person))('POST', `/v1/calls/${id}/join`);
    assertError(await join(refused, a, call.id), 429, 'plan_limit_reached');
    // So is starting one, also where a server says who calls.
    const begin = { conversationId: group.id, kind: 'audio' };
    const starts = createApi(b.url, scene.token(refused))('POST', '/v1/calls', begin);
    assertError(await starts, 429, 'plan_limit_reached');
    const forRefused = { ...begin, callerId: refused.id };
    assertError(await scene.server('POST', '/v1/calls', forRefused), 429, 'plan_limit_reached');
    assert.equal((await join(counted, b, call.id)).status, 200);

    // A larger plan counts from the next request on, its key rate too.
    const before = await scene.server('GET', '/v1/usage');
    assert.equal(before.headers.get('RateLimit-Limit'), String(plans.free.secretKey.burst));
    await setPlan('starter');
    assertError(await join(refused, b, 'call_nope'), 404, 'not_found');
    assert.equal((await totals()).mauThisMonth, active);
    assert.equal((await join(refused, b, call.id)).status, 200);
    await (await connect(b, scene.token(refused))).close();
    const after = await scene.server('GET', '/v1/usage');
    assert.equal(after.headers.get('RateLimit-Limit'), String(plans.starter.secretKey.burst));
    assert.equal(after.body.plan.name, 'starter');
    assert.equal((await totals()).mauThisMonth, active + 1);
    // Back on the small one, those counted meanwhile still go on.
    await setPlan('free');
    await scene.send(refused, group.id);
  } finally {
    await pool.end();
    await Promise.all([a.stop(), b.stop()]);
    await parts.stop();
  }
});

describe('CHAT_PLANS', () => {
  test('changes what it names and nothing else, and says what is wrong by place', () => {
    const changed = parsePlans('{ "free": { "mauLimit": 7, "connectionLimit": null } }');
    assert.deepEqual(changed, { ...plans, free: { ...plans.free, mauLimit: 7, connectionLimit: null } });
    for (const [text, where] of [
      ['{', /not JSON/],
      ['{ "gold": {} }', /CHAT_PLANS/],
      ['{ "free": { "mauLimit": -1 } }', /free\.mauLimit/],
      ['{ "free": { "secretKey": { "perSecond": 0, "burst": 1 } } }', /free\.secretKey\.perSecond/],
      ['{ "free": { "nope": 1 } }', /free/],
    ] as const)
      assert.throws(() => parsePlans(text), where);
  });

  const folder = use(
    async () => ({ path: await mkdtemp(join(tmpdir(), 'parley-plans-')) }),
    ({ path }) => rm(path, { recursive: true }),
  );
  const file = (): string => join(folder.path, 'plans.json');
  const smtp = use(startSmtp, (s) => s.close());
  const { service } = useService({
    start: async (env) => {
      await writeFile(file(), '{ "free": { "mauLimit": 5 } }');
      return startService({ env: { ...env, CHAT_PLANS: file(), CHAT_SMTP_URL: smtp.url } });
    },
  });

  test('a change of the file counts within seconds, without a restart; a wrong one changes nothing', async () => {
    const prod = createScene(service.url, 'prod');
    const limit = async (): Promise<number> => (await prod.server('GET', '/v1/usage')).body.plan.mauLimit;
    assert.equal(await limit(), 5);
    await writeFile(file(), '{ "free": { "mauLimit": -5 } }');
    await until(() => Promise.resolve(service.output().includes('CHAT_PLANS.free.mauLimit')));
    assert.equal(await limit(), 5);
    await writeFile(file(), '{ "free": { "mauLimit": 10 } }');
    await until(async () => (await limit()) === 10);
  });

  test('the owner hears of 80 and of 100 percent, once a month each, and again in the next month', async () => {
    const prod = createScene(service.url, 'prod');
    const people = await Promise.all(Array.from({ length: 10 }, () => prod.actor()));
    const group = await prod.group(people[0]!, people);
    const mails = (text: string): string[] => smtp.mails.filter((mail) => mail.includes(text));
    const heard = async (text: string, times = 1): Promise<void> => {
      while (mails(text).length < times) await smtp.next();
    };
    for (const person of people.slice(0, 8)) await prod.send(person, group.id);
    await prod.server('GET', '/v1/analytics');
    await heard('80 percent');
    assert.match(mails('80 percent')[0]!, /To: owner@example\.com/);
    for (const person of people.slice(8)) await prod.send(person, group.id);
    await heard('100 percent of its monthly active users');
    assert.equal(mails(': 80 percent').length, 1);
    assert.equal(mails(': 100 percent').length, 1);
    const late = await prod.actor();
    const answer = await late.api('GET', '/v1/conversations');
    assert.equal(answer.status, 200, 'looking is not acting');

    // What was told is a month old now, while as many are active in this month.
    const db = await openDb(service);
    await db.query(`UPDATE plan_notices SET at = at - interval '1 month'`);
    await db.close();
    await heard(': 100 percent', 2);
    assert.equal(mails(': 80 percent').length, 1, 'one mail is enough for both');
  });
});

describe('the first environment of a self-hosted start', () => {
  const { service } = useService({
    start: (env) => startService({ env: { ...env, HOST: '0.0.0.0', CHAT_BOOTSTRAP_ENVIRONMENTS: '' } }),
  });
  test('has the plan enterprise: no ceilings', async () => {
    const key = /sk_live_\w+/.exec(service.output())?.[0];
    assert.ok(key, service.output());
    const { body } = await createApi(service.url, key)('GET', '/v1/usage');
    assert.deepEqual(body.plan, { name: 'enterprise', mauLimit: null, connectionLimit: null });
  });

  test('is one of production where others can reach it: nobody comes in unsigned, and no page names it', async () => {
    const [, id] = /environment +(env_\w+) \(production\)/.exec(service.output())!;
    assert.doesNotMatch(service.output(), /ANYBODY WHO REACHES/);
    const forged = createApi(service.url, devToken({ sub: 'anybody' }), { 'chat-env': id! });
    assertError(await forged('GET', '/v1/conversations'), 403, 'dev_tokens_disabled');
    const page = await fetch(service.url);
    assert.equal(page.status, 200);
    assert.ok(!(await page.text()).includes(id!));
  });
});
