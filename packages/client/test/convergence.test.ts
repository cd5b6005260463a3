import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ConversationHandle } from '../src/index.ts';
import { seeded } from './fake-clock.ts';
import { Refusal } from './fake-server.ts';
import type { Json } from './fake-server.ts';
import { connected, world } from './harness.ts';
import { seed } from '../../../scripts/seed.ts';

const ops = [
  'send',
  'send',
  'send',
  'edit',
  'delete',
  'hard',
  'rename',
  'read',
  'kick',
  'invite',
  'create',
  'forget',
  'post',
  'post',
  'markRead',
  'markPart',
  'open',
  'open',
  'close',
  'older',
  'jump',
  'mute',
  'cut',
  'wait',
  'wait',
  'wait',
  'wait',
] as const;
const step = fc.record({ op: fc.constantFrom(...ops), n: fc.nat(1_000) });

/**
 * ann's client, while bob writes, an owner manages, and ann uses another device. `trouble` from 0 to 1: how
 * often REST fails; `lossy`: events get lost on the way, as when a node loses its subscription.
 */
async function run(
  seed: number,
  steps: { op: (typeof ops)[number]; n: number }[],
  trouble: number,
  lossy: boolean,
) {
  const { clock, server, client } = world(seed);
  const random = seeded(seed ^ 0x5eed);
  const cids = ['conv_a', 'conv_b'].map((id) => server.create(['ann', 'bob'], id));
  const ann = await connected(client('ann'), clock);
  const pause = () => new Promise<void>((resolve) => clock.setTimeout(resolve, Math.floor(random() * 30)));
  let healthy = false;
  server.latency = () => (healthy ? 0 : Math.floor(random() * 20));
  server.onRest = async (method) => {
    if (healthy) return;
    await pause();
    if (random() >= trouble) return;
    if (random() < 0.5 || method === 'POST') throw new Error('cut on the way');
    throw new Refusal('service_unavailable', 503, 50);
  };
  const drops = new WeakSet<object>();
  const posted: Record<string, string[]> = {};
  const handles = new Map<string, ConversationHandle>();
  const background: Promise<unknown>[] = [];
  const later = (p: Promise<unknown>) => background.push(p.catch(() => {}));
  for (const { op, n } of steps) {
    for (const socket of server.sockets) {
      if (!lossy || drops.has(socket)) continue;
      drops.add(socket);
      const push = socket.push.bind(socket);
      socket.push = (frame) => void (frame.t === 'event' && !healthy && random() < 0.2 ? null : push(frame));
    }
    const cid = cids[n % cids.length]!;
    const conv = server.conversations.get(cid)!;
    const inside = conv.members.has('ann');
    const message = conv.messages[n % (conv.messages.length || 1)];
    const handle = handles.get(cid);
    if (op === 'send') server.send(cid, 'bob', { text: `bob ${n}` });
    else if (op === 'edit' && message && !message.deletedAt) server.edit(message.id, `edit ${n}`);
    else if (op === 'delete' && message) server.delete(message.id);
    else if (op === 'hard' && message) server.delete(message.id, true);
    else if (op === 'rename') server.rename(cid, `name ${n}`);
    else if (op === 'read' && inside) server.read(cid, 'ann', n % (conv.events.length + 1));
    else if (op === 'kick' && inside && n % 3 === 0) server.removeMember(cid, 'ann');
    else if (op === 'invite' && !inside) server.addMember(cid, 'ann');
    else if (op === 'create' && cids.length < 5) cids.push(server.create(['ann', 'bob']));
    else if (op === 'forget') server.floor = n % 30;
    else if (op === 'post' && inside) {
      const text = `ann ${n} ${posted[cid]?.length ?? 0}`;
      (posted[cid] ??= []).push(text);
      ann.conversations.send(cid, text);
    } else if (op === 'markRead') ann.conversations.markRead(cid);
    else if (op === 'markPart') ann.conversations.markRead(cid, n % (conv.events.length + 1));
    else if (op === 'open' && !handle) handles.set(cid, ann.conversations.open(cid));
    else if (op === 'close' && handle && n % 3 === 0) {
      handle.close();
      handles.delete(cid);
    } else if (op === 'older' && handle) later(handle.loadOlder());
    else if (op === 'jump' && handle) later(handle.jumpTo(n % (conv.events.length + 1)));
    else if (op === 'mute' && handle && inside) later(handle.mute(n % 2 === 0));
    else if (op === 'cut') for (const socket of server.sockets) socket.end(1006, '');
    else if (op === 'wait') await clock.advance(n / 10);
  }
  healthy = true;
  if (lossy) for (const socket of server.sockets) socket.end(1006, '');
  for (let i = 0; i < 8; i++) {
    await clock.advance(15_000);
    for (const socket of server.sockets) socket.push({ t: 'hb', d: {} });
  }
  await Promise.all(background);
  return { ann, server, clock, handles, posted };
}

