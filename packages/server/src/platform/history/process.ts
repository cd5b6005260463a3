import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { sleep } from '../clock.ts';
import type { Clock, Timers } from '../clock.ts';
import type { Logger } from '../logging.ts';
import { answerBytes, beatId, firstId, frame, frameReader, readAnswer, settingsId } from './messages.ts';
import type { Ask, Settings } from './messages.ts';
import { HistoryError } from './port.ts';

/**
 * One process that speaks with customers' databases (child.ts), from its start to its end. It is killed when it does not
 * answer or grows; then the requests under way fail, and the database that it worked for is at fault.
 *
 *   pausing --pauseMs--> running --a fault, a stop, or a minute without an open history--> over
 */

/** How a database stopped the process. */
export type Fault = 'ended' | 'hung' | 'grew' | 'sent too much';

export type OnFault = (fault: Fault) => void;

const main = fileURLToPath(new URL('./child.ts', import.meta.url));
/** Megabytes: of objects, and in all. */
const heapMb = 256;
const mostMb = 768;
/** Milliseconds between two beats, and how many may be missing; the first takes longer, because the process starts. */
const beatMs = 1_000;
const mostMissed = 8;
const mostMissedAtStart = 60;
/** Milliseconds of processor time since the last beat from which on a process without an answer hangs. */
const hangsMs = 2_000;
/** Beats without an open history after which the process ends. */
const mostIdle = 60;
/** Milliseconds for an answer. Databases have their own time-outs, which are shorter: this one is for the process. */
const deadlineMs = 60_000;
/** Milliseconds after which the end of a process is no early one. */
const lastedMs = 60_000;
/** Bytes of an answer that nobody waits for any more. */
const lateBytes = 64 * 1024 * 1024;
const stopMs = 2_000;

/** The processor time that a process has used, in milliseconds; Infinity where the system does not tell. */
function spentMs(pid = 0): number {
  try {
    // The name of the program, in brackets, may contain spaces; user and system time are the 12th and 13th field after it, in 1/100 s.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return Infinity;
  }
}

/** An open history, as this process knows it. */
export interface Owner {
  env: number;
  onFault: OnFault;
  warned: boolean;
}

const nobody = 0;

