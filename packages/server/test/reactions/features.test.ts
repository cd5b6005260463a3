import assert from 'node:assert/strict';
import { test } from 'node:test';
import { featureNames, operationList } from '@parley/protocol';
import { parley } from '../support/cli.ts';
import { assertError } from '../support/api.ts';
import type { Answer } from '../support/api.ts';
import { environments } from '../support/service.ts';
import { messagesBefore, viewMessage } from '../../src/features/sql/message-reader.ts';
import type { MessageRow } from '../../src/features/sql/message-reader.ts';
import { withPins } from '../../src/features/sql/pin-reader.ts';
import { withReactions } from '../../src/features/sql/reaction-reader.ts';
import { tellReactions } from '../../src/features/reactions/tell.ts';
import type { Queryable, Tx } from '../../src/platform/postgres/db.ts';
import { until } from '../push-feature/tools.ts';
import { freePort } from '../storage/process.ts';
import { ready, voiceNote } from '../uploads/files.ts';
import { useService } from '../support/use.ts';

/** What all extensions share: identity#features, events#personal, and what a plain message costs. */

const port = await freePort();
const { service, scene, db } = useService({
  env: { CHAT_LOG_LEVEL: 'debug', CHAT_METRICS_PORT: String(port) },
});
const emoji = encodeURIComponent('👍');

test('identity#features, T0.2: a plain message takes the same bytes as one without the columns of extensions', async () => {
  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.direct(anna, ben);
  const { id } = await scene.send(anna, cid);
  const columns = `env, conv, seq, id, sender, text, reply_to, metadata, attachments, version, created_at, edited_at, deleted_at, hard, active_at`;
  const sizes = await db.tx(async (tx) => {
    // Stored in tables with and without the columns that extensions added.
    await tx.query('CREATE TEMP TABLE as_now ON COMMIT DROP AS SELECT * FROM messages WHERE id = $1', [id]);
    await tx.query(
      `CREATE TEMP TABLE as_before ON COMMIT DROP AS SELECT ${columns} FROM messages WHERE id = $1`,
      [id],
    );
    return tx.query<{ n: number }>(
      'SELECT pg_column_size(x.*) AS n FROM as_now x UNION ALL SELECT pg_column_size(x.*) FROM as_before x',
    );
  });
  assert.equal(sizes.length, 2);
  assert.equal(sizes[0]!.n, sizes[1]!.n);
});

test('reactions#cost, pins#cost, T0.2: history of a conversation without them asks no table of theirs', async () => {
  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.direct(anna, ben);
  await scene.send(anna, cid);
  const [conv] = await db.query<{ env: number; no: number; flags: number }>(
    'SELECT env, no, flags FROM conversations WHERE id = $1',
    [cid],
  );
  const asked: { text: string; values: unknown[] }[] = [];
  const watched: Queryable = {
    query: (text, values = []) => {
      asked.push({ text, values });
      return db.query(text, values);
    },
  };
  const page = async (flags: number) => {
    asked.length = 0;
    const rows = await messagesBefore(watched, conv!.env, cid, Number.MAX_SAFE_INTEGER, 0, 51);
    const messages = rows.map((row) => viewMessage(row as MessageRow));
    await withReactions(watched, conv!.env, { ...conv!, flags }, null, messages);
    await withPins(watched, conv!.env, { ...conv!, flags }, messages);
    const plans = await Promise.all(asked.map(({ text, values }) => db.query(`EXPLAIN ${text}`, values)));
    return JSON.stringify(plans);
  };
  assert.doesNotMatch(await page(conv!.flags), /reactions|pins/);
  assert.match(await page(1), /message_reactions/);
  assert.match(await page(8), /pins/);
});

