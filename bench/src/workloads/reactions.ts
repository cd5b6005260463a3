import { pause, timesOf, withRunning } from '../bench.ts';
import type { Bench } from '../bench.ts';
import { api, tenants } from '../servers/parley.ts';
import type { RunningParley } from '../servers/parley.ts';
import { groups, userName } from '../servers/server.ts';
import { format, Histogram } from '../stats.ts';
import type { Latency } from '../stats.ts';
import { pages, restConnections } from './store.ts';

/**
 * Reactions over REST by a tenant's server, for 500 members in turn: to one message, and to 1,000 of one conversation. Twenty
 * sends a second into the same conversation say what it costs them, and pages of history what it costs readers.
 */

const members = 500;
const messages = 1_000;
const sendEveryMs = 50;
const postsAtOnce = 16;
/** What a message of the page has: emoji, each by so many users. */
const shownEmoji = 5;
const shownUsers = 3;
const pageSize = 50;

const [tenant] = tenants as [(typeof tenants)[0]];
const plan = groups('reactions', 2 * members, members);

export async function reactions(bench: Bench): Promise<void> {
  for (let round = 0; round < timesOf(bench); round++)
    await withRunning(bench, bench.freshParley(`reactions-${round}`), async (parley) => {
      const rooms = [...new Set((await parley.accounts(plan)).map((account) => account.speaks!))];
      const [reacted, plain] = [await fill(parley, rooms[0]!, 0), await fill(parley, rooms[1]!, members)];
      const one = [reacted.ids[0]!];
      // Warm, or the first would pay for the compiler.
      await measure(bench, parley, null, requestsOf(reacted.ids.slice(-1)), rooms[0]!);
      await sendsAlone(bench, parley, rooms[0]!);
      await measure(bench, parley, 'one message', requestsOf(one), rooms[0]!);
      await measure(bench, parley, `${format(messages)} messages`, requestsOf(reacted.ids), rooms[0]!);
      await show(parley, reacted.ids.slice(-pageSize));
      const path = (room: string, { last }: { last: number }) =>
        `/v1/conversations/${room}/messages?limit=${pageSize}&before=${last + 1}`;
      await pages(bench, parley, null, '', [path(rooms[1]!, plain)]);
      await pages(bench, parley, 'reactions', 'page without reactions', [path(rooms[1]!, plain)]);
      await pages(bench, parley, 'reactions', `page, ${shownEmoji} emoji a message`, [
        path(rooms[0]!, reacted),
      ]);
    });
}

/** Messages of one member; answers with their ids, the last of which has the seq `last`. */
async function fill(
  parley: RunningParley,
  room: string,
  member: number,
): Promise<{ ids: string[]; last: number }> {
  const sent: { id: string; seq: number }[] = [];
  await each(messages, async () => void sent.push(await post(parley, room, member)));
  sent.sort((a, b) => a.seq - b.seq);
  return { ids: sent.map(({ id }) => id), last: sent.at(-1)!.seq };
}

const post = async (parley: RunningParley, room: string, member: number) =>
  (await api(parley.url, tenant.secretKey)('POST', `/v1/conversations/${room}/messages`, {
    senderId: userName(plan, member),
    text: 'lorem ipsum dolor sit amet consectetur adipiscing elit sed do ei',
  })) as { id: string; seq: number };

/** Every member reacts, then every member takes it back: each request changes something. */
function requestsOf(ids: readonly string[]): string[] {
  const count = Math.max(members, ids.length);
  const head = (method: string, path: string) =>
    `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${tenant.secretKey}\r\n`;
  return ['PUT', 'DELETE'].flatMap((method) =>
    Array.from({ length: count }, (_, i) => {
      const userId = userName(plan, i % members);
      const path = `/v1/messages/${ids[i % ids.length]}/reactions/:yes:`;
      if (method === 'DELETE') return `${head(method, `${path}?userId=${userId}`)}\r\n`;
      const body = JSON.stringify({ userId });
      return `${head(method, path)}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    }),
  );
}

async function sendsAlone(bench: Bench, parley: RunningParley, room: string): Promise<void> {
  const latency = await sendsDuring(parley, room, pause(bench.options.windowMs));
  recordSends(bench, 'sends, nothing else', latency);
}

function recordSends(bench: Bench, metric: string, latency: Latency): void {
  bench.results.add('reactions', 'parley', `${metric}: p50`, 'ms', latency.p50);
  bench.results.add('reactions', 'parley', `${metric}: p99`, 'ms', latency.p99);
  bench.say(`reactions, ${metric}: p50 ${format(latency.p50)}, p99 ${format(latency.p99)} ms`);
}

/** @param what null: nothing is recorded. */
async function measure(
  bench: Bench,
  parley: RunningParley,
  what: string | null,
  requests: string[],
  room: string,
): Promise<void> {
  const { warmMs, windowMs } = bench.options;
  const told = await eventsOf(parley, room);
  const running = bench.load.http(
    { port: parley.port, requests, connections: restConnections, warmMs, windowMs },
    parley.roots,
  );
  const sends = await sendsDuring(parley, room, running);
  const run = await running;
  if (what === null) return;
  if (run.refused > 0)
    bench.results.note(`reactions, ${what}: ${run.refused} refused, the first: ${run.firstRefusal}`);
  const add = (metric: string, unit: string, value: number) =>
    bench.results.add('reactions', 'parley', `${what}: ${metric}`, unit, value);
  const rate = run.answered / run.seconds;
  const events = ((await eventsOf(parley, room)) - told) / ((warmMs + windowMs) / 1_000);
  add('reactions', '/s', rate);
  add('p50', 'ms', run.latency.p50);
  add('p99', 'ms', run.latency.p99);
  add('CPU per reaction', 'µs', (run.serverCpuMs * 1_000) / run.answered);
  add('events', '/s', events);
  bench.say(
    `reactions, ${what}: ${format(rate)}/s, p50 ${format(run.latency.p50)} ms, ${format(events)} events/s`,
  );
  recordSends(bench, `sends beside ${what}`, sends);
}

/** Sends into the room at a pace, until the work is done. */
async function sendsDuring(parley: RunningParley, room: string, work: Promise<unknown>): Promise<Latency> {
  const latency = new Histogram();
  let over = false;
  const end = (): void => void (over = true);
  // A failure is told below.
  work.then(end, end);
  const all: Promise<unknown>[] = [work];
  while (!over) {
    const begin = performance.now();
    all.push(post(parley, room, 1).then(() => latency.record((performance.now() - begin) * 1_000)));
    all.at(-1)!.catch(end);
    await pause(sendEveryMs);
  }
  await Promise.all(all);
  return latency.summary();
}

async function eventsOf(parley: RunningParley, room: string): Promise<number> {
  const { rows } = await parley.sql(
    `SELECT count(*)::int AS n FROM events e JOIN conversations c ON c.env = e.env AND c.no = e.conv
     WHERE c.id = $1 AND e.type = 'message.reactions'`,
    [room],
  );
  return (rows[0] as { n: number }).n;
}

/** What the page with reactions shows. */
async function show(parley: RunningParley, ids: readonly string[]): Promise<void> {
  const call = api(parley.url, tenant.secretKey);
  const all = ids.flatMap((id) =>
    Array.from({ length: shownEmoji * shownUsers }, (_, i) => ({ id, emoji: i % shownEmoji, user: i })),
  );
  await each(all.length, (i) => {
    const { id, emoji, user } = all[i]!;
    return call('PUT', `/v1/messages/${id}/reactions/:e${emoji}:`, { userId: userName(plan, user) });
  });
}

async function each(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: postsAtOnce }, worker));
}
