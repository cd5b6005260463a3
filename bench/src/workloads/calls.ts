import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findWorkerBinary } from '../../../packages/server/src/platform/media/worker-binary.ts';
import { pause, withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { crowds, crowdSize, fill } from '../calls/crowd.ts';
import type { Seat } from '../calls/crowd.ts';
import { liveKitSeat, startLiveKit } from '../calls/livekit.ts';
import type { LiveKit } from '../calls/livekit.ts';
import { startMediaLoad } from '../calls/media-load.ts';
import type { MediaLoad } from '../calls/media-load.ts';
import { Participant } from '../calls/participant.ts';
import type { RunningParley } from '../servers/parley.ts';
import { groups } from '../servers/server.ts';
import type { Plan } from '../servers/server.ts';
import { format, Histogram } from '../stats.ts';
import { enter } from './paced.ts';

/**
 * Calls on one media worker (docs/calls.md): how long a join takes, a hundred calls that start within a second, how many sources one core
 * passes on until packets are lost or it has nothing left, what a participant costs in memory, and how chat fares beside it. Then the same
 * crowd on LiveKit's server.
 */

const port = 25_600;
const pairs = 100;
const pairsMs = 1_000;

export async function calls(bench: Bench): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-media-load-'));
  try {
    for (const [server, measureIt] of [
      ['parley', ours],
      ['livekit', liveKit],
    ] as const) {
      if (bench.options.only?.includes(server) === false) continue;
      let media: MediaLoad;
      try {
        media = await startMediaLoad(directory);
      } catch (error) {
        leftOut(bench, 'all of it: the load generator needs Go', error);
        return;
      }
      await measureIt(bench, media, directory).finally(() => media.stop());
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function leftOut(bench: Bench, why: string, error: unknown): void {
  const text = `calls left out ${why} (${(error as Error).message.split('\n').slice(0, 3).join(' ')}).`;
  bench.results.note(text);
  bench.say(text);
}

async function ours(bench: Bench, media: MediaLoad): Promise<void> {
  const parley = bench.freshParley('calls', {
    CHAT_ROLES: 'api,gateway,worker,media',
    CHAT_MEDIA_WORKERS: '1',
    CHAT_MEDIA_PORT: String(port),
    MEDIASOUP_WORKER_BIN: await findWorkerBinary(),
  });
  await withRunning(bench, parley, (running) => measure(bench, running, media));
}

/** LiveKit's server with the same crowd, the same clients' media and as many cores. */
async function liveKit(bench: Bench, media: MediaLoad, directory: string): Promise<void> {
  let server: LiveKit;
  try {
    server = await startLiveKit(directory);
  } catch (error) {
    leftOut(bench, "LiveKit's server: it could not be built or started", error);
    return;
  }
  try {
    await fill(bench, media, {
      server: 'livekit',
      processes: { server: server.pid },
      calls: Array.from({ length: crowds }, (_, room) =>
        Array.from({ length: crowdSize }, (_, i) => liveKitSeat(media, `room${room}`, `${room}-${i}`)),
      ),
      stepSize: 1,
    });
  } finally {
    await server.stop();
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
  await fill(bench, media, {
    server: 'parley',
    processes: { 'media worker': workerOf(parley.roots[0]!), service: parley.gateway },
    calls: Array.from({ length: crowds }, (_, i) => seats(people.slice(i * crowdSize, (i + 1) * crowdSize))),
    stepSize: 3,
  });
  await chat(bench, parley, 'media worker full');
  for (const one of people) one.close();
}

/** The first starts the call when it joins. */
function seats(crowd: Participant[]): Seat[] {
  let started: Promise<string> | undefined;
  const id = () => (started ??= crowd[0]!.start());
  return crowd.map((one) => ({
    join: async () => one.join(await id()),
    send: async () => one.send(await id()),
    receive: async () => one.receive(await id()),
  }));
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
