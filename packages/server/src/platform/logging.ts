import { pino } from 'pino';
import type { Logger } from 'pino';

export type { Logger };

/** In `detail` of an error PostgreSQL quotes the row that it refused. */
const hidden = ['authorization', 'token', 'secret', 'secretKey', 'password', 'text', 'detail'];
/** How many characters wait at most for the reader of the log. Lines beyond that are left out, and counted. */
const mostWaiting = 8 * 2 ** 20;
/** Milliseconds for them to be read when the process ends. */
const endMs = 1_000;

/**
 * Logs JSON lines to stderr, or readable lines if that is a terminal. Values that could be secrets are masked
 * wherever they stand.
 */
export function createLogger(level: string): Logger {
  const { stream, onLeftOut } = process.stderr.isTTY ? terminal : lines();
  const logger = pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: [...hidden, ...hidden.map((name) => `*.${name}`)],
        censor: '[hidden]',
      },
    },
    stream,
  );
  onLeftOut((count) =>
    logger.warn({ lines: count }, 'log lines were left out: the reader of the log is too slow'),
  );
  return logger;
}

const terminal = {
  stream: { write: (line: string) => void process.stderr.write(readable(line)) },
  onLeftOut: () => undefined,
};

/**
 * The service never waits for the reader of its log: a pipe that is full would stop everything. What is left when the
 * process exits is written then (see endLog).
 */
function lines() {
  const stream = pino.destination({ fd: 2, sync: false, minLength: 1, maxLength: mostWaiting });
  let leftOut = 0;
  stream.on('drop', () => leftOut++);
  return {
    stream,
    onLeftOut: (tell: (count: number) => void) => {
      stream.on('drain', () => {
        if (leftOut === 0) return;
        const count = leftOut;
        leftOut = 0;
        tell(count);
      });
    },
  };
}

/** Waits until all lines are written, before the process exits. A reader that has stopped cannot hold it up. */
export async function endLog(logger: Logger): Promise<void> {
  const written = await new Promise<boolean>((resolve) => {
    logger.flush(() => resolve(true));
    setTimeout(() => resolve(false), endMs).unref();
  });
  const { [pino.symbols.streamSym]: stream } = logger as unknown as Record<symbol, { destroy?(): void }>;
  if (!written) stream!.destroy?.();
}

/** A line for people: time, level, message, and the other fields unchanged. */
export function readable(line: string): string {
  try {
    const { level, time, msg, pid: _, err, ...rest } = JSON.parse(line) as Record<string, unknown>;
    const { message, stack } = (err ?? {}) as { message?: string; stack?: string };
    const facts = Object.entries(rest).map(
      ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
    );
    const text = [String(time).slice(11, 19), String(level).padEnd(5), msg ?? '', ...facts, message ?? '']
      .join(' ')
      .trimEnd();
    return `${text}\n${level === 'error' && stack ? `${stack}\n` : ''}`;
  } catch {
    return line;
  }
}
