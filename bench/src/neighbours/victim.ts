import { Client } from '../load/client.ts';
import type { Watcher } from '../load/client.ts';
import type { Account } from '../load/messages.ts';
import { parleyWire } from '../load/wire-chat.ts';
import { stolenMs } from '../procfs.ts';
import { Histogram } from '../stats.ts';
import type { Latency } from '../stats.ts';
import { serve } from './actor.ts';
import type { Acknowledged } from './ledger.ts';
import { Stolen } from './stolen.ts';

/**
 * The neighbour that measures: its users send at a steady pace whether or not answers come, so a stall is felt by every message
 * that falls into it. A message counts in the phase in which it was first sent; what is refused or cut off is sent again under
 * its `clientMsgId`, as an SDK would, and its time runs on.
 */

const reconnectMs = 250;
const retryMs = 100;
const maxRetryMs = 2_000;
/** Of one user; at this many it sends nothing new until answers come. */
const maxWaiting = 50;
const drainMs = 40_000;
const loginEveryMs = 500;
const loginTimeoutMs = 5_000;
const lookMs = 500;

interface Sent {
  user: User;
  text: string;
  at: number;
  phase: Phase;
  tries: number;
}

interface Phase {
  sends: Histogram;
  /** When each was sent and how long it took, microseconds. */
  times: { at: number; took: number }[];
  logins: Histogram;
  sent: number;
  refused: number;
  failedLogins: number;
}

interface User {
  account: Account;
  number: number;
  client: Client;
  sent: number;
  waiting: Map<number, Sent>;
  /** Of its conversation, on this socket. */
  lastSeq: number;
}

export interface PhaseReport {
  send: Latency;
  /** Of the sends that began while the host took no processor. */
  undisturbed: Latency;
  login: Latency;
  sent: number;
  refused: number;
  failedLogins: number;
}

export interface VictimReport {
  phases: PhaseReport[];
  /** Sent and never answered. */
  unanswered: number;
  lostSockets: number;
  /** Events that came twice or out of turn on one socket, and those that were left out. */
  disorder: number;
  firstError: string;
  acknowledged: Acknowledged[];
}

export interface VictimOptions {
  port: number;
  accounts: Account[];
  /** Users that log in and go again, one after the other. */
  visitors: Account[];
  perSecond: number;
}

const micros = (): number => performance.now() * 1_000;
const delay = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

function answered(phase: Phase, at: number): void {
  const took = micros() - at;
  phase.sends.record(took);
  phase.times.push({ at, took });
}

class Victim {
  readonly #options: VictimOptions;
  readonly #run = `${Date.now().toString(36)}-${process.pid}`;
  readonly #phases: Phase[] = [];
  readonly #users: User[] = [];
  readonly #acknowledged: Acknowledged[] = [];
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #stolen = new Stolen(stolenMs, performance.now());
  #opening: (() => void) | null = null;
  #stopped = false;
  #lostSockets = 0;
  #disorder = 0;
  #firstError = '';

  constructor(options: VictimOptions) {
    this.#options = options;
    this.phase();
  }

