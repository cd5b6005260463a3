import type { Clock, Ids, Timers } from '../../platform/clock.ts';
import { Places } from '../../platform/flow/places.ts';
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

/** How many environments' reports are made at once, and how many of one wait; what comes then is lost, and logged. */
const bounds = { inAll: 4, ofOne: 1, waiting: 500 };
const tries = 5;
/** Milliseconds before another try; twice as long each time. */
const pauseMs = 200;

/**
 * Makes the reports of word lists behind the sends, those of an environment one after the other. A process that dies loses those that wait; a client
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
  const places = new Places(bounds);
  const unmade = new Set<Promise<void>>();
  const pause = (ms: number): Promise<void> => new Promise((done) => void timers.after(ms, done));

  async function report(env: number, message: FoundMessage): Promise<void> {
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

  async function insist(env: number, message: FoundMessage): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await report(env, message);
      } catch (error) {
        if (attempt === tries) return logger.error({ err: error, env }, 'the report of a word list is lost');
        await pause(pauseMs * 2 ** (attempt - 1));
      }
    }
  }

  return {
    found({ no, settings }, message) {
      if (settings.disabledFeatures.includes('reports')) return;
      const { promise: place, resolve } = Promise.withResolvers<void>();
      const leave = places.enter(no, resolve);
      if (!leave) {
        logger.error({ env: no }, 'too many reports of word lists wait: one is lost');
        return;
      }
      const made = place
        .then(() => insist(no, message))
        .finally(() => {
          leave();
          unmade.delete(made);
        });
      unmade.add(made);
    },
    idle: async () => {
      while (unmade.size > 0) await Promise.all(unmade);
    },
  };
}
