import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogEvent } from '../../src/log/events.ts';
import { eventFrame } from '../../src/log/events.ts';
import type { NodeBus } from '../../src/features/node-bus.ts';
import type { Timers } from '../../src/platform/clock.ts';
import { createLogger } from '../../src/platform/logging.ts';
import { Hub } from '../../src/realtime/hub.ts';
import type { Session } from '../../src/transport/gateway/session.ts';
import { seed } from '../../../../scripts/seed.ts';

/**
 * A user is added, removed and added again over two nodes, at random times; the other node's events, subscriptions and
 * reads of the store take random times too, some of them longer than a membership. Everything runs in simulated time.
 */

const cid = 'conv_1';
const guest = 1;
const host = 2;
const memberships = 6;
const worlds = 250;

function randomFrom(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Actions in the order of their times. */
class Agenda {
  now = 0;
  #entries: { at: number; run: () => void }[] = [];

  at(time: number, run: () => void): () => void {
    const entry = { at: time, run };
    const place = this.#entries.findIndex((other) => other.at > time);
    this.#entries.splice(place < 0 ? this.#entries.length : place, 0, entry);
    return () => void (this.#entries = this.#entries.filter((other) => other !== entry));
  }

  async run(): Promise<void> {
    for (let entry; (entry = this.#entries.shift());) {
      this.now = entry.at;
      entry.run();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

interface World {
  got: number[];
  members: number[];
  isMember: boolean;
}

/** @param company whether a second member, who stays all the time, logs in and out meanwhile. */
async function simulate(start: number, catchesUp: boolean, company: boolean): Promise<World> {
  const random = randomFrom(start);
  const agenda = new Agenda();
  const duration = () => (random() < 0.15 ? random() * 60 : random() * 5);
  const later = <T>(value: () => T): Promise<T> =>
    new Promise((resolve) => void agenda.at(agenda.now + duration(), () => resolve(value())));

  const log: LogEvent[] = [];
  const subscribed = new Set<string>();
  const bus = {
    alone: false,
    publish: () => undefined,
    on: () => undefined,
    subscribe: (channels: string[]) => later(() => channels.forEach((channel) => subscribed.add(channel))),
    unsubscribe: (channels: string[]) => channels.forEach((channel) => subscribed.delete(channel)),
  } as unknown as NodeBus;
  const timers = {
    after: (ms: number, run: () => void) => agenda.at(agenda.now + ms, run),
    monotonic: () => agenda.now,
  } as unknown as Timers;
  const isMember = () => log.findLast((event) => event.join ?? event.leave)?.join !== undefined;
  const hub = new Hub({
    bus,
    timers,
    logger: createLogger('silent'),
    // What is read is some time old when it arrives.
    memberships: async (_env, user) => {
      const found = await later(() =>
        user === host || isMember() ? [{ cid, lastSeq: log.at(-1)?.seq ?? 0 }] : [],
      );
      return later(() => found);
    },
    missed: async (_env, _cid, after) => {
      const found = await later(() => log.filter((event) => event.seq > after));
      return later(() => found);
    },
  });
  const got: number[] = [];
  const send = (frame: Buffer) => {
    const { t, seq } = JSON.parse(frame.subarray(frame[1] === 126 ? 4 : 2).toString());
    if (t === 'event') got.push(seq);
  };
  const attached = hub.registry.attach({ send } as unknown as Session, 1, guest, 'guest');
  await agenda.run();
  await attached;

  /** What a node sends leaves in order, and arrives in order. */
  const times = { here: 0, there: 0, bus: 0 };
  const next = (what: keyof typeof times, ms: number) =>
    (times[what] = Math.max(times[what], agenda.now + ms));
  const arrive = (event: LogEvent): void => {
    for (const channel of [`c:${cid}`, ...(event.join || event.leave ? [`u:${guest}`] : [])])
      if (subscribed.has(channel)) agenda.at(next('bus', duration()), () => hub.received(event));
  };
  const commit = (isHere: boolean, routes: { join?: number[]; leave?: number[] }): void => {
    const seq = log.length + 1;
    const e = routes.join ? 'member.added' : routes.leave ? 'member.removed' : 'message.new';
    const event: LogEvent = { env: 1, conv: 1, cid, seq, e, frame: eventFrame(cid, seq, e, {}), ...routes };
    log.push(event);
    if (isHere) agenda.at(next('here', random() * 3), () => hub.publish(event));
    else agenda.at(next('there', random() * 3), () => arrive(event));
  };
  let at = agenda.now;
  const plan = (isHere: boolean, routes: { join?: number[]; leave?: number[] } = {}) =>
    agenda.at((at += random() * 8), () => commit(isHere, routes));
  const talk = () => {
    for (let left = Math.floor(random() * 4); left > 0; left--) plan(random() < 0.5);
  };
  for (let i = 0; i < memberships; i++) {
    plan(i % 2 === 1, { join: [guest] });
    talk();
    plan(i % 2 === 0, { leave: [guest] });
    talk();
  }
  plan(false, { join: [guest] });
  plan(false);
  if (company)
    for (let i = 0; i < 5; i++) {
      const session = { send: () => undefined } as unknown as Session;
      const begin = random() * at;
      agenda.at(begin, () => void hub.registry.attach(session, 1, host, 'host'));
      agenda.at(begin + random() * 40, () => hub.registry.detach(session));
    }
  if (catchesUp) for (let i = 0; i < 4; i++) agenda.at(random() * at, () => void hub.catchUp());
  await agenda.run();

  let inside = false;
  const members: number[] = [];
  for (const { seq, join, leave } of log) {
    inside ||= join !== undefined;
    if (inside) members.push(seq);
    inside &&= leave === undefined;
  }
  return { got, members, isMember: hub.isMember(hub.registry.users.get(guest)!, cid) };
}

const ways: [catchesUp: boolean, company: boolean, what: string][] = [
  [false, false, ''],
  [true, false, ', while the node catches up'],
  [true, true, ', while the node catches up and another member logs in and out'],
];
for (const [catchesUp, company, what] of ways)
  test(`events#membership-bounds: who comes and goes over two nodes gets nothing twice, nothing out of order and nothing from outside its memberships${what}`, async () => {
    const first = seed('times of commits');
    let missed = 0;
    for (let i = 0; i < worlds; i++) {
      const { got, members, isMember } = await simulate(first + i, catchesUp, company);
      assert.ok(isMember, `world ${first + i}: the last membership goes on`);
      assert.deepEqual(
        got,
        members.filter((seq) => got.includes(seq)),
        `world ${first + i}`,
      );
      missed += Number(got.length < members.length);
    }
    // Of a membership that ended before its join came nothing may be sent any more. Logins of others make more joins late.
    assert.ok(missed < worlds / (company ? 2 : 3), `${missed} of ${worlds} worlds missed something`);
  });