  async open(): Promise<void> {
    const { accounts, visitors, perSecond } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#opening = resolve;
    accounts.forEach((account, number) => {
      const user = { account, number, sent: 0, waiting: new Map<number, Sent>(), lastSeq: 0 } as User;
      this.#users.push(user);
      this.#connect(user);
    });
    await promise;
    this.#opening = null;
    // Spread over one pace, or all would send at once.
    const pace = (accounts.length * 1_000) / perSecond;
    this.#users.forEach((user, i) =>
      setTimeout(
        () => this.#timers.push(setInterval(() => this.#send(user), pace)),
        (i * pace) / accounts.length,
      ),
    );
    let next = 0;
    const login = (): void => this.#visit(visitors[next++ % visitors.length]!);
    this.#timers.push(
      setInterval(login, loginEveryMs),
      setInterval(() => this.#stolen.look(performance.now()), lookMs),
    );
  }

  phase(): void {
    const counts = { sent: 0, refused: 0, failedLogins: 0 };
    this.#phases.push({ sends: new Histogram(), times: [], logins: new Histogram(), ...counts });
  }

  async finish(): Promise<VictimReport> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#stolen.look(performance.now());
    const until = performance.now() + drainMs;
    while (performance.now() < until && this.#users.some((user) => user.waiting.size > 0)) await delay(50);
    this.#stopped = true;
    let unanswered = 0;
    for (const user of this.#users) {
      for (const { at, phase } of user.waiting.values()) answered(phase, at);
      unanswered += user.waiting.size;
      user.client.destroy();
    }
    return {
      phases: this.#phases.map(({ sends, times, logins, ...counts }) => ({
        send: sends.summary(),
        undisturbed: this.#undisturbed(times),
        login: logins.summary(),
        ...counts,
      })),
      unanswered,
      lostSockets: this.#lostSockets,
      disorder: this.#disorder,
      firstError: this.#firstError,
      acknowledged: this.#acknowledged,
    };
  }

  #undisturbed(times: Phase['times']): Latency {
    const histogram = new Histogram();
    for (const { at, took } of times) if (!this.#stolen.spoils(at / 1_000)) histogram.record(took);
    return histogram.summary();
  }

  #connect(user: User): void {
    user.lastSeq = 0;
    user.client = new Client(user.account, user.number, parleyWire, this.#watch(user));
    user.client.open(this.#options.port);
  }

  #watch(user: User): Watcher {
    return {
      ready: () => {
        for (const [id, sent] of user.waiting) this.#write(id, sent);
        if (this.#users.every((u) => u.client.state === 'ready')) this.#opening?.();
      },
      ended: (_client, why) => {
        if (this.#stopped) return;
        this.#lostSockets++;
        this.#firstError ||= why;
        setTimeout(() => this.#stopped || this.#connect(user), reconnectMs);
      },
      readStarts: () => undefined,
      frame: (client, bytes, start, end) => this.#frame(user, client, bytes.toString('utf8', start, end)),
    };
  }

  #send(user: User): void {
    if (user.waiting.size >= maxWaiting) return;
    const phase = this.#phases.at(-1)!;
    phase.sent++;
    const sent: Sent = {
      user,
      phase,
      tries: 0,
      at: micros(),
      text: `${this.#run}-${user.number}-${++user.sent}`,
    };
    user.waiting.set(user.sent, sent);
    this.#write(user.sent, sent);
  }

  #write(id: number, sent: Sent): void {
    const { client, account } = sent.user;
    if (client.state !== 'ready') return; // sent when it is back
    sent.tries++;
    const d = { cid: account.speaks, clientMsgId: sent.text, text: sent.text };
    client.send(JSON.stringify({ t: 'message.send', id, d }));
  }

  #frame(user: User, client: Client, text: string): void {
    const frame = JSON.parse(text) as {
      t: string;
      re?: number;
      seq?: number;
      code?: string;
      retryAfterMs?: number;
      d?: { seq: number };
    };
    if (frame.t === 'event') {
      if (user.lastSeq > 0 && frame.seq !== user.lastSeq + 1) this.#disorder++;
      user.lastSeq = frame.seq!;
    } else if (frame.t === 'ack') {
      const sent = user.waiting.get(frame.re!);
      if (!sent) return;
      user.waiting.delete(frame.re!);
      answered(sent.phase, sent.at);
      const { number, account } = user;
      const first = sent.tries === 1;
      this.#acknowledged.push({
        sender: number,
        cid: account.speaks!,
        text: sent.text,
        seq: frame.d!.seq,
        first,
      });
    } else if (frame.t === 'error') {
      const sent = user.waiting.get(frame.re!);
      this.#firstError ||= text;
      if (!sent) return;
      sent.phase.refused++;
      const wait = Math.min(maxRetryMs, frame.retryAfterMs ?? retryMs);
      setTimeout(() => user.waiting.get(frame.re!) === sent && this.#write(frame.re!, sent), wait);
    } else parleyWire.other(client, text);
  }

  #visit(account: Account): void {
    const phase = this.#phases.at(-1)!;
    const begin = micros();
    const over = (ok: boolean, why = ''): void => {
      clearTimeout(timer);
      client.destroy();
      if (ok) phase.logins.record(micros() - begin);
      else {
        phase.failedLogins++;
        this.#firstError ||= `a login failed: ${why}`;
      }
    };
    const timer = setTimeout(() => over(false, 'no answer'), loginTimeoutMs);
    const client = new Client(account, -1, parleyWire, {
      ready: () => over(true),
      ended: (_client, why) => over(false, why),
      readStarts: () => undefined,
      frame: () => undefined,
    });
    client.open(this.#options.port);
  }
}

let victim: Victim;
const handlers = {
  async open(options: VictimOptions): Promise<void> {
    victim = new Victim(options);
    await victim.open();
  },
  phase(): void {
    victim.phase();
  },
  finish: (): Promise<VictimReport> => victim.finish(),
};
export type VictimHandlers = typeof handlers;
serve(handlers);