test('reactions#event, T1.2: the next event of a message may follow after 1 s, after 3 s from 100 reactions on, after 10 s from 1,000', async () => {
  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.direct(anna, ben);
  const { id, seq } = await scene.send(anna, cid);
  assert.equal((await anna.api('PUT', `/v1/messages/${id}/reactions/${emoji}`, {})).status, 200);
  const log = { publish: () => undefined, committed: () => undefined, unconfirmed: () => undefined };
  const told: unknown[] = [];
  const undone = new Error('nothing of this is kept');
  const telling = db.tx(async (tx) => {
    // Within one transaction, so that the service does not tell meanwhile.
    const watched: Tx = {
      query: (text, values = []) => {
        if (text.includes('SET waiting = false')) told.push(values[3]);
        return tx.query(text, values);
      },
      script: (text) => tx.script(text),
      afterCommit: () => undefined,
      onUnconfirmed: () => undefined,
    };
    const fail = (error: unknown) => assert.fail(String(error));
    for (const total of [1, 99, 100, 999, 1_000, 10_000]) {
      await tx.query(
        `UPDATE message_reactions r SET total = $3, waiting = true, due_at = '-infinity' FROM conversations c
         WHERE c.id = $1 AND r.conv = c.no AND r.env = c.env AND r.message = $2`,
        [cid, seq, total],
      );
      await tellReactions({ query: tx.query.bind(tx), tx: (run) => run(watched) }, log, fail);
    }
    throw undone;
  });
  await assert.rejects(telling, undone);
  assert.deepEqual(told, [[1_000], [1_000], [3_000], [3_000], [10_000], [10_000]]);
});

test('identity#features, T0.3: a feature that is off is refused everywhere, and hello does not name it', async () => {
  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.direct(anna, ben);
  const { id } = await scene.send(anna, cid);
  const socket = await scene.online(anna);
  assert.deepEqual(socket.hello.features, [...featureNames]);
  assert.equal((await anna.api('PUT', `/v1/messages/${id}/reactions/${emoji}`, {})).status, 200);
  assert.equal((await anna.api('PUT', `/v1/messages/${id}/pin`)).status, 200);

  await parley(service, 'env', 'set', environments.dev.id, '--features-off', featureNames.join(','));
  const late = await scene.online(anna);
  assert.deepEqual(late.hello.features, []);
  for (const op of operationList.filter((o) => o.feature)) {
    const path = op.path
      .replace('{messageId}', id)
      .replace('{conversationId}', cid)
      .replace('{userId}', ben.id)
      .replace('{emoji}', emoji);
    const answer = await anna.api(op.method, path, op.body ? {} : undefined);
    assertError(answer, 403, 'feature_disabled');
    assert.deepEqual(answer.body.error.details, { feature: op.feature });
  }
  const rules = { posting: 'moderators' };
  const group = { type: 'group', members: [ben.id], rules };
  assertError(await anna.api('POST', '/v1/conversations', group), 403, 'feature_disabled');
  assertError(await anna.api('PATCH', `/v1/conversations/${cid}`, { rules }), 403, 'feature_disabled');
  await late.refused('reaction.set', { id, emoji: '👍', on: true }, 'feature_disabled');
  // Also on a socket from before, a second later at most.
  await until(async () => {
    const answer = await socket.ask('reaction.set', { id, emoji: '👍', on: true });
    return answer.t === 'error' && answer.code === 'feature_disabled';
  }, 'the old socket is refused');
  const { body } = await anna.api('GET', `/v1/messages/${id}`);
  assert.equal(body.reactions.total, 1, 'what is stored stays readable');
  assert.equal(body.pinnedBy, anna.id);
  await parley(service, 'env', 'set', environments.dev.id, '--features-off', 'none');
  assert.deepEqual((await scene.online(anna)).hello.features, [...featureNames]);
});

test('identity#features, T0.3: polls that are off are refused as a field, a frame and a call, and still shown', async () => {
  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.direct(anna, ben);
  const poll = { question: 'Which?', options: [{ text: 'a' }, { text: 'b' }] };
  const { id } = await scene.send(anna, cid, { poll });
  await parley(service, 'env', 'set', environments.dev.id, '--features-off', 'polls');
  const socket = await scene.online(anna);
  assert.ok(!socket.hello.features.includes('polls'));
  const at = `/v1/conversations/${cid}/messages`;
  for (const answer of [
    await anna.api('POST', at, { clientMsgId: 'off', poll }),
    await anna.api('PUT', `/v1/messages/${id}/votes`, { options: [1] }),
    await anna.api('POST', `/v1/messages/${id}/poll/close`),
  ]) {
    assertError(answer, 403, 'feature_disabled');
    assert.deepEqual(answer.body.error.details, { feature: 'polls' });
  }
  await socket.refused('poll.vote', { id, options: [1] }, 'feature_disabled');
  await socket.refused('message.send', { cid, clientMsgId: 'off', poll }, 'feature_disabled');
  const { body } = await anna.api('GET', at);
  assert.equal(body.data.length, 1);
  assert.equal(body.data[0].poll.question, 'Which?');
  await parley(service, 'env', 'set', environments.dev.id, '--features-off', 'none');
});

