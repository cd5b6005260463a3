import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../../../../client/test/chaos/random.ts';
import type { Ask } from './service.ts';

/** Whoever talks in one environment, and what was acknowledged to them. */

export interface State {
  text: string | null;
  version: number;
  deleted: boolean;
  hard: boolean;
}

export interface Entry {
  id: string;
  seq: number;
  conversation: string;
  /** As it was last acknowledged. */
  is: State;
  /** As it is if a change without an answer was carried out. */
  maybe: State | null;
  /** The customer restored a backup that does not have it, when it had left our store: nobody has it. */
  isGivenUp: boolean;
}

export interface Talk {
  id: string;
  name: string;
  members: Map<string, boolean>;
}

export interface Ledger {
  entries: Map<string, Entry>;
  talks: Talk[];
  counts: Record<'sends' | 'edits' | 'deletes' | 'members' | 'renames' | 'pages' | 'unavailable', number>;
  /** What was wrong when it happened. */
  problems: string[];
}

/** Of one environment: conversations, and how many people write in each at once. */
const conversations = 3;
const writers = 3;
const others = 8;
/** Milliseconds after which a change of an old message is given up while the customer's database is away. */
const changeMs = 3_000;
const pageSizes = [5, 20, 50, 200];

export async function openLedger(ask: Ask): Promise<Ledger> {
  const talks: Talk[] = [];
  for (let i = 0; i < conversations; i++) {
    const members = Array.from({ length: writers }, (_, n) => `writer-${i}-${n}`);
    const name = `talk ${i}`;
    const made = await ask('POST', '/v1/conversations', { type: 'group', members, name });
    assert.equal(made.status, 201);
    talks.push({ id: made.body.id as string, name, members: new Map(members.map((id) => [id, true])) });
  }
  const counts = { sends: 0, edits: 0, deletes: 0, members: 0, renames: 0, pages: 0, unavailable: 0 };
  return { entries: new Map(), talks, counts, problems: [] };
}

/** Everybody talks until it is over; then what was begun has got its answer. */
export async function talk(
  ledger: Ledger,
  ask: Ask,
  random: Random,
  actMs: number,
  over: () => boolean,
): Promise<void> {
  const acts = ledger.talks.flatMap((of, i) => [
    ...Array.from({ length: writers }, (_, n) => writer(ledger, ask, of, `writer-${i}-${n}`, random.fork())),
    keeper(ledger, ask, of, random.fork()),
    reader(ledger, ask, of, random.fork()),
  ]);
  await Promise.all(
    acts.map(async (act) => {
      const pace = random.fork();
      while (!over()) {
        await act();
        await delay(actMs * (0.5 + pace.next()));
      }
    }),
  );
}

