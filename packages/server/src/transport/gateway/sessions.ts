import type { Timers } from '../../platform/clock.ts';
import type { Session } from './session.ts';

/** The sockets of this node, from their opening to their end. */
export class Sessions {
  /** With a login, by id. */
  readonly loggedIn = new Map<string, Session>();
  /** Without one yet, in the order of their opening. */
  readonly opened = new Set<Session>();
  readonly #timers: Timers;
  #onEmpty: (() => void) | undefined;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  add(session: Session): void {
    this.opened.add(session);
  }

  /** The session has its id and its user now. */
  admit(session: Session): void {
    this.opened.delete(session);
    this.loggedIn.set(session.id, session);
  }

  remove(session: Session): void {
    this.opened.delete(session);
    this.loggedIn.delete(session.id);
    if (this.#isEmpty()) this.#onEmpty?.();
  }

  get all(): Session[] {
    return [...this.loggedIn.values(), ...this.opened];
  }

  /** Resolves when no socket is left, and after this time in any case. */
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

  #isEmpty(): boolean {
    return this.loggedIn.size === 0 && this.opened.size === 0;
  }
}