test('joining#token: tokens of links are in no log, no metric and no row', async () => {
  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.group(anna, [], { rules: { joining: 'link' } });
  const key = { 'idempotency-key': `invite-${cid}` };
  const { token } = (await anna.api('POST', `/v1/conversations/${cid}/invites`, {}, key)).body;
  const wrong = `Wrong${token}`;
  assert.equal((await ben.api('GET', `/v1/invites/${token}`)).status, 200);
  assertError(await ben.api('GET', `/v1/invites/${wrong}`), 404, 'not_found');
  assertError(await ben.api('PUT', `/v1/invites/${token}`), 405, 'method_not_allowed');
  const used = await ben.api('POST', `/v1/invites/${token}`, undefined, { 'idempotency-key': `use-${cid}` });
  assert.equal(used.status, 200);
  const logged = `SELECT 1 FROM request_log WHERE operation = 'invites.accept'`;
  await until(async () => (await db.query(logged)).length > 0, 'the request is logged');
  const tables = await db.query<{ name: string }>(
    `SELECT quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
  );
  for (const { name } of tables)
    assert.deepEqual(
      await db.query(`SELECT 1 FROM ${name} t WHERE t::text LIKE '%' || $1 || '%' LIMIT 1`, [token]),
      [],
      name,
    );
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  assert.match(metrics, /invites\.accept/);
  assert.ok(!metrics.includes(token));
  await until(() => service.output().includes('invites.accept'), 'the log has the request');
  assert.ok(!service.output().includes(token));
});

test('events#personal, T0.4: a change on one device arrives at the other, and hello tells one that was away', async () => {
  const [anna, ben] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.direct(anna, ben);
  const [phone, laptop, other] = await Promise.all([
    scene.online(anna),
    scene.online(anna),
    scene.online(ben),
  ]);
  const { personalRev } = laptop.hello;
  await laptop.close();
  const mute = (method: string) => anna.api(method, `/v1/conversations/${cid}/mute`);
  await mute('PUT');
  await mute('PUT');
  const first = await phone.ephemeral('personal');
  assert.deepEqual(first.d, {
    rev: personalRev + 1,
    kind: 'level',
    d: { conversationId: cid, level: 'none', until: null, muted: true },
  });
  const back = await scene.online(anna);
  assert.equal(back.hello.personalRev, personalRev + 1);
  assert.equal((await scene.item(anna, cid)).muted, true);
  await mute('DELETE');
  for (const socket of [phone, back])
    assert.deepEqual((await socket.ephemeral('personal')).d, {
      rev: personalRev + 2,
      kind: 'level',
      d: { conversationId: cid, level: 'all', until: null, muted: false },
    });
  await other.barrier();
  assert.ok(other.frames.every((f) => f.t !== 'personal'));
});

/** Fields of messages and events as before extensions; a client of that time passes over all others. */
const baseFields = ['id', 'seq', 'senderId', 'text', 'replyTo', 'version', 'editedAt', 'deletedAt'];
const baseView = (message: any) =>
  message.deletedAt
    ? { id: message.id, deletedAt: message.deletedAt }
    : Object.fromEntries(baseFields.map((name) => [name, message[name]]));

test('identity#features, T0.1: a client that knows none of it passes over all of it: a whole stream, the same history, the right counts', async () => {
  const [base, owner, ben] = await Promise.all([scene.actor('base'), scene.actor(), scene.actor()]);
  const others = [owner, ben];
  const { id: cid } = await scene.group(owner, [base, ben]);
  const at = `/v1/conversations/${cid}`;
  const socket = await scene.online(base);
  const done = async (answer: Promise<Answer>): Promise<any> => {
    const { status, body } = await answer;
    assert.ok(status < 300, JSON.stringify(body));
    return body;
  };
  const mentions = [{ type: 'everyone' }, { type: 'user', userId: base.id, offset: 0, length: 2 }];
  const poll = { question: 'Which?', options: [{ text: 'a' }, { text: 'b' }] };
  const voice = await ready(owner.api, cid, voiceNote);
  const mine = await scene.send(base, cid, { text: 'mine' });
  const sent: any[] = [];
  for (const fields of [
    { text: 'plain' },
    { text: 'hi base', mentions, replyTo: mine.id },
    { text: 'vote', poll },
    { text: 'listen', attachments: [voice] },
  ])
    sent.push(await scene.send(owner, cid, fields));
  for (const { id } of [...sent, mine]) {
    for (const one of others) await done(one.api('PUT', `/v1/messages/${id}/reactions/${emoji}`, {}));
    await done(ben.api('PUT', `/v1/messages/${id}/pin`));
  }
  await done(ben.api('DELETE', `/v1/messages/${sent[0].id}/reactions/${emoji}`));
  await done(ben.api('DELETE', `/v1/messages/${sent[0].id}/pin`));
  await done(ben.api('PUT', `/v1/messages/${sent[2].id}/votes`, { options: [2] }));
  await done(owner.api('POST', `/v1/messages/${sent[2].id}/poll/close`));
  await done(ben.api('PUT', `${at}/notifications`, { level: 'mentions' }));
  await done(owner.api('PATCH', `/v1/messages/${sent[1].id}`, { text: 'hello', expectedVersion: 1 }));
  await done(owner.api('PATCH', `/v1/messages/${sent[0].id}`, { mentions, expectedVersion: 1 }));
  // What the client does itself, with the fields that it knows.
  await done(base.api('PATCH', `/v1/messages/${mine.id}`, { text: 'edited', expectedVersion: 1 }));
  await done(owner.api('DELETE', `/v1/messages/${sent[3].id}`));
  const untold = `SELECT 1 FROM message_reactions r JOIN conversations c ON c.env = r.env AND c.no = r.conv WHERE c.id = $1 AND r.waiting`;
  await until(async () => (await db.query(untold, [cid])).length === 0, 'all reactions are told');
  const last = await scene.send(ben, cid, { text: 'last' });
  await socket.next((f) => f.t === 'event' && f.cid === cid && f.seq >= last.seq, 'the last message');

  // Seqs without a hole, whatever their types: an unknown one advances lastSeq like all others.
  const events = socket.events(cid);
  const seqs = events.map((f) => f.seq);
  assert.deepEqual(
    seqs,
    seqs.map((_, i) => seqs[0] + i),
  );
  const known = new Set(['message.new', 'message.updated', 'message.deleted']);
  const unknown = new Set(events.map((f) => f.e).filter((e) => e.startsWith('message.') && !known.has(e)));
  assert.deepEqual([...unknown].sort(), ['message.enriched', 'message.pinned', 'message.reactions']);
  const stream = new Map<string, object>();
  const news = events.filter((f) => known.has(f.e));
  for (const { d } of news) stream.set(d.message?.id ?? d.id, baseView(d.message ?? d));
  const page = (await done(base.api('GET', `${at}/messages`))).data;
  assert.deepEqual([...stream.values()], page.map(baseView).reverse());
  const shown = news.flatMap(({ d }) => d.message ?? []);
  assert.ok(shown.every((message) => !('reactions' in message) && !('pinnedAt' in message)));

  const item = await scene.item(base, cid);
  assert.deepEqual(
    [item.unreadCount, item.lastMessage.text, item.lastSeq, item.muted],
    [4, 'last', (await scene.events(cid)).at(-1).seq, false],
  );
  const [synced] = (await done(base.api('POST', '/v1/sync', { cursor: null }))).conversations;
  assert.deepEqual([synced.unreadCount, synced.lastSeq], [item.unreadCount, item.lastSeq]);
  const gap = await scene.events(cid);
  assert.deepEqual(
    gap.map((e) => e.seq),
    gap.map((_, i) => i + 1),
  );
  await done(base.api('PUT', `${at}/mute`));
  assert.equal((await scene.item(base, cid)).muted, true);
  await done(base.api('DELETE', `${at}/mute`));
  await done(base.api('POST', `${at}/read`, { seq: last.seq }));
  assert.equal((await scene.item(base, cid)).unreadCount, 0);
});
