import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Message } from '@parley/protocol';
import type { Appended, NewMessage } from '../../src/log/sql/append.ts';
import type { ConversationLog } from '../../src/log/conversation-log.ts';
import type { ReadMark } from '../../src/log/unread/sql/mark-read.ts';
import { assertError } from '../support/api.ts';
import { useService } from '../support/use.ts';
import { hold, holdConversation, messageTo, openLog } from './log-tools.ts';
import type { OpenLog } from './log-tools.ts';
import { allEvents, assertContiguous, createGroup, times } from './tools.ts';

/** Issue 10, 1: a row lock that somebody holds keeps its own conversation waiting, and nobody else. */

const { service, server, db } = useService();

const closing: OpenLog[] = [];
after(async () => {
  for (const opened of closing) await opened.close();
});
async function anotherLog(settings: Record<string, string> = {}): Promise<ConversationLog> {
  const opened = await openLog(service, settings);
  closing.push(opened);
  return opened.log;
}

const send = (id: string, text: string) =>
  server('POST', `/v1/conversations/${id}/messages`, { text, senderId: 'ann' });
const textsOf = async (id: string): Promise<(string | null)[]> =>
  ((await server('GET', `/v1/conversations/${id}/messages`)).body as { data: Message[] }).data
    .reverse()
    .map((m) => m.text);

test('sends and reads elsewhere go on while a conversation is held, and its own follow in order', async () => {
  const [held, ...others] = await Promise.all(times(4, () => createGroup(server, ['ann', 'bob'])));
  const log = await anotherLog();
  const release = await holdConversation(db, held!);
  const messages = [];
  for (let i = 0; i < 5; i++) messages.push(await messageTo(db, held!, 'ann'));
  const waiting = messages.map((m) => log.append(m));
  const markOf = async (id: string): Promise<ReadMark> => {
    const { env, sender } = await messageTo(db, id, 'bob');
    return { env, conversationId: id, user: sender, seq: 2 };
  };
  const reading = log.markRead(await markOf(held!));
  for (let round = 0; round < 3; round++)
    for (const id of others) {
      assert.equal((await log.append(await messageTo(db, id, 'ann'))).status, 'ok');
      assert.equal((await log.markRead(await markOf(id))).lastReadSeq, 2);
    }
  assert.equal(log.waiting, 5);
  assert.deepEqual(await textsOf(held!), []);
  await release();
  await Promise.all(waiting);
  assert.ok((await reading).lastReadSeq <= 2);
  assert.deepEqual(
    await textsOf(held!),
    messages.map((m) => m.text),
  );
  await log.idle();
  assert.equal(log.waiting, 0);
});

test('whoever sends one message after the other into a held conversation finds them in that order', async () => {
  const id = await createGroup(server, ['ann', 'bob']);
  const log = await anotherLog();
  const release = await holdConversation(db, id);
  const messages = [];
  const answers: Promise<Appended>[] = [];
  for (let i = 0; i < 40; i++) {
    const message = await messageTo(db, id, i % 2 ? 'ann' : 'bob');
    messages.push(message);
    answers.push(log.append(message));
    if (i === 25) await release();
  }
  await Promise.all(answers);
  assert.deepEqual(
    await textsOf(id),
    messages.map((m) => m.text),
  );
});

test('what is held too long is 503 with retryAfterMs, and nothing of it is committed', async () => {
  const [held, other] = await Promise.all(times(2, () => createGroup(server, ['ann', 'bob'])));
  const release = await holdConversation(db, held!);
  const answer = await send(held!, 'too late');
  assertError(answer, 503, 'service_unavailable');
  assert.ok((answer.body as { error: { retryAfterMs: number } }).error.retryAfterMs > 0);
  assert.equal((await send(other!, 'hello')).status, 201);
  await release();
  assert.equal((await send(held!, 'in time')).status, 201);
  assert.deepEqual(await textsOf(held!), ['in time']);
});

