import { pino } from 'pino';
import type { Logger } from 'pino';

export type { Logger };

/** JSON lines on stderr. Values that could be secrets are masked whatever object they come in. */
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
    pino.destination({ fd: 2, sync: true }),
  );
