import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { plans } from '@parley/protocol';
import { sweepMedia } from '../../src/features/uploads/sweep.ts';
import { assertError } from '../support/api.ts';
import { createScene } from '../support/scene.ts';
import { lazy, setUp, useService } from '../support/use.ts';
import { announce, announcement, complete, eventually, picture, program, ready, transfer } from './files.ts';

describe('files of an environment are bounded by its plan', () => {
  const { service, db, sql } = useService({ own: true });
  const scene = lazy(() => createScene(service.url, 'prod'));
  let conv: string;
  setUp(async () => {
    conv = (await scene.group(null, [await scene.actor()])).id;
  });

  const size = picture.body.length;
  const used = async (): Promise<number> => {
    const rows = await sql(
      `SELECT bytes FROM media_usage u JOIN environments e ON e.no = u.env WHERE e.id = 'env_prod'`,
    );
    return Number(rows[0]?.['bytes'] ?? 0);
  };
  /** Leaves room for so many bytes. */
  const leave = (bytes: number) =>
    sql(`UPDATE media_usage SET bytes = $1 FROM environments e WHERE e.no = env AND e.id = 'env_prod'`, [
      plans.free.mediaBytes! - bytes,
    ]);

  test('the counter holds what is announced, ready, in a message, or not yet removed for good', async () => {
    const before = await used();
    await announce(scene.server, conv, picture);
    const sent = await ready(scene.server, conv);
    const message = await scene.send(null, conv, { attachments: [sent] });
    assert.equal(await used(), before + 2 * size);
    const bad = await transfer(scene.server, conv, { ...picture, body: program });
    assert.equal((await complete(scene.server, bad)).status, 400);
    await scene.server('DELETE', `/v1/messages/${message.id}`);
    const waiting = () => sql('SELECT 1 FROM object_removals WHERE due_at < again_at');
    await eventually(async () => (await waiting()).length === 0, 'both objects are removed');
    assert.equal(
      await used(),
      before + 2 * size + program.length,
      'their tickets could still bring them back',
    );
    // An hour later.
    await sql('UPDATE object_removals SET due_at = now(), again_at = now()');
    await sweepMedia(
      db,
      () => Promise.resolve(),
      () => undefined,
    );
    await eventually(async () => (await used()) === before + size, 'only the announced one is left');
  });

  test('at the bound 429 plan_limit_reached, and nothing is announced', async () => {
    await leave(size - 1);
    const rows = () => sql('SELECT 1 FROM attachments');
    const before = (await rows()).length;
    const error = assertError(await announce(scene.server, conv, picture), 429, 'plan_limit_reached');
    assert.ok(error.retryAfterMs! > 0);
    assert.equal((await rows()).length, before);
    assert.equal(await used(), plans.free.mediaBytes! - size + 1);
    await leave(size);
    assert.equal((await announce(scene.server, conv, picture)).status, 201);
    assertError(await announce(scene.server, conv, picture), 429, 'plan_limit_reached');
  });

  test('announcements at the same time never pass the bound', async () => {
    await leave(5 * size);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => announce(scene.server, conv, picture)),
    );
    assert.equal(answers.filter((a) => a.status === 201).length, 5);
    assert.equal(await used(), plans.free.mediaBytes!);
  });

  test('a refused announcement under an Idempotency-Key is not stored: it works when there is room', async () => {
    const ask = () =>
      scene.server('POST', '/v1/uploads', announcement(conv, picture), { 'idempotency-key': 'quota' });
    await leave(0);
    assertError(await ask(), 429, 'plan_limit_reached');
    await leave(size);
    assert.equal((await ask()).status, 201);
  });

  test('the enterprise plan has no bound', async () => {
    const dev = createScene(service.url, 'dev');
    const { id } = await dev.group(null, [await dev.actor()]);
    await announce(dev.server, id, picture);
    await sql('UPDATE media_usage SET bytes = 1e15');
    assert.equal((await announce(dev.server, id, picture)).status, 201);
  });
});