interface Pending {
  ask: Ask;
  history: number;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

const replaced = () =>
  new HistoryError('unreachable', undefined, 'the process that speaks with databases was replaced');
const atFault: Record<Fault, string> = {
  ended: 'what it sent ended the process that reads it',
  hung: 'the process that reads what it sent had to be stopped, because it did not end',
  grew: 'the process that reads what it sent had to be stopped, because it took too much memory',
  'sent too much': 'it sent more than was asked for',
};

export type HistoryProcess = ReturnType<typeof startHistoryProcess>;

export function startHistoryProcess(options: {
  settings: Settings;
  clock: Pick<Clock, 'now'>;
  timers: Timers;
  logger: Logger;
  /** Milliseconds before it starts; requests wait for that. */
  pauseMs: number;
}) {
  const { settings, clock, timers, logger, pauseMs } = options;
  const pending = new Map<number, Pending>();
  /** The open histories, by the numbers under which they are called. */
  const owners = new Map<number, Owner>();
  let lastId = firstId;
  let child: ChildProcess | undefined;
  let channel: Duplex | undefined;
  let markFd: number | undefined;
  let over = false;
  /** True if it failed soon after its start. */
  let early = false;
  let beat = { answered: false, missed: 0, idle: 0, any: false, spent: 0 };
  const startedAt = timers.monotonic();

  /** At 0 the history that the process works for, or worked for when it ended; at 4 whether it ended itself because of that. */
  function wordAt(at: number): number {
    const bytes = Buffer.alloc(4);
    return markFd !== undefined && readSync(markFd, bytes, 0, 4, at) === 4 ? bytes.readUInt32BE() : 0;
  }

  /** @param known whose database it was, if that is known better than by the mark. */
  function end(fault: Fault, reason: object = {}, known?: number): void {
    if (over) return;
    over = true;
    const culprit = known ?? wordAt(0);
    stopBeats();
    early = timers.monotonic() - startedAt <= lastedMs;
    child?.kill('SIGKILL');
    channel?.destroy();
    if (markFd !== undefined) closeSync(markFd);
    const onFault = owners.get(culprit)?.onFault;
    logger.error(
      { fault, child: child?.pid, requests: pending.size, known: onFault !== undefined, ...reason },
      'the process that speaks with customers’ databases is replaced',
    );
    for (const { history, reject } of pending.values())
      reject(
        history === culprit && onFault ? new HistoryError('failed', undefined, atFault[fault]) : replaced(),
      );
    pending.clear();
    onFault?.(fault);
  }

  const write = (id: number, history: number, body: Buffer): void => {
    const seconds = Math.floor(clock.now() / 1_000);
    channel!.cork();
    for (const part of frame(id, history, seconds, body)) channel!.write(part);
    channel!.uncork();
  };

  function launch(): void {
    const folder = mkdtempSync(join(tmpdir(), 'parley-'));
    markFd = openSync(join(folder, 'mark'), 'w+', 0o600);
    rmSync(folder, { recursive: true });
    child = spawn(process.execPath, [`--max-old-space-size=${heapMb}`, '--no-warnings', main], {
      // Nothing of ours: drivers look for passwords, proxies and options in the environment and at home.
      env: trusted(),
      cwd: '/',
      // A Ctrl-C reaches the whole process group, and the child has work to do while the service drains.
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', markFd, 'pipe'],
    });
    channel = child.stdio[3] as Duplex;
    const life = (child.stdio as (Duplex | null)[])[5];
    for (const stream of [channel, life]) stream?.on('error', () => undefined);
    // The service may end without waiting for it: then it ends too.
    child.unref();
    for (const stream of [channel, life]) (stream as unknown as { unref(): void }).unref();
    child.once('error', (error) => end('ended', { reason: error.message }));
    child.once('exit', (code, signal) => {
      if (over) return;
      // Otherwise the system killed it, because memory ran out, or the operator did.
      const known = signal === 'SIGKILL' && wordAt(4) === 0 ? nobody : undefined;
      end('ended', { code, signal }, known);
    });
    let sender = 0;
    const read = frameReader(
      ({ id }) => {
        if (id === beatId) return 8;
        const one = pending.get(id);
        sender = one?.history ?? 0;
        return one ? answerBytes(one.ask) : lateBytes;
      },
      ({ id, history }, body) => {
        if (id === beatId) return onBeat(Number(body.readBigUInt64BE()), history);
        const one = pending.get(id);
        pending.delete(id);
        if (!one) return;
        try {
          one.resolve(readAnswer(one.ask, body, (problem) => onUnfit(one.history, problem)));
        } catch (error) {
          one.reject(error as Error);
        }
      },
    );
    channel.on('data', (chunk: Buffer) => {
      try {
        if (!over) read(chunk);
      } catch (error) {
        end('sent too much', { reason: (error as Error).message }, sender);
      }
    });
    write(settingsId, 0, Buffer.from(JSON.stringify(settings)));
    write(beatId, 0, Buffer.alloc(0));
  }

  /** Told once for each time that a database is opened. */
  function onUnfit(history: number, problem: string): void {
    const owner = owners.get(history);
    if (!owner || owner.warned) return;
    owner.warned = true;
    logger.warn(
      { env: owner.env, problem },
      'a history database has messages that are not what a message can be: they are left out',
    );
  }

  /** @param main the history that received most since the last beat, if one did. */
  function onBeat(rss: number, main: number): void {
    beat = { ...beat, answered: true, missed: 0, any: true, spent: spentMs(child?.pid) };
    if (rss > mostMb * 1_048_576) end('grew', { rss }, main);
  }
  /** A pause of our own counts once, however long it is. */
  const stopBeats = timers.every(beatMs, () => {
    if (!channel || over) return;
    beat.idle = owners.size === 0 && pending.size === 0 ? beat.idle + 1 : 0;
    if (beat.idle > mostIdle) return void stop();
    if (beat.answered) {
      beat.answered = false;
      return write(beatId, 0, Buffer.alloc(0));
    }
    beat.missed += 1;
    // On a machine that is too busy the process may get no time for seconds: then it does not hang.
    const starves = spentMs(child?.pid) - beat.spent < hangsMs;
    if (beat.missed >= (beat.any && !starves ? mostMissed : mostMissedAtStart))
      end('hung', {}, starves ? nobody : undefined);
  });

  async function stop(): Promise<void> {
    if (over) return;
    over = true;
    stopBeats();
    for (const { reject } of pending.values()) reject(replaced());
    pending.clear();
    if (markFd !== undefined) closeSync(markFd);
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    const gone = new Promise<void>((resolve) => child!.once('exit', () => resolve()));
    channel?.destroy();
    const cancel = timers.after(stopMs, () => child!.kill('SIGKILL'));
    await gone;
    cancel();
  }

  const ready = (pauseMs === 0 ? Promise.resolve() : sleep(timers, pauseMs)).then(() => {
    if (over) return;
    try {
      launch();
    } catch (error) {
      end('ended', { reason: (error as Error).message });
    }
  });

  async function call(history: number, ask: Ask): Promise<unknown> {
    await ready;
    if (over) throw replaced();
    const id = lastId++;
    let cancel: () => void = () => undefined;
    keepAlive(true);
    try {
      return await new Promise((resolve, reject) => {
        pending.set(id, { ask, history, resolve, reject });
        cancel = timers.after(deadlineMs, () => reject(new HistoryError('timeout', undefined)));
        write(id, history, Buffer.from(JSON.stringify(ask)));
      });
    } finally {
      cancel();
      pending.delete(id);
      if (pending.size === 0) keepAlive(false);
    }
  }
  /** The service waits for answers, but not for the process as such. */
  const keepAlive = (on: boolean): void => {
    const socket = channel as unknown as { ref(): void; unref(): void };
    if (on) socket.ref();
    else socket.unref();
  };

  return { owners, call, stop, isOver: () => over, endedEarly: () => early };
}

/** The certificates that the operator trusts besides the usual ones are all that it gets of our environment. */
function trusted(): Record<string, string> {
  const file = process.env['NODE_EXTRA_CA_CERTS'];
  return file === undefined ? {} : { NODE_EXTRA_CA_CERTS: resolve(file) };
}
