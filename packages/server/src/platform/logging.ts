import { pino } from 'pino';
import type { Logger } from 'pino';

export type { Logger };

/**
 * Logs JSON lines to stderr, or readable lines if that is a terminal. Values that could be secrets are masked
 * wherever they stand.
 */
export const createLogger = (level: string): Logger =>
  pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: [
          'authorization',
          'token',
          'secret',
          'secretKey',
          'password',
          'text',
          '*.authorization',
          '*.token',
          '*.secret',
          '*.secretKey',
          '*.password',
          '*.text',
        ],
        censor: '[hidden]',
      },
    },
    process.stderr.isTTY
      ? { write: (line: string) => void process.stderr.write(readable(line)) }
      : pino.destination({ fd: 2, sync: true }),
  );

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