function writer(ledger: Ledger, ask: Ask, { id: conversation }: Talk, senderId: string, random: Random) {
  const own: Entry[] = [];
  let said = 0;

  async function send(): Promise<void> {
    const text = `${senderId} says ${said++}`;
    const fields = { senderId, clientMsgId: text, text };
    const sent = await ask('POST', `/v1/conversations/${conversation}/messages`, fields);
    if (sent.status !== 201) {
      ledger.problems.push(`${text} was refused: ${JSON.stringify(sent)}`);
      return;
    }
    const { id, seq } = sent.body as { id: string; seq: number };
    if (seq <= (own.at(-1)?.seq ?? 0)) ledger.problems.push(`${text} has seq ${seq}, as if it came earlier`);
    const is = { text, version: 1, deleted: false, hard: false };
    const entry = { id, seq, conversation, is, maybe: null, isGivenUp: false };
    if (ledger.entries.has(id)) ledger.problems.push(`${id} was acknowledged for two messages`);
    ledger.entries.set(id, entry);
    own.push(entry);
    ledger.counts.sends++;
  }

  /** @param done tells whether the answer says that the change was carried out. */
  async function change(
    entry: Entry,
    to: State,
    request: [method: string, path: string, body?: object],
    done: (status: number | null, unsure: boolean) => boolean,
  ): Promise<boolean> {
    const { status, unsure } = await ask(...pad(request), changeMs);
    if (done(status, unsure)) {
      entry.is = to;
      entry.maybe = null;
      return true;
    }
    if (status === 409 && entry.maybe) {
      entry.is = entry.maybe;
      entry.maybe = null;
    } else if (status === null && unsure) entry.maybe = to;
    return false;
  }
  const pad = ([method, path, body]: [string, string, object?]): [string, string, object | undefined] => [
    method,
    path,
    body,
  ];

  async function edit(entry: Entry): Promise<void> {
    const { version: expectedVersion } = entry.is;
    const text = `${entry.is.text} +`;
    const to = { ...entry.is, text, version: expectedVersion + 1 };
    // Nobody else edits it: a conflict after a request without an answer means that this one was carried out.
    const path = `/v1/messages/${entry.id}`;
    const isDone = (status: number | null, unsure: boolean) =>
      status === 200 || (status === 409 && unsure && entry.maybe === null);
    if (await change(entry, to, ['PATCH', path, { text, expectedVersion }], isDone)) ledger.counts.edits++;
  }

  async function remove(entry: Entry, hard: boolean): Promise<void> {
    const to = { ...entry.is, text: null, deleted: true, hard };
    const path = `/v1/messages/${entry.id}${hard ? '?hard=true' : ''}`;
    const isDone = (status: number | null, unsure: boolean) =>
      status === (hard ? 204 : 200) || (hard && status === 404 && unsure);
    if (await change(entry, to, ['DELETE', path], isDone)) ledger.counts.deletes++;
  }

  return async (): Promise<void> => {
    const dice = random.next();
    const usable = own.filter((e) => !e.is.deleted && !e.maybe?.deleted && !e.isGivenUp);
    if (dice < 0.7 || usable.length === 0) return send();
    // Now and then an old one.
    const entry = random.pick(random.chance(0.5) ? usable : usable.slice(-5));
    if (dice < 0.9) return edit(entry);
    return remove(entry, dice > 0.97);
  };
}

/** Adds and removes members, and changes the name. */
function keeper(ledger: Ledger, ask: Ask, of: Talk, random: Random) {
  const path = `/v1/conversations/${of.id}`;
  return async (): Promise<void> => {
    if (random.chance(0.2)) {
      const name = `${of.id.slice(-4)} is named ${ledger.counts.renames}`;
      const { status } = await ask('PATCH', path, { name });
      assert.equal(status, 200, 'a name was changed');
      of.name = name;
      ledger.counts.renames++;
      return;
    }
    const user = `guest-${random.int(others)}`;
    const isIn = of.members.get(user) ?? false;
    const { status } = isIn
      ? await ask('DELETE', `${path}/members/${user}`)
      : await ask('POST', `${path}/members`, { userIds: [user] });
    // Already so after a request without an answer.
    const isDone = isIn ? [204, 404] : [200, 409];
    assert.ok(isDone.includes(status!), `a member was ${isIn ? 'removed' : 'added'}: ${status}`);
    of.members.set(user, !isIn);
    ledger.counts.members++;
  };
}

/** Reads a page anywhere; what it shows is in order, and nothing of it twice. */
function reader(ledger: Ledger, ask: Ask, of: Talk, random: Random) {
  return async (): Promise<void> => {
    const last = Math.max(
      2,
      ...[...ledger.entries.values()].filter((e) => e.conversation === of.id).map((e) => e.seq),
    );
    const query = `limit=${random.pick(pageSizes)}&before=${2 + random.int(last)}`;
    const page = await ask('GET', `/v1/conversations/${of.id}/messages?${query}`, undefined, 0);
    if (page.status === null) {
      ledger.counts.unavailable++;
      return;
    }
    assert.equal(page.status, 200, JSON.stringify(page));
    ledger.counts.pages++;
    const seqs = (page.body.data as { seq: number }[]).map((m) => m.seq);
    if (seqs.some((seq, i) => i > 0 && seq >= seqs[i - 1]!))
      ledger.problems.push(`a page of ${of.id} with ${query} is not in order: ${seqs.join()}`);
  };
}

/** Whether what was found is what was acknowledged. */
export function isAsSaid(entry: Entry, found: Partial<State> | undefined): boolean {
  return [entry.is, ...(entry.maybe ? [entry.maybe] : [])].some((said) => {
    if (said.hard) return found === undefined || found.hard === true;
    if (!found || found.hard) return false;
    if (said.deleted) return found.deleted === true;
    return found.deleted === false && found.text === said.text && found.version === said.version;
  });
}
