import type { Clock, Ids, Timers } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { ConversationLog } from '../../log/conversation-log.ts';
import type { Analytics } from '../analytics/service.ts';
import type { Environment } from '../context.ts';
import type { MessageRow } from '../sql/message-reader.ts';
import { file } from './file.ts';
import type { Said } from './snapshot.ts';
import { reporters } from './sql.ts';

declare module '../context.ts' {
  interface Services {
    reports: ReportService;
  }
}

export type FoundMessage = Said & Pick<MessageRow, 'conv' | 'cid' | 'seq' | 'id' | 'sender'>;

export interface ReportService {
  /** A word list wants this message reported, as it is given. The sender does not wait for it. */
  found(env: Environment, message: FoundMessage): void;
  /** Resolves when nothing waits. */
  idle(): Promise<void>;
}

/** How many reports of word lists wait at most; what comes then is lost, and logged. */
const mostWaiting = 1_000;
const tries = 5;
/** Milliseconds before another try; twice as long each time. */
const pauseMs = 200;

/**
 * Makes the reports of word lists one after the other, behind the sends. A process that dies loses those that wait; a client
 * whose send was not answered repeats it, and then the report is made.
 */
export function createReportService(options: {
  db: Db;
  clock: Clock;
  timers: Timers;
  ids: Ids;
  vault: Vault;
  log: ConversationLog;
  analytics: Analytics;
  logger: Logger;
}): ReportService {
  const { db, timers, logger } = options;
  const waiting: { env: number; message: FoundMessage }[] = [];
  let running: Promise<void> | null = null;
  const pause = (ms: number): Promise<void> => new Promise((done) => void timers.after(ms, done));

  async function report({ env, message }: (typeof waiting)[number]): Promise<void> {
    const { conv, cid, seq, id, sender, version, text, extras, attachments } = message;
    await db.tx((tx) =>
      file({ services: options }, tx, env, {
        target: { kind: 'message', target: conv, seq, messageId: id, user: sender },
        said: { version, text, extras, attachments },
        conversationId: cid,
        reporter: reporters.list,
        reason: 'list',
        note: null,
      }),
    );
  }

  async function run(): Promise<void> {
    for (let next = waiting.shift(); next; next = waiting.shift())
      for (let attempt = 1; ; attempt++) {
        try {
          await report(next);
          break;
        } catch (error) {
          if (attempt < tries) await pause(pauseMs * 2 ** (attempt - 1));
          else {
            logger.error({ err: error, env: next.env }, 'the report of a word list is lost');
            break;
          }
        }
      }
    running = null;
  }

  return {
    found({ no, settings }, message) {
      if (settings.disabledFeatures.includes('reports')) return;
      if (waiting.length >= mostWaiting) {
        logger.error({ env: no }, 'too many reports of word lists wait: one is lost');
        return;
      }
      waiting.push({ env: no, message });
      running ??= run();
    },
    idle: () => running ?? Promise.resolve(),
  };
}
