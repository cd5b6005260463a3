import { createRecorder } from '../features/logs/recorder.ts';
import { committedMessages } from '../features/messages/operations.ts';
import { createConversationLog } from '../log/conversation-log.ts';
import type { LogEvent } from '../log/events.ts';
import { createStoreClock } from '../log/store-clock.ts';
import { createUnconfirmedCommits } from '../log/unconfirmed-commits.ts';
import type { Platform } from './platform.ts';
import type { Realtime } from './realtime.ts';

/** The conversation log, whose events go to the hub. */
export function createLog(platform: Platform, { hub, restart }: Realtime) {
  const { config, db, logDb, clock, timers, logger, metrics } = platform;
  const recorder = createRecorder({ db, clock, logger, metrics, keep: config.requestLog });
  const publish = (event: LogEvent): void => {
    if (event.e === 'message.new') recorder.message(event.env);
    hub.publish(event);
  };
  const messages = (some: readonly { env: number; id: string }[]) => committedMessages(db, some);
  const unconfirmed = createUnconfirmedCommits({ db, timers, logger, messages, publish });
  const log = createConversationLog({
    db: logDb,
    publish,
    onBatch: (size, ms) => {
      metrics.commitSize.observe(size);
      metrics.commitSeconds.observe(ms / 1000);
    },
    onCommit: platform.wakeOutbox,
    onUnconfirmed: (commits) => unconfirmed.add(commits),
  });
  metrics.gauge('parley_commit_waiting', 'Messages waiting for the next group commit', () => log.waiting);
  return { log, recorder, storeClock: createStoreClock({ db, logger, onRestored: restart }) };
}

export type Log = ReturnType<typeof createLog>;
