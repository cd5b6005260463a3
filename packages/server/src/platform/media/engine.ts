import childProcess from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { types } from 'mediasoup';
import type { Logger } from '../logging.ts';

/**
 * The workers of one media node: one process per core, each with one server on a port of its own that takes UDP and
 * TCP. A worker that dies is replaced. What ran on it is lost, and `onDied` reports it.
 */

export interface EngineOptions {
  binary: string;
  workers: number;
  /** The port of the first worker; the others use the following ports. */
  port: number;
  listenIp: string;
  announcedAddress: string | undefined;
  /** Video codecs besides VP8, which is always offered. */
  codecs: readonly ExtraCodec[];
  logger: Logger;
}

export const extraCodecs = ['h264', 'vp9', 'av1'] as const;
export type ExtraCodec = (typeof extraCodecs)[number];

/** A worker process with its server and load. */
export interface EngineWorker {
  readonly worker: types.Worker;
  readonly server: types.WebRtcServer;
  /** How much of its core it used when last measured, 0 to 1. */
  load: number;
  /** How many routers were put on it since then, so that many calls at one moment are spread. */
  placed: number;
  cpuMs: number;
}

/**
 * All participants of a worker send to one port. The usual buffer holds about a hundred packets, and loses some as soon as the worker
 * waits for its core. The kernel may allow less (`net.core.rmem_max`).
 */
const bufferBytes = 4 * 1024 * 1024;
const replaceMs = 500;
const replaceTries = 20;
/** Milliseconds that a call waits for a worker while all are being replaced. */
const waitMs = 5_000;
const placedLoad = 0.01;

const video = (
  mimeType: string,
  parameters: Record<string, unknown> = {},
): types.RouterRtpCodecCapability => ({
  kind: 'video',
  mimeType,
  clockRate: 90_000,
  parameters: { 'x-google-start-bitrate': 800, ...parameters },
});
const codecsByName: Record<ExtraCodec, types.RouterRtpCodecCapability> = {
  h264: video('video/H264', {
    'packetization-mode': 1,
    'profile-level-id': '42e01f',
    'level-asymmetry-allowed': 1,
  }),
  vp9: video('video/VP9', { 'profile-id': 0 }),
  av1: video('video/AV1'),
};

export class Engine {
  readonly #options: EngineOptions;
  readonly #workers: (EngineWorker | null)[] = [];
  readonly #codecs: types.RouterRtpCodecCapability[];
  #mediasoup!: typeof import('mediasoup');
  #closed = false;
  /** Called after a dead worker was removed from the list. */
  onDied: (worker: EngineWorker) => void = () => undefined;

