import { logConnections, logSettings } from '../../src/log/sql/append.ts';
import type { NewMessage } from '../../src/log/sql/append.ts';
import { createConversationLog } from '../../src/log/conversation-log.ts';
import type { ConversationLog } from '../../src/log/conversation-log.ts';
import { systemTimers } from '../../src/platform/clock.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import type { ConnectionSettings, Queryable, Tx } from '../../src/platform/postgres/db.ts';
import { runningPostgres } from '../../src/platform/postgres/embedded/index.ts';
import type { Service } from '../support/service.ts';

export interface OpenLog {
  log: ConversationLog;
  close(): Promise<void>;
}

/**
 * A log of its own on the service's store, as another node has. Nothing that waits in it grows too old, so that it does not matter how
 * fast the machine is.
 */
export async function openLog(service: Service, settings: Record<string, string> = {}): Promise<OpenLog> {
  const connection = (await runningPostgres(service.dataDir)) as ConnectionSettings;
  const db = new PgDb(connection, {
    max: logConnections,
    onError: () => undefined,
    settings: { ...logSettings, ...settings },
  });
  const timers = { ...systemTimers, monotonic: () => 0 };
  return {
    log: createConversationLog({ db, publish: () => undefined, timers }),
    close: () => db.close(),
  };
}

let made = 0;

/** A user's own message; its text, clientMsgId and id come from a counter. */
export async function messageTo(
  db: Queryable,
  conversationId: string,
  sender: string,
): Promise<NewMessage & { sender: number }> {
  const [row] = await db.query<{ env: number; no: number }>(
    `SELECT c.env, u.no FROM conversations c JOIN users u ON u.env = c.env AND u.id = $2 WHERE c.id = $1`,
    [conversationId, sender],
  );
  const n = String(++made).padStart(26, '0');
  return {
    env: row!.env,
    conversationId,
    sender: row!.no,
    own: true,
    clientMsgId: n,
    id: `msg_${n}`,
    text: n,
    replyTo: null,
    metadata: null,
    attachments: null,
  };
}

/** Holds what `take` locks until the function that comes back is called. */
export async function hold(db: PgDb, take: (tx: Tx) => Promise<unknown>): Promise<() => Promise<void>> {
  let letGo: () => void = () => undefined;
  let transaction: Promise<void> | undefined;
  await new Promise<void>((taken, failed) => {
    transaction = db.tx(async (tx) => {
      // A connection of the service would be ended for holding on.
      await tx.query('SET LOCAL idle_in_transaction_session_timeout = 0', []);
      await take(tx);
      taken();
      await new Promise<void>((resolve) => (letGo = resolve));
    });
    transaction.catch(failed);
  });
  return async () => {
    letGo();
    await transaction;
  };
}

export const holdConversation = (db: PgDb, id: string): Promise<() => Promise<void>> =>
  hold(db, (tx) => tx.query('SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE', [id]));
