import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { ParleyError } from '../src/errors.ts';
import { fileStorage } from '../src/outbox/file.ts';
import { keyValueStorage } from '../src/outbox/key-value.ts';
import { memoryStorage } from '../src/outbox/memory.ts';
import { Outbox } from '../src/outbox/outbox.ts';
import type { OutboxEntry, Storage } from '../src/outbox/storage.ts';
import { FakeClock, seeded, settle } from './fake-clock.ts';
import { seed } from '../../../scripts/seed.ts';

type Fate = 'ok' | 'lost' | 'transient' | 'final' | 'cut';

/** A server that deduplicates, behind a wire whose fate the test decides for each send. */
function wire(seed = 1) {
  const clock = new FakeClock();
  const random = seeded(seed);
  const log: string[] = [];
  const known = new Map<string, number>();
  let ids = 0;
  const w = {
    clock,
    log,
    attempts: 0,
    inFlight: 0,
    fate: (): Fate => 'ok',
    tab(storage: Storage) {
      const outbox: Outbox = new Outbox({
        storage,
        clock,
        random,
        newId: () => `m${++ids}`,
        send: async ({ clientMsgId, conversationId }) => {
          w.attempts++;
          w.inFlight++;
          const fate = w.fate();
          await new Promise<void>((resolve) => clock.setTimeout(resolve, Math.floor(random() * 20)));
          w.inFlight--;
          if (fate === 'transient') throw new ParleyError('rate_limited', '', { retryAfterMs: 100 });
          if (fate === 'final') throw new ParleyError('forbidden');
          if (fate === 'cut') {
            outbox.offline();
            throw new ParleyError('disconnected');
          }
          if (!known.has(clientMsgId)) {
            known.set(clientMsgId, log.push(`${conversationId}:${clientMsgId}`));
          }
          if (fate === 'lost') {
            outbox.offline();
            throw new ParleyError('disconnected');
          }
          return { id: `msg_${clientMsgId}`, seq: known.get(clientMsgId)!, createdAt: '' };
        },
        onChange: () => {},
        onEnd: () => {},
        onError: (e) => assert.fail(e),
      });
      return outbox;
    },
  };
  return w;
}

const live = (entries: readonly OutboxEntry[]) => entries.filter((e) => e.status !== 'sent');

test('order kept, nothing doubled or lost: random acks, errors, cuts, restarts and two tabs', async () => {
  const step = fc.record({
    op: fc.constantFrom('add', 'add', 'add', 'wait', 'online', 'offline', 'restart', 'retry', 'discard'),
    tab: fc.integer({ min: 0, max: 1 }),
    conversation: fc.constantFrom('c1', 'c2'),
    n: fc.nat(200),
  });
  const fates = fc.array(fc.constantFrom<Fate>('ok', 'ok', 'lost', 'transient', 'final', 'cut'), {
    maxLength: 30,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.integer(),
      fc.array(step, { maxLength: 60, size: 'max' }),
      fates,
      fc.boolean(),
      async (start, steps, plan, shared) => {
        const w = wire(start);
        const storage = shared ? memoryStorage() : keyValueStorage(new MapStore());
        const tabs = [w.tab(storage), ...(shared ? [w.tab(storage)] : [])];
        for (const tab of tabs) await tab.open('u/');
        w.fate = () => plan.shift() ?? 'ok';
        const expected: Record<string, string[]> = { c1: [], c2: [] };
        for (const { op, tab: t, conversation, n } of steps) {
          await settle(); // A discard that crosses another tab's send is too late.
          const at = t % tabs.length;
          const tab = tabs[at]!;
          const entries = live(tab.entries(conversation));
          const entry = entries[n % (entries.length || 1)];
          if (op === 'add') {
            expected[conversation]!.push(tab.add(conversation, { text: `${n}` }).clientMsgId);
            await w.clock.advance(1);
          } else if (op === 'wait') await w.clock.advance(n);
          else if (op === 'online' || op === 'offline') tab[op]();
          else if (op === 'restart') {
            tab.offline();
            await w.clock.advance(50);
            tabs[at] = w.tab(storage);
            await tabs[at].open('u/');
          } else if (op === 'retry' && entry) tab.retry(entry.clientMsgId);
          else if (op === 'discard' && entry && w.inFlight === 0) {
            // What reached the server stays there, whether or not its ack came back.
            const sent = w.log.includes(`${conversation}:${entry.clientMsgId}`);
            if (tab.discard(entry.clientMsgId) && !sent)
              expected[conversation] = expected[conversation]!.filter((id) => id !== entry.clientMsgId);
            await settle();
          }
        }
        plan.length = 0;
        for (let round = 0; round < 5; round++) {
          for (const tab of tabs) {
            tab.online();
            for (const cid of ['c1', 'c2'])
              for (const entry of live(tab.entries(cid))) tab.retry(entry.clientMsgId);
          }
          await w.clock.advance(60_000);
        }
        for (const cid of ['c1', 'c2']) {
          assert.deepEqual(
            w.log.filter((l) => l.startsWith(cid)),
            expected[cid]!.map((id) => `${cid}:${id}`),
          );
          for (const tab of tabs) assert.deepEqual(live(tab.entries(cid)), []);
        }
      },
    ),
    { seed: seed('outbox'), numRuns: Number(process.env.RUNS ?? 200) },
  );
});

