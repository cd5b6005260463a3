import type { ChildProcess } from 'node:child_process';

const TAIL_LINES = 40;
const LINE_LENGTH = 2_000;

export interface End {
  code: number | null;
  signal: string | null;
}

/** Passes a child's output on line by line, and keeps the last lines to say why it ended. */
export function collectOutput(child: ChildProcess, log: (line: string) => void): { tail(): string } {
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    let rest = '';
    const emit = (line: string) => {
      if (line === '') return;
      const cut = line.slice(0, LINE_LENGTH);
      lines.push(cut);
      if (lines.length > TAIL_LINES) lines.shift();
      log(cut);
    };
    stream?.setEncoding('utf8');
    stream?.on('data', (chunk: string) => {
      const parts = (rest + chunk).split('\n');
      rest = (parts.pop() ?? '').slice(0, LINE_LENGTH);
      parts.forEach(emit);
    });
    stream?.on('end', () => emit(rest));
  }
  return { tail: () => lines.join('\n') };
}

/** Resolves when the process has ended and, if that follows within 500 ms, its output too. Never rejects. */
export function whenEnded(child: ChildProcess): Promise<End> {
  return new Promise((resolve) => {
    child.on('error', (error) => {
      if (child.pid === undefined) resolve({ code: null, signal: error.message });
    });
    child.once('exit', (code, signal) => {
      // Processes that the server leaves behind for a moment keep its output open.
      const timer = setTimeout(() => resolve({ code, signal }), 500);
      child.once('close', () => {
        clearTimeout(timer);
        resolve({ code, signal });
      });
    });
  });
}