test('an attachment that somebody holds keeps only its conversation waiting', async () => {
  const [held, other] = await Promise.all(times(2, () => createGroup(server, ['ann', 'bob'])));
  await db.query(
    `INSERT INTO attachments (env, id, conv, uploader, name, size, content_type, object_key, resource, created_at, ready_at, mime_type, keep_until)
     SELECT env, 'att_' || right(id, 26), no, NULL, 'file', 1, 'text/plain', 'none', 'raw', now(), now(), 'text/plain', now() + interval '1 hour'
     FROM conversations WHERE id = ANY($1)`,
    [[held, other]],
  );
  const attachmentOf = (id: string) => `att_${id.slice(-26)}`;
  const release = await hold(db, (tx) =>
    tx.query('SELECT 1 FROM attachments WHERE id = $1 FOR UPDATE', [attachmentOf(held!)]),
  );
  const log = await anotherLog();
  const withFile = async (id: string): Promise<NewMessage> => ({
    ...(await messageTo(db, id, 'ann')),
    own: false,
    attachments: JSON.stringify([attachmentOf(id)]),
  });
  const waiting = [log.append(await withFile(held!)), log.append(await messageTo(db, held!, 'ann'))];
  assert.equal((await log.append(await withFile(other!))).status, 'ok');
  assert.equal(log.waiting, 2, 'what follows it waits too, so that the order stays');
  await release();
  const [first, second] = await Promise.all(waiting);
  assert.ok(first!.status === 'ok' && first!.attachments !== null);
  assert.equal(second!.seq, first!.seq + 1);
});

test('delivery marks of a held conversation are told to come again, and the others are written', async (t) => {
  const [held, other] = await Promise.all(times(2, () => createGroup(server, ['ann', 'bob'])));
  const [row] = await db.query<{ env: number; no: number }>(
    `SELECT u.env, u.no FROM users u JOIN conversations c ON c.env = u.env WHERE c.id = $1 AND u.id = 'bob'`,
    [held],
  );
  const mark = () =>
    db.query<{ ord: number; seq: number | null }>(
      'SELECT ord, delivered_seq AS seq FROM mark_delivered($1, $2, $3, $4) ORDER BY 1',
      [
        [row!.env, row!.env],
        [held, other],
        [row!.no, row!.no],
        [1, 1],
      ],
    );
  const release = await holdConversation(db, held!);
  t.after(release);
  assert.deepEqual(await mark(), [
    { ord: 1, seq: null },
    { ord: 2, seq: 1 },
  ]);
  await release();
  assert.deepEqual(await mark(), [{ ord: 1, seq: 1 }]);
  assert.deepEqual(await mark(), [], 'a mark that does not move needs no lock');
});

test('a lock that nobody thought of ends in time, and is no reason to run messages one by one', async () => {
  const ids = await Promise.all(times(3, () => createGroup(server, ['ann', 'bob'])));
  const log = await anotherLog({ lock_timeout: '50' });
  const messages = await Promise.all(ids.map((id) => messageTo(db, id, 'ann')));
  const release = await hold(db, (tx) => tx.query('LOCK TABLE sent_ids IN ACCESS EXCLUSIVE MODE'));
  const answers = Promise.all(messages.map((m) => log.append(m)));
  // Long enough for a lock time-out or two: longer changes nothing.
  await delay(150);
  await release();
  assert.deepEqual(
    (await answers).map((a) => a.status),
    ['ok', 'ok', 'ok'],
  );
});

test('a conversation that two nodes and edits share is served to all, and nobody starves', async () => {
  const id = await createGroup(server, ['ann', 'bob']);
  const logs = [await anotherLog(), await anotherLog()];
  const sendersPerLog = 8;
  const perSender = 60;
  let done = 0;
  let longest = 0;
  const keepSending = async (log: ConversationLog, who: string): Promise<void> => {
    for (let i = 0; i < perSender; i++) {
      const message = await messageTo(db, id, who);
      const before = done;
      await log.append(message);
      longest = Math.max(longest, done - before);
      done++;
    }
  };
  let editing = true;
  const edits = (async () => {
    let count = 0;
    for (; editing; count++)
      await db.query('UPDATE conversations SET metadata = metadata WHERE id = $1', [id]);
    return count;
  })();
  await Promise.all(
    logs.flatMap((log, i) => times(sendersPerLog, () => keepSending(log, i === 0 ? 'ann' : 'bob'))),
  );
  editing = false;
  assert.ok((await edits) > 0);
  const events = (await allEvents(server, id)).map((e) => e.seq);
  assert.equal(events.length, 1 + 2 * sendersPerLog * perSender);
  assertContiguous(events);
  // Sixteen who take turns wait for 60 to 80 others at most on an idle machine, for 200 on a busy one. One that starves waits for all of the
  // other log.
  const allOfOneLog = sendersPerLog * perSender;
  assert.ok(longest <= (3 / 4) * allOfOneLog, `${longest} others were served while one waited`);
});