async function check({ ann, server, clock, handles, posted }: Awaited<ReturnType<typeof run>>) {
  assert.equal(ann.state, 'connected');
  const fields = ({ id, name, lastSeq, unreadCount, lastReadSeq, lastMessage }: Json) => ({
    id,
    name,
    lastSeq,
    unreadCount,
    lastReadSeq,
    lastMessage: lastMessage?.text ?? null,
  });
  const expected = server.of('ann').map((conv) => fields(server.listItem(conv, 'ann')));
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
  assert.deepEqual(ann.conversations.get().items.map(fields).sort(byId), expected.sort(byId));
  for (const [cid, handle] of handles) {
    if (!server.conversations.get(cid)!.members.has('ann')) {
      assert.equal(handle.messages.get().status, 'removed');
      continue;
    }
    assert.equal(handle.messages.get().status, 'ready');
    while (handle.messages.get().hasNewer) await handle.loadNewer();
    while (handle.messages.get().hasOlder) await handle.loadOlder();
    const shown = handle.messages.get().items.map(({ id, text, seq, status }) => ({ id, text, seq, status }));
    const real = server.conversations.get(cid)!.messages;
    assert.deepEqual(
      shown.filter((m) => m.status === 'sent'),
      real.map(({ id, text, seq }) => ({ id, text, seq, status: 'sent' })),
    );
  }
  // What was posted is there once and in order, unless ann was put out meanwhile, or it was changed since.
  for (const [cid, texts] of Object.entries(posted)) {
    const events = server.conversations.get(cid)!.events;
    const arrived = events
      .filter((e) => e.e === 'message.new' && e.d.message.senderId === 'ann')
      .map((e) => (e.d as { message: { text: string } }).message.text);
    const kicked = events.some((e) => e.e === 'member.removed');
    if (kicked) assert.deepEqual(arrived, texts.slice(0, arrived.length));
    else assert.deepEqual(arrived, texts);
  }
  ann.disconnect();
  await clock.advance(0);
  assert.equal(clock.pending, 0, 'no timer is left behind');
}

type Steps = Parameters<typeof run>[1];
const parse = (text: string): Steps =>
  text
    .split(' ')
    .map((part) => ({ op: part.split(':')[0] as Steps[0]['op'], n: Number(part.split(':')[1]) }));

/** Found by the runs below. */
const addedAgainDuringRefresh = parse(
  'send:0 send:0 send:0 post:0 send:0 open:105 send:0 close:69 send:703 hard:639 wait:160 send:0 open:51 send:0 send:0 send:0 send:0 cut:0 wait:948 kick:621 post:0 markPart:527 wait:293 wait:694 wait:45 invite:93',
);

const runs = (n: number) => Number(process.env.RUNS ?? n);

test('convergence: state after any events equals a fresh fetch, unread equals a recount', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.array(step, { maxLength: 120, size: 'max' }), async (start, steps) =>
      check(await run(start, steps, 0, false)),
    ),
    { seed: seed('convergence'), numRuns: runs(60), examples: [[1620477356, addedAgainDuringRefresh]] },
  );
});

test('convergence: also when REST fails, sockets are cut and events are lost', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.array(step, { maxLength: 120, size: 'max' }), async (start, steps) =>
      check(await run(start, steps, 0.3, true)),
    ),
    { seed: seed('convergence with faults'), numRuns: runs(60) },
  );
});
