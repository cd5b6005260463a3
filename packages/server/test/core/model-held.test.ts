import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { SyncResult } from '@parley/protocol';
import { lockConversation } from '../../src/log/sql/lock.ts';
import { record } from '../../src/log/record.ts';
import type { Tx } from '../../src/platform/postgres/db.ts';
import { seed } from '../../../../scripts/seed.ts';
import { clientApi } from '../support/api.ts';
import { useService } from '../support/use.ts';
import { hold } from './log-tools.ts';
import { operation, operations, World } from './model-operations.ts';
import type { Step } from './model-operations.ts';
import type { ModelConversation } from './model.ts';
import { times } from './tools.ts';

/**
 * events#sync-clock: what the next sync brings is never missing, also where transactions are left open while others commit and clients
 * sync. The clients here take no advantage of the 5 s that sync looks back: those would hide what a short test misses.
 */

const { service, server, db } = useService({ own: true });

const lookBackMs = 5_000;
const maxHeld = 3;
const runs = 12;
const script = fc.array(
  fc.oneof(...operations, operation('hold', 6), operation('release', 5), operation('sync', 14)),
  { minLength: 30, maxLength: 60, size: 'max' },
);
const silent = { publish: () => undefined, committed: () => undefined, unconfirmed: () => undefined };

/** What a client has put together from its syncs. */
interface Replica {
  cursor: string | null;
  known: Map<string, string>;
}

const timeOf = (cursor: string): number => Number.parseInt(cursor.split('.')[1]!, 36);
const strict = (cursor: string): string =>
  cursor.replace(/\.\w+/, `.${(timeOf(cursor) + lookBackMs - 1).toString(36)}`);

/** A change that is stamped now and committed at the release. */
async function rename(tx: Tx, conv: ModelConversation): Promise<void> {
  const locked = (await lockConversation(tx, 1, conv.id))!;
  await tx.query('UPDATE conversations SET name = $2 WHERE id = $1', [conv.id, conv.name]);
  const { id, type, name, lastSeq, createdAt } = locked;
  const conversation = { id, type, name, lastSeq, createdAt, metadata: {}, members: [] };
  await record(silent, tx, locked, [
    { type: 'conversation.updated', actor: null, conversation, data: { name: conv.name! } },
  ]);
}

const now = async (): Promise<number> =>
  (await db.query<{ ms: number }>('SELECT now_ms AS ms FROM sync_clock()'))[0]!.ms;

test('with transactions left open at random, every sync brings what was missing and no cursor passes one of them', async () => {
  let worlds = 0;
  let names = 0;
  await fc.assert(
    fc.asyncProperty(script, async (steps) => {
      const n = ++worlds;
      const users = times(3, (i) => `held${n}.u${i}`);
      const clients = await Promise.all(
        users.map(async (user) => [user, await clientApi(service.url, user)] as const),
      );
      const world = new World(server, new Map(clients));
      const { model } = world;
      const replicas = new Map(
        users.map((user): [string, Replica] => [user, { cursor: null, known: new Map() }]),
      );
      const held = new Map<ModelConversation, { release: () => Promise<void>; since: number }>();

      const sync = async (user: string): Promise<void> => {
        const replica = replicas.get(user)!;
        const answer = await world.clients.get(user)!('POST', '/v1/sync', {
          cursor: replica.cursor && strict(replica.cursor),
        });
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        const { conversations, removed, cursor, fullReload } = answer.body as SyncResult;
        assert.equal(fullReload, false);
        for (const { since } of held.values())
          assert.ok(timeOf(cursor) <= since, 'a cursor does not pass a transaction that is open');
        for (const id of removed) replica.known.delete(id);
        for (const { id, lastSeq, unreadCount } of conversations)
          replica.known.set(id, `${lastSeq} ${unreadCount}`);
        replica.cursor = cursor;
      };
      const release = async (conv: ModelConversation): Promise<void> => {
        const { release: letGo } = held.get(conv)!;
        held.delete(conv);
        await letGo();
      };
      const run = async (step: Step): Promise<void> => {
        const user = users[step.user % users.length]!;
        if (step.name === 'sync') return sync(user);
        if (step.name === 'release') {
          const [first] = held.keys();
          return first && release(first);
        }
        const conv = model.conversations[step.conv % Math.max(1, model.conversations.length)];
        if (step.name === 'hold') {
          if (!conv || conv.deleted || held.has(conv) || held.size === maxHeld) return undefined;
          conv.name = `name ${++names} of ${n}`;
          const letGo = await hold(db, (tx) => rename(tx, conv));
          held.set(conv, { release: letGo, since: await now() });
          // Nobody else gets at it until the release: it may as well have happened.
          model.append(conv, 'conversation.updated');
          return undefined;
        }
        const other = users[step.other % users.length]!;
        const touched =
          step.name === 'createDirect'
            ? model.conversations.find(
                (c) => c.type === 'direct' && c.members.has(user) && c.members.has(other),
              )
            : step.name === 'createGroup'
              ? undefined
              : conv;
        return touched && held.has(touched) ? undefined : world.run(step);
      };

      try {
        for (const step of steps) await run(step);
      } finally {
        for (const conv of [...held.keys()]) await release(conv);
      }
      for (const user of users) {
        await sync(user);
        const expected = model.listOf(user).map((c) => [c.id, `${c.events.length} ${model.unread(c, user)}`]);
        assert.deepEqual([...replicas.get(user)!.known].sort(), expected.sort());
      }
    }),
    { seed: seed('held transactions'), numRuns: runs, verbose: 1 },
  );
});
