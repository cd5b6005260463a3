import assert from 'node:assert/strict';
import { test } from 'node:test';
import { featureNames, operationList } from '@parley/protocol';
import { parley } from '../support/cli.ts';
import { assertError } from '../support/api.ts';
import { environments } from '../support/service.ts';
import { messagesBefore, viewMessage } from '../../src/features/sql/message-reader.ts';
import type { MessageRow } from '../../src/features/sql/message-reader.ts';
import { withPins } from '../../src/features/sql/pin-reader.ts';
import { withReactions } from '../../src/features/sql/reaction-reader.ts';
import type { Queryable } from '../../src/platform/postgres/db.ts';
import { until } from '../push-feature/tools.ts';
import { freePort } from '../storage/process.ts';
import { useService } from '../support/use.ts';

/** What all extensions share: identity#features, events#personal, and what a plain message costs. */

const port = await freePort();
const { service, scene, db } = useService({
  env: { CHAT_LOG_LEVEL: 'debug', CHAT_METRICS_PORT: String(port) },
});
const emoji = encodeURIComponent('👍');

test('identity#features: a plain message takes the same bytes as one without the columns of extensions', async () => {
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

test('reactions#cost, pins#cost: history of a conversation without them asks no table of theirs', async () => {
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

test('identity#features: a feature that is off is refused everywhere, and hello does not name it', async () => {
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

test('identity#features: polls that are off are refused as a field, a frame and a call, and still shown', async () => {
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

test('events#personal: a change on one device arrives at the other, and hello tells one that was away', async () => {
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

test('identity#features: a client that knows none of it sees a whole stream and the right counts', async () => {
  const [base, ...others] = await Promise.all([scene.actor('base'), scene.actor(), scene.actor()]);
  const { id: cid } = await scene.group(others[0]!, [base, others[1]!]);
  const socket = await scene.online(base);
  const ids: string[] = [];
  for (const who of others) {
    const { id } = await scene.send(who, cid, { text: `from ${who.id}` });
    ids.push(id);
    for (const one of others) await one.api('PUT', `/v1/messages/${id}/reactions/${emoji}`, {});
    await who.api('PUT', `/v1/messages/${id}/pin`);
  }
  await others[1]!.api('DELETE', `/v1/messages/${ids[0]}/reactions/${emoji}`);
  const { seq } = await scene.send(others[0]!, cid, { text: 'last' });
  await socket.next((f) => f.t === 'event' && f.cid === cid && f.seq >= seq, 'the last message');
  const item = await scene.item(base, cid);
  // Seqs without a hole, whatever their types: an unknown one advances lastSeq like all others.
  const seqs = socket.events(cid).map((f) => f.seq);
  assert.deepEqual(
    seqs,
    seqs.map((_, i) => seqs[0] + i),
  );
  assert.equal(item.unreadCount, 3);
  assert.equal(item.lastMessage.text, 'last');
  const page = await base.api('GET', `/v1/conversations/${cid}/messages`);
  assert.deepEqual(
    page.body.data.map((m: any) => m.text),
    ['last', ...ids.map((_, i) => `from ${others[1 - i]!.id}`)],
  );
  const news = socket.events(cid).filter((f) => f.e === 'message.new');
  assert.ok(news.every((f) => !('reactions' in f.d.message) && !('pinnedAt' in f.d.message)));
  const gap = await scene.events(cid);
  assert.deepEqual(
    gap.map((e) => e.seq),
    gap.map((_, i) => i + 1),
  );
  await base.api('POST', `/v1/conversations/${cid}/read`, { seq });
  assert.equal((await scene.item(base, cid)).unreadCount, 0);
});
