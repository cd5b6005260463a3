import pg from 'pg';
import { Caller, group, names, paced, prepared, Tally, unique, wires } from '../kit.ts';
import type { Attack } from '../kit.ts';

/** Against the conversation log and its group commit. */

/** A transaction holds the row of one conversation, into which messages are sent all the while. */
export const lockedConversation: Attack = async (target) => {
  const cid = await prepared(target, (caller) => group(caller, names(unique('locked'), 10)));
  return async (deadline) => {
    const client = new pg.Client(target.store);
    client.on('error', () => undefined);
    await client.connect();
    const caller = new Caller(target, 100, deadline);
    const tally = new Tally();
    try {
      await client.query('BEGIN');
      await client.query('SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE', [cid]);
      await paced(deadline, { perSecond: 20, waiting: 100 }, async () => {
        const { status } = await caller.call('POST', `/v1/conversations/${cid}/messages`, {
          body: { text: 'waits for the lock' },
        });
        tally.add(status);
      });
    } finally {
      await client.query('ROLLBACK').catch(() => undefined);
      await client.end();
    }
    return tally.done('sends into the locked conversation');
  };
};

/** Users of one group who send what must be refused and what was sent before, in turn. */
export const refusedAndRepeated: Attack = async (target) => {
  const users = names(unique('repeats'), 20);
  const cid = await prepared(target, (caller) => group(caller, users));
  return async (deadline) => {
    const open = await wires(target, users);
    const tally = new Tally();
    for (const wire of open) wire.onFrame = ({ t, code }) => t !== 'event' && tally.add(code ?? 200);
    await paced(deadline, { perSecond: open.length * 5 }, (i) => {
      const wire = open[i % open.length]!;
      const fields = i % 2 === 0 ? { replyTo: `msg_${'0'.repeat(26)}` } : {};
      if (!wire.closed)
        wire.send('message.send', { cid, clientMsgId: 'always-this-one', text: 'again', ...fields });
    });
    for (const wire of open) wire.socket.destroy();
    return tally.done('repeats');
  };
};
