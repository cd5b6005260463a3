import { fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { track } from '../children.ts';
import type { Child } from '../children.ts';

/** A process of its own that does what it is asked, several things at a time if need be. */

type Handlers = Record<string, (input: never) => unknown>;
type Input<H extends Handlers, N extends keyof H> = Parameters<H[N]>[0];
type Answer<H extends Handlers, N extends keyof H> = Awaited<ReturnType<H[N]>>;

interface Question {
  no: number;
  name: string;
  input: unknown;
}
type Reply = { no: number; answer: unknown } | { no: number; failure: string };

export class Actor<H extends Handlers> {
  readonly #child: Child;
  readonly #waiting = new Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>();
  #asked = 0;
  #over = false;

  /** @param nice the larger, the less of the processor it gets where others want it too; below 0 where the system allows it. */
  constructor(script: URL, nice = 0) {
    const child = fork(fileURLToPath(script), [], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      detached: true,
      serialization: 'advanced',
    });
    this.#child = track(child);
    if (nice !== 0) giveTurns(child.pid!, nice);
    child.on('message', (reply: Reply) => {
      const waiting = this.#waiting.get(reply.no);
      this.#waiting.delete(reply.no);
      if ('failure' in reply) waiting?.reject(new Error(reply.failure));
      else waiting?.resolve(reply.answer);
    });
    child.on('exit', () => {
      this.#over = true;
      for (const { reject } of this.#waiting.values()) reject(new Error(`${script.pathname} ended`));
    });
  }

  ask<N extends keyof H & string>(name: N, input: Input<H, N>): Promise<Answer<H, N>> {
    const no = ++this.#asked;
    const question: Question = { no, name, input };
    return new Promise<unknown>((resolve, reject) => {
      if (this.#over) return reject(new Error('the process has ended'));
      this.#waiting.set(no, { resolve, reject });
      this.#child.process.send(question);
    }) as Promise<Answer<H, N>>;
  }

  stop(): Promise<void> {
    return this.#child.stop('SIGKILL');
  }
}

/** Where Linux shares the processor between sessions, it is the session's weight that counts. */
function giveTurns(pid: number, nice: number): void {
  try {
    setPriority(pid, nice);
    writeFileSync(`/proc/${pid}/autogroup`, String(nice));
  } catch {
    // it does not, or this user may not
  }
}

/** The child's side. */
export function serve(handlers: Handlers): void {
  const answer = async ({ no, name, input }: Question): Promise<Reply> => {
    try {
      return { no, answer: await handlers[name]!(input as never) };
    } catch (error) {
      return { no, failure: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    }
  };
  process.on('message', (question: Question) => {
    void answer(question).then((reply) => process.send?.(reply));
  });
  process.on('disconnect', () => process.exit(0));
}
