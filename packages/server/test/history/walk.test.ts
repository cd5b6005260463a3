import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { seed } from '../../../../scripts/seed.ts';
import { migrateHistory } from '../../src/platform/history/open.ts';
import type { Actor } from '../support/scene.ts';
import { use, useService } from '../support/use.ts';
import { startCustomerPostgres } from './servers.ts';
import { depsOf, openStorage } from './world.ts';

/** A random walk against a model: whatever moves between buffer and customer database, every page equals the model's. */

const { service, scene, server, db } = useService({ own: true });
const customer = use(startCustomerPostgres, (c) => c.stop());

interface Modelled {
  id: string;
  seq: number;
  text: string | null;
  sender: string | null;
  version: number;
}

type Step =
  | { kind: 'send' | 'edit' | 'delete' | 'hard' | 'page' | 'get'; at: number; limit: number; up: boolean }
  | {
      kind: 'cool' | 'outage' | 'promote' | 'switch' | 'resync' | 'erase';
      at: number;
      limit: number;
      up: boolean;
    };

const steps = fc.array(
  fc.record({
    kind: fc.constantFrom<Step['kind']>(
      ...([
        'send',
        'send',
        'send',
        'edit',
        'delete',
        'hard',
        'page',
        'page',
        'page',
        'get',
        'cool',
        'cool',
        'outage',
        'promote',
        'switch',
        'resync',
        'erase',
      ] as const),
    ),
    at: fc.nat(1_000),
    limit: fc.integer({ min: 1, max: 12 }),
    up: fc.boolean(),
  }),
  { minLength: 30, maxLength: 30 },
);

