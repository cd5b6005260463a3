import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findWorkerBinary } from '../../../packages/server/src/platform/media/worker-binary.ts';
import { pause, withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { startMediaLoad } from '../calls/media-load.ts';
import type { MediaLoad } from '../calls/media-load.ts';
import { Participant } from '../calls/participant.ts';
import { cpuOf, usageOf } from '../procfs.ts';
import type { RunningParley } from '../servers/parley.ts';
import { groups } from '../servers/server.ts';
import type { Plan } from '../servers/server.ts';
import { format, Histogram } from '../stats.ts';
import { enter } from './paced.ts';

/**
 * Calls on one media worker (docs/calls.md): how long a join takes, a hundred calls that start within a second, how many sources one core
 * passes on until packets are lost or it has nothing left, what a participant costs in memory, and how chat fares beside it.
 */

const port = 25_600;
/** Calls of the crowd: in each four send and all others watch. */
const crowds = 10;
const crowdSize = 50;
const senders = 4;
const pairs = 100;
const pairsMs = 1_000;
/** How many that watch a step adds to each call. */
const stepSize = 3;
const settleMs = 1_500;
const windowMs = 4_000;
const mostLoss = 0.01;
const fullCpu = 97;

export async function calls(bench: Bench): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-media-load-'));
  let media: MediaLoad;
  try {
    media = await startMediaLoad(directory);
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    bench.results.note(
      `calls was left out: the load generator needs Go (${(error as Error).message.split('\n')[0]}).`,
    );
    return;
  }
  const parley = bench.freshParley('calls', {
    CHAT_ROLES: 'api,gateway,worker,media',
    CHAT_MEDIA_WORKERS: '1',
    CHAT_MEDIA_PORT: String(port),
    MEDIASOUP_WORKER_BIN: await findWorkerBinary(),
  });
  try {
    await withRunning(bench, parley, (running) => measure(bench, running, media));
  } finally {
    await media.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

async function measure(bench: Bench, parley: RunningParley, media: MediaLoad): Promise<void> {
  const add = (metric: string, unit: string, value: number): void =>
    bench.results.add('calls', 'parley', metric, unit, value);
  await mediaReady(parley);
  await enter(bench, parley, groups('chat', 200, 10));
  await chat(bench, parley, 'alone');

  const starts = new Histogram();
  const failed = await hundredCalls(parley, media, starts);
  const begun = starts.summary();
  add('100 calls in a second: both connected p50', 'ms', begun.p50);
  add('100 calls in a second: both connected p99', 'ms', begun.p99);
  add('100 calls in a second: failed', '', failed);
  bench.say(
    `calls: 100 within a second, both people connected after p50 ${format(begun.p50)} p99 ${format(begun.p99)} ms, ${failed} failed`,
  );

  const people = await connect(parley, groups('crowd', crowds * crowdSize, crowdSize), media);
  const joins = new Histogram();
  const ids: string[] = [];
  const waiting: Participant[][] = [];
  let sources = 0;
  const worker = workerOf(parley.roots[0]!);
  const memory = () => ({ worker: usageOf(worker).rss, service: usageOf(parley.gateway).rss });
  const before = memory();
  for (let i = 0; i < crowds; i++) {
    const crowd = people.slice(i * crowdSize, (i + 1) * crowdSize);
    const sending = crowd.slice(0, senders);
    const id = await sending[0]!.start();
    ids.push(id);
    for (const one of sending) {
      joins.record((await one.join(id)) * 1_000);
      await one.send(id);
      sources += await one.receive(id).catch(() => 0);
    }
    waiting.push(crowd.slice(senders));
  }
  let watching = 0;
  let full = 0;
  let best = { sources: 0, packets: 0, cpu: 0, loss: 0 };
  for (;;) {
    if (full === 0)
      for (const [i, id] of ids.entries())
        for (const one of waiting[i]!.splice(0, stepSize)) {
          try {
            const ms = await one.join(id);
            if (best.cpu < 60) joins.record(ms * 1_000);
            sources += await one.receive(id);
            watching++;
          } catch (error) {
            bench.results.note(`calls: a join failed: ${(error as Error).message}`);
            bench.say(`calls: a join failed: ${(error as Error).message}`);
          }
        }
    await pause(settleMs);
    await media.mark();
    const cpu = cpuOf([worker]).all;
    const load = cpuOf([media.pid]).all;
    await pause(windowMs);
    const used = (cpuOf([worker]).all - cpu) / windowMs;
    const loaded = (cpuOf([media.pid]).all - load) / windowMs;
    const { received, lost } = await media.count();
    const now = {
      sources,
      packets: received / (windowMs / 1_000),
      cpu: used * 100,
      loss: lost / Math.max(1, received + lost),
    };
    bench.say(
      `calls: ${sources} sources received, ${format(now.packets)} packets/s, lost ${(now.loss * 100).toFixed(2)} %, worker ${format(now.cpu)} % of a core, load generator ${format(loaded * 100)} %`,
    );
    full = now.loss > mostLoss || now.cpu > fullCpu ? full + 1 : 0;
    if (full === 0) best = now;
    // Something else on the machine may have taken the core for a moment.
    if (full === 2) break;
    if (full === 0 && waiting[0]!.length === 0) {
      bench.results.note('calls: the worker was not full with everybody in.');
      break;
    }
  }
  add('received sources (consumers) on one core', '', best.sources);
  add('packets/s at that', '/s', best.packets);
  add('worker CPU at that', '%', best.cpu);
  const joined = joins.summary();
  add('join to connected media p50', 'ms', joined.p50);
  add('join to connected media p99', 'ms', joined.p99);
  const participants = crowds * senders + watching;
  const after = memory();
  const each = (which: 'worker' | 'service') => (after[which] - before[which]) / participants;
  add('memory per participant, media worker', 'kB', each('worker'));
  add('memory per participant, service', 'kB', each('service'));
  bench.say(
    `calls: ${best.sources} consumers on one core; join p50 ${format(joined.p50)} p99 ${format(joined.p99)} ms of ${joined.count}; ` +
      `${format(each('worker'))} kB per participant of ${participants} in the media worker, ${format(each('service'))} in the service`,
  );
  await chat(bench, parley, 'media worker full');
  for (const one of people) one.close();
}

/** A user a second, in groups of ten: nothing but waiting makes it slow. */
async function chat(bench: Bench, parley: RunningParley, when: string): Promise<void> {
  const run = await bench.load.run({ paceMs: 1_000, burst: 1, warmMs: 1_000, windowMs: 6_000 }, parley.roots);
  for (const q of ['p50', 'p99'] as const)
    bench.results.add('calls', 'parley', `chat, ${when}: delivery ${q}`, 'ms', run.delivery[q]);
  bench.say(
    `calls: chat, ${when}: ack p50 ${format(run.ack.p50)} p99 ${format(run.ack.p99)} ms, delivery p50 ${format(run.delivery.p50)} p99 ${format(run.delivery.p99)} ms`,
  );
}

/** Each caller starts in its own ten milliseconds; the callee answers as soon as it rings. Answers how many failed. */
async function hundredCalls(parley: RunningParley, media: MediaLoad, took: Histogram): Promise<number> {
  const people = await connect(parley, groups('pairs', pairs * 2, 2, true), media);
  let failed = 0;
  const calls = await Promise.all(
    Array.from({ length: pairs }, async (_, i) => {
      const [caller, callee] = [people[2 * i]!, people[2 * i + 1]!];
      await pause((i * pairsMs) / pairs);
      const begun = performance.now();
      try {
        const rung = new Promise<string>((resolve) => (callee.onRing = resolve));
        const id = await caller.start();
        await Promise.all([caller.join(id), rung.then((known) => callee.join(known))]);
        took.record((performance.now() - begun) * 1_000);
        return { id, caller, callee };
      } catch {
        failed++;
        return null;
      }
    }),
  );
  for (const call of calls)
    if (call) await Promise.all([call.caller.leave(call.id), call.callee.leave(call.id)]);
  for (const one of people) one.close();
  return failed;
}

async function connect(parley: RunningParley, plan: Plan, media: MediaLoad): Promise<Participant[]> {
  const people: Participant[] = [];
  for (const account of await parley.accounts(plan))
    people.push(await Participant.connect(parley.url, account, media));
  return people;
}

async function mediaReady(parley: RunningParley): Promise<void> {
  for (;;) {
    const { media } = (await (await fetch(`${parley.url}/readyz`)).json()) as { media?: string };
    if (media === 'ready') return;
    await pause(100);
  }
}

/** The media worker among the processes that this one started. */
function workerOf(parent: number): number {
  const found = readdirSync('/proc').find((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return (
        readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('mediasoup-worker') &&
        readFileSync(`/proc/${pid}/status`, 'utf8').includes(`PPid:\t${parent}\n`)
      );
    } catch {
      return false;
    }
  });
  if (!found) throw new Error('there is no media worker');
  return Number(found);
}
