import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pause, withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { Actor } from '../neighbours/actor.ts';
import type { AttackerHandlers } from '../neighbours/attacker.ts';
import { chosen } from '../neighbours/attacks/all.ts';
import type { Row } from '../neighbours/attacks/all.ts';
import { startHooks } from '../neighbours/hooks.ts';
import type { Hooks } from '../neighbours/hooks.ts';
import type { Target } from '../neighbours/kit.ts';
import { checkLedger } from '../neighbours/ledger.ts';
import type { Stored, Verdict } from '../neighbours/ledger.ts';
import { knownName, resolverAddress, startResolver } from '../neighbours/resolver.ts';
import { neighboursTable, ratioOf, usageText } from '../neighbours/table.ts';
import type { Measured, Round, Usage } from '../neighbours/table.ts';
import type { VictimHandlers, VictimReport } from '../neighbours/victim.ts';
import { usageOf } from '../procfs.ts';
import { api, tenants } from '../servers/parley.ts';
import type { Parley, RunningParley } from '../servers/parley.ts';
import { groups, loners } from '../servers/server.ts';
import { format, median } from '../stats.ts';

/**
 * Two tenants in one service: one does what a client can do to it, the other measures its sends before, meanwhile and after.
 * `neighbours` takes one attack at a time, `abuse` all at once.
 */

const [victimTenant, attackerTenant, developmentTenant] = tenants as [Tenant, Tenant, Tenant];
type Tenant = (typeof tenants)[number];

const plan = groups('victim', 40, 10);
const visitors = loners('visitor', 5);
const sendsPerSecond = 100;
const warmMs = 3_000;
const sampleMs = 200;
/** What the attacker computes is no doing of the service: on a small machine it must not take the victim's time. */
const attackerNice = 10;
/** Few enough for a handful of clients to exhaust. */
const descriptors = 4_096;
const strikeGraceMs = 60_000;

const environment = {
  CHAT_BOOTSTRAP_ENVIRONMENTS: JSON.stringify([
    { ...victimTenant, kind: 'production', plan: 'enterprise' },
    { ...attackerTenant, kind: 'production', plan: 'growth' },
    { ...developmentTenant, kind: 'development', plan: 'growth' },
  ]),
};
const limited = ['sh', '-c', `ulimit -n ${descriptors}; exec "$@"`, 'sh'];

/** A service whose names are resolved by our resolver, which is the only one it can ask: in a mount namespace of its own. */
async function withResolver(bench: Bench, name: string): Promise<Parley> {
  const file = join(bench.directory, 'resolv.conf');
  await writeFile(file, `nameserver ${resolverAddress}\n`);
  const mount = ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /etc/resolv.conf; exec "$@"', file];
  return bench.freshParley(name, environment, [...mount, ...limited]);
}

export async function neighbours(bench: Bench): Promise<void> {
  const parley = bench.freshParley('neighbours', environment, limited);
  const measured: Measured[] = [];
  for (const row of chosen(bench.options.only)) {
    const result: Measured = {
      id: row.id,
      what: row.what,
      of: row.webhooks ? 'webhook' : 'send',
      rounds: [],
    };
    for (let round = 0; round < bench.options.rounds; round++)
      try {
        result.rounds.push(await measureRow(bench, row, parley, round));
      } catch (error) {
        const why = error instanceof Error ? error.message.split('\n')[0] : String(error);
        bench.results.note(`neighbours, row ${row.id} failed: ${why}`);
        bench.say(`row ${row.id}: ${error instanceof Error ? error.stack : String(error)}`);
      }
    if (result.rounds.length > 0) measured.push(result);
  }
  process.stdout.write(`\n${neighboursTable(measured)}\n`);
}

async function measureRow(bench: Bench, row: Row, parley: Parley, round: number): Promise<Round> {
  const { windowMs } = bench.options;
  const resolver = row.webhooks ? await startResolver() : null;
  const server = resolver ? await withResolver(bench, `row${row.id}-${round}`) : parley;
  try {
    let measured: Round | undefined;
    await withRunning(bench, server, async (running) => {
      measured = await measure(bench, running, {
        ...{
          label: `row ${row.id}`,
          webhooks: row.webhooks ?? false,
          baselineMs: windowMs,
          afterMs: windowMs,
          resource: row.resource,
        },
        prepare: (attacker, target) => attacker.ask('prepare', { id: row.id, target }),
        strike: async (attacker) => (await attacker.ask('strike', { id: row.id, ms: windowMs })).text,
        strikeMs: windowMs,
      });
    });
    const { baseline, attack, after } = measured!;
    bench.say(
      `row ${row.id}: p50 ${format(baseline.p50)} → ${format(attack.p50)} → ${format(after.p50)} ms, ` +
        `p99 ${format(baseline.p99)} → ${format(attack.p99)} → ${format(after.p99)} ms; ${usageText([measured!])}; logins p99 ${format(measured!.logins.before)} → ${format(measured!.logins.during)} ms, ` +
        `${measured!.logins.failed} failed; ${measured!.did}`,
    );
    return measured!;
  } finally {
    resolver?.stop();
  }
}