test('every page of a random walk equals the model’s', async () => {
  const storage = await openStorage(service, db);
  await storage.connect(await customer.createDatabase());
  await fc.assert(
    fc.asyncProperty(steps, async (walk) => {
      let writer = await scene.actor();
      const other = await scene.actor();
      const { id: cid } = await scene.group(null, [writer, other]);
      let model: Modelled[] = [];
      for (const step of walk) model = await run(step, model);
      await check(model, Number.MAX_SAFE_INTEGER, 200, false);

      async function run(step: Step, now: Modelled[]): Promise<Modelled[]> {
        const chosen = now.length > 0 ? now[step.at % now.length]! : null;
        const live = chosen && chosen.text !== null ? chosen : null;
        switch (step.kind) {
          case 'send': {
            const from: Actor | null = step.up ? writer : step.limit > 6 ? other : null;
            const sent = await scene.send(from, cid, {
              text: `t${step.at}`,
              ...(live && step.limit === 3 ? { replyTo: live.id } : {}),
            });
            return [
              ...now,
              { id: sent.id, seq: sent.seq, text: sent.text, sender: from?.id ?? null, version: 1 },
            ];
          }
          case 'edit': {
            if (!live) return now;
            const edit = { text: `e${step.at}`, expectedVersion: live.version };
            await patient(`/v1/messages/${live.id}`, 'PATCH', edit);
            return now.map((m) => (m === live ? { ...m, text: `e${step.at}`, version: m.version + 1 } : m));
          }
          case 'delete': {
            if (!live) return now;
            await patient(`/v1/messages/${live.id}`, 'DELETE');
            return now.map((m) => (m === live ? { ...m, text: null } : m));
          }
          case 'hard': {
            if (!chosen) return now;
            await patient(`/v1/messages/${chosen.id}?hard=true`, 'DELETE');
            return now.filter((m) => m !== chosen);
          }
          case 'page':
            await check(now, step.at % ((now.at(-1)?.seq ?? 0) + 2), step.limit, step.up);
            return now;
          case 'get': {
            if (!chosen) return now;
            const { body } = await patient(`/v1/messages/${chosen.id}`);
            assert.deepEqual([body.id, body.seq, body.text], [chosen.id, chosen.seq, chosen.text]);
            return now;
          }
          case 'cool':
            if ((await storage.record()).mode === 'byo_db') {
              await storage.settled();
              await db.query(
                `UPDATE messages SET created_at = created_at - interval '10 days', edited_at = edited_at - interval '10 days', deleted_at = deleted_at - interval '10 days'
                 WHERE id IS NOT NULL AND conv = (SELECT no FROM conversations WHERE id = $1) AND seq % 2 = $2`,
                [cid, step.at % 2],
              );
              await db.query(`UPDATE sink_conversations SET oldest_at = '-infinity'`);
              await db.query(`UPDATE storage SET pruned_at = '-infinity'`);
            }
            return now;
          case 'outage':
            await customer.kill();
            await scene
              .send(null, cid, { text: 'during' })
              .then(
                (sent) =>
                  (now = [...now, { id: sent.id, seq: sent.seq, text: 'during', sender: null, version: 1 }]),
              );
            await customer.start();
            await db.query(`UPDATE storage SET due_at = '-infinity'`);
            return now;
          case 'promote': {
            if ((await storage.record()).mode !== 'byo_db') return now;
            const { database } = await storage.settled();
            const next = database.active === 'a' ? 'b' : 'a';
            const made = await storage.api('PUT', `/v1/storage/database/${next}`, { url: await empty() });
            assert.equal(made.status, 200, JSON.stringify(made.body));
            const { status, body } = await storage.api('POST', `/v1/storage/database/promote/${next}`);
            assert.equal(status, 200, JSON.stringify(body));
            return now;
          }
          case 'switch': {
            const { mode, database } = await storage.settled();
            if (mode === 'managed')
              await storage.api('POST', '/v1/storage/database/test', { slot: database.active });
            const { status, body } = await storage.api('PATCH', '/v1/storage', {
              mode: mode === 'managed' ? 'byo_db' : 'managed',
            });
            assert.equal(status, 200, JSON.stringify(body));
            return now;
          }
          case 'resync':
            await storage.api('POST', '/v1/storage/database/resync');
            return now;
          case 'erase': {
            if (step.at % 4 !== 0) return now;
            const gone = writer.id;
            const mode = step.up ? 'delete' : 'anonymize';
            assert.equal((await server('DELETE', `/v1/users/${gone}?messages=${mode}`)).status, 204);
            writer = await scene.actor();
            await server('POST', `/v1/conversations/${cid}/members`, { userIds: [writer.id] });
            return mode === 'delete'
              ? now.filter((m) => m.sender !== gone)
              : now.map((m) => (m.sender === gone ? { ...m, sender: 'deleted' } : m));
          }
        }
      }

      async function check(now: Modelled[], at: number, limit: number, up: boolean): Promise<void> {
        const whole = now
          .filter((m) => (up ? m.seq > at : m.seq < at))
          .sort((a, b) => (up ? a.seq - b.seq : b.seq - a.seq));
        const { body } = await patient(
          `/v1/conversations/${cid}/messages?${up ? 'after' : 'before'}=${at}&limit=${limit}`,
        );
        const wanted = whole.slice(0, limit);
        assert.deepEqual(
          body.data.map((m: any) => [
            m.seq,
            m.id,
            m.text,
            m.senderId?.startsWith('deleted:') ? 'deleted' : m.senderId,
          ]),
          (up ? wanted.reverse() : wanted).map((m) => [m.seq, m.id, m.text, m.sender]),
        );
        assert.equal(body.hasMore, whole.length > limit);
      }
    }),
    { seed: seed('history walk'), numRuns: 3, endOnFailure: true },
  );
});

/** While the customer's database starts again history is unavailable for a while: one comes again, as one is told. */
async function patient(
  path: string,
  method = 'GET',
  input?: unknown,
): Promise<{ status: number; body: any }> {
  for (const deadline = Date.now() + 60_000; ;) {
    const answer = await server(method, path, input);
    if (![429, 503].includes(answer.status) || Date.now() > deadline) {
      assert.ok(answer.status < 300, JSON.stringify(answer.body));
      return answer;
    }
    await delay(Math.min(1_000, answer.body.error.retryAfterMs));
  }
}

/** Another database with its tables. */
async function empty(): Promise<string> {
  const url = await customer.createDatabase();
  await migrateHistory({ url }, depsOf('env_dev'));
  return url;
}
