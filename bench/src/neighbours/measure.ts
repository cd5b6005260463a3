import { pause } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { usageOf } from '../procfs.ts';
import { api, tenants } from '../servers/parley.ts';
import type { Parley, RunningParley, Tenant } from '../servers/parley.ts';
import { groups, loners } from '../servers/server.ts';
import { median } from '../stats.ts';
import { Actor } from './actor.ts';
import type { AttackerHandlers } from './attacker.ts';
import type { Row } from './attacks/all.ts';
import { startHooks } from './hooks.ts';
import type { Hooks } from './hooks.ts';
import type { Target } from './kit.ts';
import { checkLedger } from './ledger.ts';
import type { Stored, Verdict } from './ledger.ts';
import { knownName, startResolver } from './resolver.ts';
import type { Round, Usage } from './table.ts';
import type { VictimHandlers, VictimReport } from './victim.ts';

/** Two tenants in one service: what the victim feels before, while and after the attacker strikes. */

const [victimTenant, attackerTenant, developmentTenant] = tenants as [Tenant, Tenant, Tenant];

const plan = groups('victim', 40, 10);
const visitors = loners('visitor', 5);
const sendsPerSecond = 100;
/** Where webhooks are measured: few enough for a busy machine to deliver each over a connection of its own. */
const hookedSendsPerSecond = 20;
const warmMs = 3_000;
const sampleMs = 200;
/** What the attacker computes is no doing of the service: on a small machine it must not take the victim's time. */
const attackerNice = 19;
/** Nor must the victim, which measures, wait for the processor itself: its users have machines of their own. */
const victimNice = -10;
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

/** Services whose resolver knows the victim's name alone. */
export async function withServices(
  bench: Bench,
  work: (fresh: (name: string) => Parley) => Promise<void>,
): Promise<void> {
  const resolver = await startResolver();
  const env = { ...environment, CHAT_DNS_SERVERS: resolver.address };
  try {
    await work((name) => bench.freshParley(name, env, limited));
  } finally {
    resolver.stop();
  }
}

export interface Plan {
  label: string;
  webhooks: boolean;
  baselineMs: number;
  strikeMs: number;
  afterMs: number;
  resource?: Row['resource'];
  prepare(attacker: Actor<AttackerHandlers>, target: Target): Promise<void>;
  strike(attacker: Actor<AttackerHandlers>, target: Target): Promise<string>;
}

/** The three phases, each with the same victim. The attacker strikes the victim's service, or another one. */
export async function measure(
  bench: Bench,
  running: RunningParley,
  how: Plan,
  struck: RunningParley = running,
): Promise<Round> {
  const victim = new Actor<VictimHandlers>(new URL('./victim.ts', import.meta.url), victimNice);
  const attacker = new Actor<AttackerHandlers>(new URL('./attacker.ts', import.meta.url), attackerNice);
  const hooks = how.webhooks ? await startHooks() : null;
  const sampler = new Sampler(running.gateway);
  try {
    const target: Target = {
      port: struck.port,
      tenant: attackerTenant,
      development: developmentTenant,
      store: await struck.store(),
    };
    const accounts = await running.accounts(plan, victimTenant);
    if (hooks)
      await api(running.url, victimTenant.secretKey)('POST', '/v1/webhooks', {
        url: `http://${knownName}:${hooks.port}/`,
        events: ['message.created'],
      });
    await how.prepare(attacker, target);
    await victim.ask('open', {
      port: running.port,
      perSecond: hooks ? hookedSendsPerSecond : sendsPerSecond,
      accounts,
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
  const undisturbed = { baseline: baseline!.undisturbed, attack: attack!.undisturbed };
  const refused = attack!.refused + after!.refused;
  const logins = {
    before: baseline!.login.p99,
    during: attack!.login.p99,
    failed: attack!.failedLogins,
  };
  const common = { undisturbed, refused, unanswered: report.unanswered, did, logins, usage };
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
      name,
      unit,
      before: median(baseline.map(value)),
      during: Math.max(...attack.map(value)),
      after: value(after.at(-1) ?? { rss: NaN, descriptors: NaN }),
    });
    const rss = of('RSS', 'MB', (s) => s.rss / 1_024);
    return withDescriptors ? [rss, of('descriptors', '', (s) => s.descriptors)] : [rss];
  }
}
