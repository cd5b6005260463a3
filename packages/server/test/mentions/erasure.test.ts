import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';
import { startReceiver } from '../webhooks/receiver.ts';
import { addEndpoint } from '../webhooks/tools.ts';

/** mentions#erasure: nothing names an erased user, and what was its own is gone. */

const { scene, server, db, sql } = useService();

const to = (user: Actor) => ({ type: 'user', userId: user.id });
const send = (who: Actor, cid: string, mentions: object[]) => scene.send(who, cid, { text: 'hi', mentions });

/** Every row of every table that has the text in it. */
async function tablesWith(text: string): Promise<string[]> {
  const tables = await db.query<{ name: string }>(
    `SELECT quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
  );
  const found: string[] = [];
  for (const { name } of tables)
    if ((await sql(`SELECT 1 FROM ${name} x WHERE strpos(x::text, $1) > 0 LIMIT 1`, [text])).length > 0)
      found.push(name);
  return found;
}

for (const mode of ['anonymize', 'delete'])
  test(`mentions#erasure, T3.6: ${mode}: the list shows the replacement, nothing names the old id, and levels are gone`, async (t) => {
    // Webhooks of edits keep what they showed.
    const receiver = await startReceiver();
    t.after(() => receiver.close());
    await addEndpoint(server, receiver.url, ['message.updated']);
    const [anna, ben, cleo] = await Promise.all(['anna', 'ben', 'cleo'].map((name) => scene.actor(name)));
    const { id: group } = await scene.group(anna!, [ben!, cleo!]);
    const { id: dm } = await scene.direct(anna!, ben!);
    // Ben was never in this one.
    const { id: elsewhere } = await scene.group(anna!, [cleo!]);
    const messages: string[] = [];
    for (const cid of [group, dm, elsewhere]) {
      const { id } = await send(anna!, cid, [to(ben!), ...(cid === dm ? [] : [to(cleo!)])]);
      const edited = { expectedVersion: 1, text: 'other words' };
      assert.equal((await anna!.api('PATCH', `/v1/messages/${id}`, edited)).status, 200);
      messages.push(id);
    }
    const level = (cid: string, body: object) =>
      ben!.api('PUT', `/v1/conversations/${cid}/notifications`, body);
    await level(group, { level: 'mentions' });
    await level(dm, { level: 'none', until: new Date(Date.now() + 3_600_000).toISOString() });
    const [{ no }] = (await sql('SELECT no FROM users WHERE id = $1', [ben!.id])) as [{ no: number }];

    assert.equal((await server('DELETE', `/v1/users/${ben!.id}?messages=${mode}`)).status, 204);
    for (const id of messages) {
      const { mentions } = (await anna!.api('GET', `/v1/messages/${id}`)).body;
      assert.match(mentions[0].userId, /^deleted:/);
      assert.equal(mentions[0].type, 'user');
    }
    assert.deepEqual(await sql('SELECT 1 FROM mentions WHERE usr = $1', [no]), []);
    assert.deepEqual(
      await sql(
        'SELECT 1 FROM members WHERE usr = $1 AND (muted OR level IS NOT NULL OR muted_until IS NOT NULL)',
        [no],
      ),
      [],
    );
    assert.deepEqual(await tablesWith(ben!.id), []);
    // A message may go on naming the one who is gone.
    const { mentions } = (await anna!.api('GET', `/v1/messages/${messages[0]}`)).body;
    const again = await anna!.api('PATCH', `/v1/messages/${messages[0]}`, { expectedVersion: 2, mentions });
    assert.deepEqual([again.status, again.body.mentions], [200, mentions]);
    assert.equal((await scene.item(cleo!, group)).mentionUnreadCount, 1, 'others keep theirs');
  });
