import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { sweepMedia } from '../../src/features/uploads/sweep.ts';
import { upload } from '../storage/suite.ts';
import { assertError } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import { announce, complete, eventually, picture, program, ready, transfer } from './files.ts';
import { useService } from '../support/use.ts';

describe('objects go with what they belong to', () => {
  const { service, sql, scene } = useService();
  let alice: Actor;
  let bob: Actor;
  let conv: string;

  const begin = async () => {
    [alice, bob] = await Promise.all([scene.actor('alice'), scene.actor('bob')]);
    conv = (await scene.group(alice, [alice, bob])).id;
  };
  const there = (id: string) => existsSync(join(service.dataDir, 'media', 'objects', 'env_dev', id));
  const removed = (id: string) => eventually(() => !there(id), `${id} is removed`);
  const urlOf = (id: string) => bob.api('GET', `/v1/attachments/${id}/url`);
  const sent = async (fields: Record<string, unknown> = {}) => {
    const id = await ready(alice.api, conv);
    assert.ok(there(id));
    return { id, message: await scene.send(alice, conv, { attachments: [id], ...fields }) };
  };
  /** Something to remove makes the clean-up run now. */
  const sweep = async () => {
    const bad = await transfer(scene.server, conv, { ...picture, body: program });
    assert.equal((await complete(scene.server, bad)).status, 400);
    await removed(bad);
  };

  for (const [kind, query, status] of [
    ['soft', '', 200],
    ['hard', '?hard=true', 204],
  ] as const)
    test(`a ${kind} delete makes the attachment 404 and removes its object; others stay`, async () => {
      await begin();
      const [gone, kept] = [await sent(), await sent()];
      const { url } = (await urlOf(gone.id)).body;
      assert.equal((await scene.server('DELETE', `/v1/messages/${gone.message.id}${query}`)).status, status);
      assertError(await urlOf(gone.id), 404, 'not_found');
      await removed(gone.id);
      assert.equal((await fetch(url)).status, 404, 'a URL handed out before ends too');
      assert.ok(there(kept.id));
      assert.equal((await urlOf(kept.id)).status, 200);
      assertError(await complete(alice.api, gone.id), 404, 'not_found');
    });

  test('erasure with messages=delete removes the objects of the user’s messages and its unused ones', async () => {
    await begin();
    const used = await sent();
    const unused = await ready(alice.api, conv);
    const other = await ready(bob.api, conv);
    assert.equal((await scene.server('DELETE', `/v1/users/${alice.id}?messages=delete`)).status, 204);
    await removed(used.id);
    await removed(unused);
    assertError(await urlOf(used.id), 404, 'not_found');
    assert.ok(there(other));
  });

  test('erasure with messages=anonymize keeps the messages’ attachments and removes unused ones', async () => {
    await begin();
    const used = await sent();
    const unused = await ready(alice.api, conv);
    await scene.server('DELETE', `/v1/users/${alice.id}`);
    await sweep();
    await removed(unused);
    assert.ok(there(used.id));
    assert.equal((await urlOf(used.id)).status, 200);
  });

  test('uploads that nobody completed go an hour after their ticket, unused ones after a day', async () => {
    await begin();
    const pending = await transfer(alice.api, conv, picture);
    const unused = await ready(alice.api, conv);
    const used = await sent();
    const keep = async (id: string) =>
      (
        await sql(
          'SELECT extract(epoch FROM keep_until - coalesce(ready_at, created_at))::int AS s FROM attachments WHERE id = $1',
          [id],
        )
      )[0]!['s'] as number;
    assert.deepEqual([await keep(pending), await keep(unused)], [4_200, 86_400]);
    await sweep();
    assert.ok(there(pending) && there(unused), 'not before their time');
    await sql(`UPDATE attachments SET keep_until = now() - interval '1 second' WHERE id = ANY($1)`, [
      [pending, unused, used.id],
    ]);
    await sweep();
    await removed(pending);
    await removed(unused);
    assertError(await complete(alice.api, pending), 404, 'not_found');
    assertError(await alice.api('GET', `/v1/attachments/${unused}/url`), 404, 'not_found');
    assert.ok(there(used.id), 'one that a message uses stays');
  });

  test('an object uploaded again with the same ticket is removed again', async () => {
    await begin();
    const { body } = await announce(alice.api, conv, { ...picture, body: program });
    assert.equal((await upload(body.upload, program)).status, 201);
    assert.equal((await complete(alice.api, body.attachmentId)).status, 400);
    await removed(body.attachmentId);
    const rows = () =>
      sql('SELECT due_at = again_at AS later FROM object_removals WHERE object_key LIKE $1', [
        `%${body.attachmentId}`,
      ]);
    await eventually(async () => (await rows())[0]?.['later'] === true, 'a second look is planned');
    assert.equal((await upload(body.upload, program)).status, 201);
    await sql('UPDATE object_removals SET due_at = now(), again_at = now() WHERE object_key LIKE $1', [
      `%${body.attachmentId}`,
    ]);
    await sweep();
    await removed(body.attachmentId);
    await eventually(async () => (await rows()).length === 0, 'nothing is left to do');
  });
});

describe('sweepMedia', () => {
  // Nobody else sweeps here.
  const { db, sql } = useService({ env: { CHAT_ROLES: 'api' } });

  const plan = async (count: number) => {
    await sql('DELETE FROM object_removals');
    await sql(
      `INSERT INTO object_removals (env, object_key, resource, again_at, due_at)
       SELECT 1, 'env_dev/o' || n, 'image', now() - interval '1 hour', now() - interval '1 second' FROM generate_series(1, $1::int) n`,
      [count],
    );
  };
  const left = () => sql('SELECT attempts, due_at > now() AS later FROM object_removals');
  const never = () => assert.fail('given up');

  test('works off more than one batch, each object once', async () => {
    await plan(120);
    const seen: string[] = [];
    const done = await sweepMedia(
      db,
      async ({ key }) => {
        seen.push(key);
      },
      never,
    );
    assert.deepEqual(done, { expired: 0, removed: 120, failed: 0 });
    assert.equal(new Set(seen).size, 120);
    assert.deepEqual(await left(), []);
  });

  test('a failed removal comes back later and later, and is given up with a word at the end', async () => {
    await plan(1);
    const fail = () => Promise.reject(new Error('down'));
    const waits: number[] = [];
    const givenUp: number[] = [];
    for (let i = 0; i < 41; i++) {
      await sweepMedia(db, fail, (removal) => givenUp.push(removal.attempts));
      const [row] = await sql(
        `SELECT attempts, extract(epoch FROM due_at - now())::int AS wait FROM object_removals`,
      );
      waits.push(row!['wait'] as number);
      // Well before now: clocks of two processors may differ a little.
      if (i < 40) await sql(`UPDATE object_removals SET due_at = now() - interval '1 minute'`);
    }
    assert.ok(waits[0]! <= 30 && waits[1]! > waits[0]! && waits[5]! > waits[1]!, waits.join(' '));
    assert.ok(Math.max(...waits) <= 21_600);
    assert.deepEqual(givenUp, [40], 'once, and not tried after');
  });

  test('a storage that refuses everything is not asked again in the same sweep', async () => {
    await plan(120);
    let asked = 0;
    const done = await sweepMedia(
      db,
      () => {
        asked += 1;
        return Promise.reject(new Error('down'));
      },
      never,
    );
    assert.equal(asked, 50);
    assert.deepEqual(done, { expired: 0, removed: 0, failed: 50 });
    assert.equal((await left()).filter((r) => r['later']).length, 50);
  });
});