class MapStore {
  map = new Map<string, string>();
  getItem = async (key: string) => this.map.get(key) ?? null;
  setItem = async (key: string, value: string) => void this.map.set(key, value);
}

test('sdk#outbox: resent on the next launch within 24 hours, afterwards failed until retried', async () => {
  for (const [hours, sends] of [
    [23.9, 1],
    [24.1, 0],
  ] as const) {
    const w = wire();
    const storage = keyValueStorage(new MapStore());
    const before = w.tab(storage);
    await before.open('u/');
    const { clientMsgId } = before.add('c1', { text: 'x' });
    await w.clock.advance(hours * 3_600_000);
    const after = w.tab(storage);
    await after.open('u/');
    after.online();
    await w.clock.advance(1_000);
    assert.equal(w.attempts, sends);
    if (sends) continue;
    assert.equal(after.errorOf(after.entries('c1')[0]!)!.code, 'expired');
    after.retry(clientMsgId);
    await w.clock.advance(1_000);
    assert.deepEqual(w.log, [`c1:${clientMsgId}`]);
  }
});

test('sdk#outbox: what a slow storage brings after the connection is sent', async () => {
  const w = wire();
  const storage = memoryStorage();
  const before = w.tab(storage);
  await before.open('u/');
  const { clientMsgId } = before.add('c1', { text: 'x' });
  await settle();
  let load!: () => void;
  const loaded = new Promise<void>((done) => (load = done));
  const after = w.tab({ ...storage, list: (prefix) => loaded.then(() => storage.list(prefix)) });
  const opening = after.open('u/');
  await after.open('u/');
  after.online();
  load();
  await opening;
  await w.clock.advance(1_000);
  assert.deepEqual(w.log, [`c1:${clientMsgId}`]);
});

test('what another user left behind is neither shown nor sent', async () => {
  const w = wire();
  const storage = memoryStorage();
  const ann = w.tab(storage);
  await ann.open('env/ann/');
  ann.add('c1', { text: 'secret' });
  await settle();
  const bob = w.tab(storage);
  await bob.open('env/bob/');
  bob.online();
  await w.clock.advance(1_000);
  assert.equal(w.attempts, 0);
  assert.deepEqual(bob.entries('c1'), []);
});

test('two tabs: a stored outbox is flushed once, and both show it sent', async () => {
  const w = wire();
  const storage = memoryStorage();
  const old = w.tab(storage);
  await old.open('u/');
  for (let i = 0; i < 5; i++) old.add('c1', { text: `${i}` });
  await settle();
  const tabs = [w.tab(storage), w.tab(storage)];
  for (const tab of tabs) await tab.open('u/');
  for (const tab of tabs) assert.equal(tab.entries('c1').length, 5);
  for (const tab of tabs) tab.online();
  await w.clock.advance(1_000);
  assert.equal(w.attempts, 5);
  for (const tab of tabs) assert.deepEqual(live(tab.entries('c1')), []);
});

test('a storage that fails does not hold messages back', async () => {
  const w = wire();
  const broken = async () => {
    throw new Error('denied');
  };
  const errors: string[] = [];
  const outbox = new Outbox({
    storage: { list: broken, set: broken, delete: broken, lock: broken },
    clock: w.clock,
    random: () => 0.5,
    newId: () => 'm1',
    send: async ({ clientMsgId }) => {
      w.log.push(clientMsgId);
      return { id: 'msg_1', seq: 1, createdAt: '' };
    },
    onChange: () => {},
    onEnd: () => {},
    onError: (e) => errors.push(e.message),
  });
  await outbox.open('u/');
  outbox.online();
  outbox.add('c1', { text: 'x' });
  await w.clock.advance(1_000);
  assert.deepEqual(w.log, ['m1']);
  assert.ok(errors.includes('denied'));
});

test('fileStorage keeps entries across processes, and a half-written file is never read', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'parley-outbox-'));
  try {
    const path = join(dir, 'outbox.json');
    const first = fileStorage(path);
    await Promise.all([first.set('a/1', { n: 1 }), first.set('a/2', { n: 2 }), first.set('b/1', { n: 3 })]);
    await first.delete('a/1');
    assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), { 'a/2': { n: 2 }, 'b/1': { n: 3 } });
    assert.deepEqual(await fileStorage(path).list('a/'), [{ n: 2 }]);
  } finally {
    await rm(dir, { recursive: true });
  }
});