interface Plan {
  label: string;
  webhooks: boolean;
  baselineMs: number;
  strikeMs: number;
  afterMs: number;
  resource?: Row['resource'];
  prepare(attacker: Actor<AttackerHandlers>, target: Target): Promise<void>;
  strike(attacker: Actor<AttackerHandlers>, target: Target): Promise<string>;
}

/** The three phases, each with the same victim. */
async function measure(bench: Bench, running: RunningParley, how: Plan): Promise<Round> {
  const victim = new Actor<VictimHandlers>(new URL('../neighbours/victim.ts', import.meta.url));
  const attacker = new Actor<AttackerHandlers>(
    new URL('../neighbours/attacker.ts', import.meta.url),
    attackerNice,
  );
  const hooks = how.webhooks ? await startHooks() : null;
  const sampler = new Sampler(running.gateway);
  try {
    const target: Target = {
      port: running.port,
      tenant: attackerTenant,
      development: developmentTenant,
      store: await running.store(),
    };
    const accounts = await running.accounts(plan, victimTenant);
    if (hooks)
      await api(running.url, victimTenant.secretKey)('POST', '/v1/webhooks', {
        url: `http://${knownName}:${hooks.port}/`,
        events: ['message.created'],
      });
    await how.prepare(attacker, target);
    await victim.ask('open', {
      ...{ port: running.port, perSecond: sendsPerSecond, accounts },
      visitors: await running.accounts(visitors, victimTenant),
    });
    await pause(warmMs);
    const phase = async (): Promise<void> => {
      await victim.ask('phase', undefined);
      hooks?.phase();
      sampler.phase();
    };
    const counted = async (): Promise<number> => {
      if (typeof how.resource !== 'object') return 0;
      return Number(((await running.sql(how.resource.sql)).rows[0] as { n: string }).n);
    };
    await phase();
    await pause(how.baselineMs);
    const before = await counted();
    await phase();
    const late = pause(how.strikeMs + strikeGraceMs).then(() => {
      throw new Error('the attack did not end in time');
    });
    const [did] = await Promise.all([
      Promise.race([how.strike(attacker, target), late]),
      pause(how.strikeMs), // one that ends early is still felt
    ]);
    late.catch(() => undefined);
    const after = await counted();
    await phase();
    await pause(how.afterMs);
    sampler.stop();
    const report = await victim.ask('finish', undefined);
    const usage = sampler.usage(how.resource === 'descriptors');
    if (typeof how.resource === 'object')
      usage.push({ name: how.resource.name, unit: how.resource.unit, before, during: after, after });
    return await judge(bench, running, { label: how.label, report, did, usage, hooks });
  } finally {
    sampler.stop();
    hooks?.stop();
    await Promise.all([victim.stop(), attacker.stop()]);
  }
}

interface Outcome {
  label: string;
  report: VictimReport;
  did: string;
  usage: Usage[];
  hooks: Hooks | null;
}

/** Checks that nothing was lost; what was is noted. */
async function judge(bench: Bench, running: RunningParley, outcome: Outcome): Promise<Round> {
  const { label, report, did, usage, hooks } = outcome;
  const verdict = checkLedger(report.acknowledged, await storedMessages(running));
  const bad = wrong(verdict, report);
  if (bad !== '') {
    bench.results.failed = true;
    bench.results.note(`${label}: ${bad}`);
  }
  const [, baseline, attack, after] = report.phases as [unknown, ...VictimReport['phases']];
  if (report.firstError !== '')
    bench.results.note(`${label}: the victim was told ${report.firstError.slice(0, 200)}`);
  const sends = { baseline: baseline!.send, attack: attack!.send, after: after!.send };
  const refused = attack!.refused + after!.refused;
  const logins = {
    before: baseline!.login.p99,
    during: attack!.login.p99,
    failed: attack!.failedLogins,
  };
  const common = { refused, unanswered: report.unanswered, did, logins, usage };
  if (!hooks) return { ...sends, ...common };
  // The warm-up counts too: all that was acknowledged is to be delivered.
  const unanswered = report.acknowledged.length - hooks.seen();
  const [, ...latencies] = hooks.report(unanswered);
  const [first, second, third] = latencies as [Round['baseline'], Round['baseline'], Round['baseline']];
  return { baseline: first, attack: second, after: third, ...common, unanswered };
}

