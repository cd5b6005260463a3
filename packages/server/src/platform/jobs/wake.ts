import pg from 'pg';
import type { Logger } from '../logging.ts';
import type { ConnectionSettings, Queryable } from '../postgres/db.ts';
import { notifyWorkers } from './sql/jobs.ts';

/**
 * Tells workers that there may be something to do: in this process or, if it does no such work, in others by NOTIFY.
 * The notice carries no data and may be lost, so workers also look every second. It is not sent inside the commit,
 * because NOTIFY makes all such commits wait for each other.
 */

const channel = 'parley_work';
/**
 * Milliseconds for which notices are collected, in this process and before a NOTIFY: at hundreds of commits per
 * second one look serves many.
 */
const gatherHereMs = 5;
const gatherElsewhereMs = 10;
const reconnectMs = 1_000;

export interface WorkSignal {
  /** There may be work on this subject. */
  raise(subject: string): void;
  /** Runs `look` whenever the subject is raised, here or in another process. Must be called before the start. */
  on(subject: string, look: () => void): void;
  /** From now on this process works itself. */
  start(): void;
  stop(): Promise<void>;
}

export function createWorkSignal(options: {
  db: Queryable;
  connection: ConnectionSettings;
  logger: Logger;
}): WorkSignal {
  const { db, connection, logger } = options;
  const looks = new Map<string, (() => void)[]>();
  /** Subjects that were raised within the last few milliseconds. */
  const raised = new Set<string>();
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  let working = false;
  let stopped = false;

  /** Without a subject it runs all looks. */
  const look = (subject?: string): void => {
    for (const [known, runs] of looks) if (!subject || known === subject) for (const run of runs) run();
  };
  const notify = (subject: string): void => {
    notifyWorkers(db, channel, subject).catch((error: unknown) =>
      logger.debug({ err: error }, 'a wake-up was lost'),
    );
  };
  async function listen(): Promise<void> {
    const next = new pg.Client({ ...connection, keepAlive: true, application_name: 'parley listen' });
    let lost = false;
    const again = (error?: Error): void => {
      if (lost || stopped) return;
      lost = true;
      if (error) logger.debug({ err: error }, 'the wake-up connection was lost');
      next.end().catch(() => undefined);
      timer = setTimeout(() => void listen(), reconnectMs).unref();
    };
    next.on('error', again);
    next.on('end', () => again());
    next.on('notification', ({ payload }) => look(payload));
    client = next;
    try {
      await next.connect();
      await next.query(`LISTEN ${channel}`);
      look();
    } catch (error) {
      again(error as Error);
    }
  }

  return {
    raise: (subject) => {
      if (raised.has(subject)) return;
      raised.add(subject);
      const tell = working ? look : notify;
      setTimeout(
        () => {
          raised.delete(subject);
          tell(subject);
        },
        working ? gatherHereMs : gatherElsewhereMs,
      ).unref();
    },
    on: (subject, run) => {
      looks.set(subject, [...(looks.get(subject) ?? []), run]);
    },
    start: () => {
      working = true;
      void listen();
    },
    stop: async () => {
      working = false;
      stopped = true;
      clearTimeout(timer);
      await client?.end().catch(() => undefined);
    },
  };
}
