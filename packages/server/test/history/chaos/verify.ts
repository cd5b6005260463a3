import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Customer } from './customers.ts';
import { isAsSaid } from './ledger.ts';
import type { Entry, Ledger, State } from './ledger.ts';
import type { Admin, Ask } from './service.ts';
import { placeOf } from './store.ts';
import type { Store } from './store.ts';

/** What must hold at the end: every acknowledged message once, in order, in its last version, here or there. */

export interface Scene {
  customer: Customer;
  ledger: Ledger;
  ask: Ask;
  admin: Admin;
}

/** So long without any progress is a failure. */
const standstillMs = 150_000;
/** A page of a database that is up: the circuit may be open for 30 s. Where one page stays away, the others are not waited for so long. */
const pageMs = 45_000;
const nextMs = 3_000;
/** Of one kind, so many are described. */
const mostShown = 5;

/** Waits until nothing is left to write or to copy. */
export async function drained({ admin, customer }: Scene, where?: 'managed'): Promise<any> {
  let before = '';
  for (let deadline = 0; ; await delay(250)) {
    const { body } = await admin('GET', '/v1/storage');
    const { backlog, copy, refused, erasures, error } = body.sink;
    if (backlog === 0 && copy === null && erasures === 0 && (!where || body.mode === where)) return body;
    const now = JSON.stringify([backlog, copy?.kind, copy?.done, refused, erasures]);
    if (now !== before) deadline = Date.now() + standstillMs;
    before = now;
    assert.ok(Date.now() < deadline, `the sink of ${customer.env.id} stands still: ${now} ${error}`);
  }
}

/** Everything is healed. Returns what is wrong, and how many messages only the customer's database had. */
export async function verify(
  scene: Scene,
  store: Store,
  log: (line: string) => void,
): Promise<{ problems: string[]; cold: number }> {
  const { customer, ledger, admin } = scene;
  const { env } = customer;
  const problems = [...ledger.problems];
  const wrong = async (where: string, entries: { entry: Entry; found: unknown }[]): Promise<void> => {
    for (const { entry, found } of entries.slice(0, mostShown))
      problems.push(
        `${env.id}, ${where}: ${entry.id} (seq ${entry.seq} of ${entry.conversation}) was ${JSON.stringify(entry.is)}` +
          `${entry.maybe ? ` or ${JSON.stringify(entry.maybe)}` : ''} and is ${JSON.stringify(found ?? null)}; ` +
          `in our store: ${await store.describe(env.id, entry.conversation, entry.seq)}`,
      );
    if (entries.length > mostShown) problems.push(`${env.id}, ${where}: ${entries.length} in all`);
  };

  for (const what of await store.ahead(env.id))
    problems.push(`${env.id} sleeps: ${what}, though no clock is wrong any more`);
  await store.hurry(env.id);
  let record = await drained(scene);
  if (record.mode === 'managed') {
    // The last test of a slot may be one that failed while its database was broken.
    for (const slot of ['a', 'b']) await admin('POST', '/v1/storage/database/test', { slot });
    const { status, body } = await admin('PATCH', '/v1/storage', { mode: 'byo_db' });
    if (status !== 200) problems.push(`${env.id}: no switch to its own database: ${JSON.stringify(body)}`);
    record = await drained(scene);
  }
  if (record.sink.refused > 0) {
    await admin('POST', '/v1/storage/database/resync');
    record = await drained(scene);
    if (record.sink.refused > 0) problems.push(`${env.id}: ${record.sink.refused} records stay refused`);
  }

  // All of it becomes old, so that every page but the last message is the customer's.
  await store.age(env.id);
  for (const deadline = Date.now() + standstillMs; (await store.old(env.id)) > 0; await delay(250))
    if (Date.now() > deadline) {
      problems.push(`${env.id}: ${await store.old(env.id)} old messages do not leave`);
      break;
    }
  const cold = (await store.cold(env.id)).size;
  log(`${env.id}: ${cold} of ${ledger.entries.size} messages are with the customer only`);

  await wrong('through the service', await walk(scene, 'own database', problems));
  await wrong('in the customer’s database', await inspect(scene, record.database.active, problems));
  await people(scene, problems);

  await admin('PATCH', '/v1/storage', { mode: 'managed' });
  await drained(scene, 'managed');
  for (const place of Object.values(customer.places)) {
    place.closed = true;
    place.proxy.cut();
  }
  await wrong('after all came back', await walk(scene, 'managed again', problems));
  const away = await store.cold(env.id);
  const left = [...ledger.entries.values()].filter(
    (e) => !e.isGivenUp && !e.is.hard && !e.maybe?.hard && away.has(placeOf(e.conversation, e.seq)),
  );
  await wrong(
    'managed, and not here',
    left.map((entry) => ({ entry, found: undefined })),
  );
  return { problems, cold };
}