  private constructor(options: EngineOptions) {
    this.#options = options;
    this.#codecs = [
      {
        kind: 'audio',
        mimeType: 'audio/opus',
        clockRate: 48_000,
        channels: 2,
        parameters: { useinbandfec: 1, usedtx: 1 },
      },
      video('video/VP8'),
      ...options.codecs.map((name) => codecsByName[name]),
    ];
  }

  /** Fails if a port is taken. */
  static async start(options: EngineOptions): Promise<Engine> {
    const engine = new Engine(options);
    // Loaded here, because processes without media do not need it.
    engine.#mediasoup = await import('mediasoup');
    try {
      for (let i = 0; i < options.workers; i++) engine.#workers.push(await engine.#startWorker(i));
    } catch (error) {
      engine.close();
      throw error;
    }
    return engine;
  }

  async #startWorker(index: number): Promise<EngineWorker> {
    const { binary, port, listenIp, announcedAddress, logger } = this.#options;
    const worker = await bare(() => this.#mediasoup.createWorker({ workerBin: binary, logLevel: 'error' }));
    try {
      const server = await worker
        .createWebRtcServer({
          listenInfos: (['udp', 'tcp'] as const).map((protocol) => ({
            protocol,
            ip: listenIp,
            port: port + index,
            ...(protocol === 'udp' ? { recvBufferSize: bufferBytes, sendBufferSize: bufferBytes } : {}),
            ...(announcedAddress === undefined ? {} : { announcedAddress }),
          })),
        })
        .catch((cause: unknown) => {
          const place = `${listenIp}:${port + index}`;
          const hint = 'another program may use the port. Set CHAT_MEDIA_PORT to a port that is free, with';
          const range = `the ${this.#options.workers - 1} that follow it, for UDP and TCP`;
          throw new Error(`A media worker cannot listen at ${place}: ${hint} ${range}.`, { cause });
        });
      const { ru_utime: user, ru_stime: system } = await worker.getResourceUsage();
      const started: EngineWorker = { worker, server, load: 0, placed: 0, cpuMs: user + system };
      worker.once('died', () => {
        if (this.#closed) return;
        logger.error({ worker: index, pid: worker.pid }, 'a media worker died; starting another');
        this.#workers[index] = null;
        this.onDied(started);
        void this.#replace(index);
      });
      return started;
    } catch (error) {
      worker.close();
      throw error;
    }
  }

  async #replace(index: number): Promise<void> {
    for (let tries = 0; tries < replaceTries && !this.#closed; tries++) {
      await delay(replaceMs, undefined, { ref: false });
      try {
        const started = await this.#startWorker(index);
        if (this.#closed) started.worker.close();
        else this.#workers[index] = started;
        return;
      } catch (error) {
        this.#options.logger.warn({ err: error, worker: index }, 'a media worker could not be replaced yet');
      }
    }
  }

  get alive(): EngineWorker[] {
    return this.#workers.filter((w) => w !== null);
  }

  /** Creates a router on the worker with the most room. */
  async router(
    except: readonly EngineWorker[] = [],
  ): Promise<{ router: types.Router; on: EngineWorker } | null> {
    const deadline = performance.now() + waitMs;
    for (;;) {
      const free = this.alive.filter((w) => !except.includes(w));
      free.sort((a, b) => weight(a) - weight(b));
      const on = free[0];
      if (on) {
        on.placed++;
        return { router: await on.worker.createRouter({ mediaCodecs: this.#codecs }), on };
      }
      if (except.length > 0 || this.#closed || performance.now() > deadline) return null;
      await delay(100, undefined, { ref: false });
    }
  }

  /** What every router of ours supports. */
  async rtpCapabilities(): Promise<types.RtpCapabilities> {
    const router = await this.alive[0]!.worker.createRouter({ mediaCodecs: this.#codecs });
    const { rtpCapabilities } = router;
    router.close();
    return rtpCapabilities;
  }

  /** Measures what the workers used in the last `ms` milliseconds; returns the load of the one with the most room. */
  async measure(ms: number): Promise<number> {
    for (const one of this.alive) {
      try {
        const { ru_utime: user, ru_stime: system } = await one.worker.getResourceUsage();
        one.load = Math.max(0, Math.min(1, (user + system - one.cpuMs) / ms));
        one.cpuMs = user + system;
        one.placed = 0;
      } catch {
        one.load = 1;
      }
    }
    const loads = this.alive.map((w) => w.load);
    return loads.length === 0 ? 1 : Math.min(...loads);
  }

  close(): void {
    this.#closed = true;
    for (const one of this.alive) one.worker.close();
  }
}

/**
 * Runs `start` with an environment that holds nothing but the place of libraries. mediasoup gives a worker all of `process.env`,
 * where our secrets are; it starts the process before it returns, so nothing else runs meanwhile. The worker gets a process
 * group of its own: it ends at a Ctrl-C, which reaches our whole group, and calls go on while the service drains. It also ends
 * when its pipes to us close.
 */
function bare<T>(start: () => T): T {
  const whole = process.env;
  const libraries = whole['LD_LIBRARY_PATH'];
  const { spawn } = childProcess;
  process.env = libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries };
  childProcess.spawn = ((file: string, args: string[], options: childProcess.SpawnOptions) =>
    spawn(file, args, { ...options, detached: true })) as typeof spawn;
  try {
    return start();
  } finally {
    process.env = whole;
    childProcess.spawn = spawn;
  }
}

const weight = (w: EngineWorker): number => w.load + w.placed * placedLoad;