const wrong = (verdict: Verdict, report: VictimReport): string =>
  [
    [verdict.missing, 'acknowledged messages are not in the store'],
    [verdict.doubled, 'messages are in the store twice'],
    [verdict.outOfOrder, 'messages are stored before earlier ones of their sender'],
    [report.disorder, 'events came out of turn'],
  ]
    .filter(([count]) => count !== 0)
    .map(([count, what]) => `${count} ${what}`)
    .join(', ');

/** The victim's conversations as its own server reads them. */
async function storedMessages(running: RunningParley): Promise<Stored[]> {
  const call = api(running.url, victimTenant.secretKey);
  const rooms = new Set((await running.accounts(plan, victimTenant)).map((a) => a.speaks!));
  const stored: Stored[] = [];
  for (const cid of rooms)
    for (let before = ''; ;) {
      const { data, hasMore } = (await call(
        'GET',
        `/v1/conversations/${cid}/messages?limit=200${before}`,
      )) as { data: { text: string | null; seq: number }[]; hasMore: boolean };
      stored.push(...data.map(({ text, seq }) => ({ cid, text, seq })));
      if (!hasMore) break;
      before = `&before=${data.at(-1)!.seq}`;
    }
  return stored;
}

/** Memory and descriptors of the service over the phases. */
class Sampler {
  readonly #phases: { rss: number; descriptors: number }[][] = [[]];
  readonly #timer: NodeJS.Timeout;

  constructor(pid: number) {
    this.#timer = setInterval(() => this.#phases.at(-1)!.push(usageOf(pid)), sampleMs);
  }

  phase(): void {
    this.#phases.push([]);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  usage(withDescriptors: boolean): Usage[] {
    const [, baseline = [], attack = [], after = []] = this.#phases;
    const of = (
      name: string,
      unit: string,
      value: (sample: { rss: number; descriptors: number }) => number,
    ) => ({
      ...{ name, unit },
      before: median(baseline.map(value)),
      during: Math.max(...attack.map(value)),
      after: value(after.at(-1) ?? { rss: NaN, descriptors: NaN }),
    });
    const rss = of('RSS', 'MB', (s) => s.rss / 1_024);
    return withDescriptors ? [rss, of('descriptors', '', (s) => s.descriptors)] : [rss];
  }
}

/** What the victim may feel of all at once: its p99 to its baseline, and the memory a minute later to that before. */
const mostRatio = 5;
const mostMemory = 1.2;

export async function abuse(bench: Bench): Promise<void> {
  const { windowMs } = bench.options;
  const resolver = await startResolver();
  const rows = chosen(bench.options.only);
  try {
    await withRunning(bench, await withResolver(bench, 'abuse'), async (running) => {
      const round = await measure(bench, running, {
        ...{
          label: 'abuse',
          webhooks: false,
          baselineMs: Math.min(30_000, windowMs),
          strikeMs: windowMs,
          afterMs: 60_000,
        },
        // One after the other: later ones must not wait for what earlier ones do.
        prepare: async (attacker, target) => {
          for (const { id } of rows) await attacker.ask('prepare', { id, target });
        },
        strike: async (attacker, target) => {
          const one = async ({ id }: Row): Promise<string> => {
            const { text } = await attacker.ask('persist', { id, target, ms: windowMs });
            bench.say(`row ${id}: ${text}`);
            return `${id}: ${text}`;
          };
          await Promise.all(rows.map(one));
          return `all at once for ${windowMs / 1_000} s`;
        },
      });
      const all = { id: 'all', what: 'all at once', of: 'send' as const, rounds: [round] };
      process.stdout.write(`\n${neighboursTable([all])}\n`);
      const ratio = ratioOf([round], 'p99').median;
      const memory = round.usage[0]!.after / round.usage[0]!.before;
      const met = (what: string, ok: boolean): void => {
        process.stdout.write(`${ok ? 'met' : 'NOT MET'}: ${what}\n`);
        if (!ok) bench.results.failed = true;
      };
      met('nothing lost, nothing twice, all in order', !bench.results.failed);
      met(`p99 of sends ${format(ratio)} times its baseline, at most ${mostRatio}`, ratio <= mostRatio);
      met(
        `memory a minute later ${format(memory)} times that before, at most ${mostMemory}`,
        memory <= mostMemory,
      );
    });
  } finally {
    resolver.stop();
  }
}
