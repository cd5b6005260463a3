import type { Timers } from '../../platform/clock.ts';
import { CountsByKey } from '../../platform/flow/counts-by-key.ts';
import type { Session } from './session.ts';

/** How many sockets that have not sent their `auth` may be open at once, of one address and in all. */
export interface SilentBounds {
  perAddress: number;
  inAll: number;
}
export const silentBounds: SilentBounds = { perAddress: 2_000, inAll: 10_000 };

/** The sockets of this node, from opening to closing. */
export class Sessions {
  /** Sockets that logged in, by session id. */
  readonly loggedIn = new Map<string, Session>();
  /** Sockets that have not logged in yet, in the order in which they were opened. */
  readonly opened = new Set<Session>();
  /** How many sockets have not sent their `auth`, by address. */
  readonly #silent = new CountsByKey<string>();
  #allSilent = 0;
  readonly #timers: Timers;
  #onEmpty: (() => void) | undefined;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  get size(): number {
    return this.loggedIn.size + this.opened.size;
  }

  /** Whether one more socket of this address may be opened. */
  room({ perAddress, inAll }: SilentBounds, address: string): 'free' | 'address full' | 'all full' {
    if (this.#silent.of(address) >= perAddress) return 'address full';
    return this.#allSilent >= inAll ? 'all full' : 'free';
  }

  add(session: Session): void {
    this.opened.add(session);
    this.#allSilent++;
    this.#silent.add(session.address, 1);
  }

  /** The session sent its `auth`, or has closed. */
  heard(session: Session): void {
    if (session.heard) return;
    session.heard = true;
    this.#allSilent--;
    this.#silent.add(session.address, -1);
  }

  /** The session got its id and its user. */
  admit(session: Session): void {
    this.opened.delete(session);
    this.loggedIn.set(session.id, session);
  }

  remove(session: Session): void {
    this.opened.delete(session);
    this.loggedIn.delete(session.id);
    this.heard(session);
    if (this.#isEmpty()) this.#onEmpty?.();
  }

  get all(): Session[] {
    return [...this.loggedIn.values(), ...this.opened];
  }

  /** Resolves when no socket is left, but after this many milliseconds at the latest. */
  emptied(ms: number): Promise<void> {
    if (this.#isEmpty()) return Promise.resolve();
    return new Promise((resolve) => {
      const stop = this.#timers.after(ms, resolve);
      this.#onEmpty = () => {
        stop();
        resolve();
      };
    });
  }

  /** Callers of `emptied` wait no longer. */
  hurry(): void {
    this.#onEmpty?.();
  }

  #isEmpty(): boolean {
    return this.loggedIn.size === 0 && this.opened.size === 0;
  }
}