type Found = Partial<State> & { id: string; seq: number };

/** Reads all pages of all conversations, down and up. Returns what is not as it was acknowledged. */
async function walk(
  { ask, ledger, customer }: Scene,
  stage: string,
  problems: string[],
): Promise<{ entry: Entry; found: unknown }[]> {
  const differences = new Map<string, { entry: Entry; found: unknown }>();
  let patience = pageMs;
  for (const { id } of ledger.talks)
    for (const way of ['before', 'after'] as const) {
      const found = new Map<string, Found>();
      let isWhole = true;
      for (let from: number | null = way === 'before' ? Number.MAX_SAFE_INTEGER : 0; from !== null;) {
        const path = `/v1/conversations/${id}/messages?limit=50&${way}=${from}`;
        const page = await ask('GET', path, undefined, patience);
        if (page.status !== 200) {
          problems.push(`${customer.env.id}, ${stage}: ${path} stays ${page.status ?? 'unavailable'}`);
          isWhole = false;
          patience = nextMs;
          break;
        }
        const { data, hasMore } = page.body as { data: any[]; hasMore: boolean };
        const seqs = data.map((m) => m.seq as number);
        if (seqs.some((seq, i) => i > 0 && seq >= seqs[i - 1]!))
          problems.push(`${customer.env.id}: ${path} is not in order: ${seqs.join()}`);
        for (const m of data) {
          if (found.has(m.id as string)) problems.push(`${customer.env.id}: ${m.id} is shown twice, ${way}`);
          found.set(m.id, { ...m, deleted: m.deletedAt !== null });
        }
        from = hasMore && data.length > 0 ? (way === 'before' ? seqs.at(-1)! : seqs[0]!) : null;
      }
      if (!isWhole) continue;
      for (const entry of ledger.entries.values())
        if (entry.conversation === id && !entry.isGivenUp) {
          const shown = found.get(entry.id);
          if (!isAsSaid(entry, shown) || (shown && shown.seq !== entry.seq))
            differences.set(entry.id, { entry, found: shown });
        }
      for (const [messageId, m] of found)
        if (!ledger.entries.has(messageId))
          problems.push(`${customer.env.id}: nobody knows ${messageId} in ${id}: ${JSON.stringify(m.text)}`);
    }
  return [...differences.values()];
}

/** Reads the customer's database itself. */
async function inspect(
  { customer, ledger }: Scene,
  active: 'a' | 'b',
  problems: string[],
): Promise<{ entry: Entry; found: unknown }[]> {
  const there = await customer.places[active].stored();
  const byId = new Map(there.messages.map((m) => [m.id, m]));
  for (const id of byId.keys())
    if (!ledger.entries.has(id)) problems.push(`${customer.env.id}: nobody knows ${id} in slot ${active}`);
  const names = new Map(there.conversations.map((c) => [c.id, c.name]));
  const present = new Set(
    there.members.filter((m) => !m.removed).map((m) => `${m.conversationId} ${m.userId}`),
  );
  for (const { id, name, members } of ledger.talks) {
    if (names.get(id) !== name)
      problems.push(`${customer.env.id}: ${id} is named ${names.get(id)} in slot ${active}, not ${name}`);
    for (const [user, isIn] of members)
      if (present.has(`${id} ${user}`) !== isIn)
        problems.push(
          `${customer.env.id}: ${user} ${isIn ? 'is a' : 'is no'} member of ${id}; slot ${active} says otherwise`,
        );
  }
  return [...ledger.entries.values()]
    .filter((entry) => {
      const found = byId.get(entry.id);
      return !entry.isGivenUp && (!isAsSaid(entry, found) || (found && found.seq !== entry.seq));
    })
    .map((entry) => ({ entry, found: byId.get(entry.id) }));
}

/** Who is a member, and the names, as the service says. */
async function people({ ask, ledger, customer }: Scene, problems: string[]): Promise<void> {
  for (const { id, name, members } of ledger.talks) {
    const conversation = await ask('GET', `/v1/conversations/${id}`);
    const listed = await ask('GET', `/v1/conversations/${id}/members?limit=200`);
    assert.ok(conversation.status === 200 && listed.status === 200);
    if (conversation.body.name !== name) problems.push(`${customer.env.id}: ${id} is not named ${name}`);
    const now = (listed.body.data as { userId: string }[]).map((m) => m.userId).sort();
    const said = [...members]
      .filter(([, isIn]) => isIn)
      .map(([user]) => user)
      .sort();
    if (now.join() !== said.join())
      problems.push(`${customer.env.id}: the members of ${id} are ${now.join()}, not ${said.join()}`);
  }
}
