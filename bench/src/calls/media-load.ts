import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { start } from '../children.ts';

/** The media half of participants, in a program of its own (bench/media-load): Node speaks no DTLS. */

export interface MediaCount {
  received: number;
  lost: number;
  bytes: number;
  /** Sources that arrived, each counted at each client that received it. */
  streams: number;
  sent: number;
}

export interface MediaLoad {
  pid: number;
  /** Of the certificate that all participants share. */
  fingerprint: string;
  /** Resolves when ICE and DTLS are through. */
  connect(
    transport: string,
    to: {
      ufrag: string;
      password: string;
      port: number;
      /** The server opens some. */ dataChannels?: boolean;
    },
  ): Promise<void>;
  send(
    transport: string,
    what: { ssrc: number; payloadType: number; bytes: number; perSecond: number; clockRate: number },
  ): Promise<void>;
  close(transport: string): Promise<void>;
  /** Counting begins here. */
  mark(): Promise<void>;
  count(): Promise<MediaCount>;
  stop(): Promise<void>;
}

const source = fileURLToPath(new URL('../../media-load', import.meta.url));

/** What it calls itself in ICE. */
export const own = { ufrag: 'bench', password: 'bench-media-load-password' };

type Answer = MediaCount & { id: number; error?: string; fingerprint?: string };

/** Needs the Go tool chain, and its modules at the first time. */
export async function startMediaLoad(directory: string): Promise<MediaLoad> {
  const program = join(directory, 'media-load');
  await promisify(execFile)('go', ['build', '-buildvcs=false', '-o', program, '.'], { cwd: source });
  const child = start(program, [], { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map<number, { resolve: (a: Answer) => void; reject: (e: Error) => void }>();
  let last = 0;
  createInterface({ input: child.process.stdout! }).on('line', (line) => {
    const answer = JSON.parse(line) as Answer;
    const { resolve, reject } = waiting.get(answer.id)!;
    waiting.delete(answer.id);
    if (answer.error) reject(new Error(answer.error));
    else resolve(answer);
  });
  child.process.once('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error(`media-load ended: ${child.tail()}`));
  });
  const ask = (what: string, fields: object = {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const id = ++last;
      waiting.set(id, { resolve, reject });
      child.process.stdin!.write(`${JSON.stringify({ id, do: what, ...fields })}\n`);
    });
  const { fingerprint } = await ask('hello');
  return {
    pid: child.pid,
    fingerprint: fingerprint!,
    connect: async (transport, to) => void (await ask('connect', { transport, ...to })),
    send: async (transport, what) => void (await ask('send', { transport, ...what })),
    close: async (transport) => void (await ask('close', { transport })),
    mark: async () => void (await ask('mark')),
    count: () => ask('count'),
    stop: () => child.stop('SIGKILL'),
  };
}
