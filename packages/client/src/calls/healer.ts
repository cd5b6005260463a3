/**
 * Restores the media of a call: waits a moment, restarts ICE, then opens media again; repeats this until it works,
 * the call is over, or it is given up. Only one such attempt runs at a time.
 */

export interface Healed {
  /** True while the chat socket is connected, which every step needs. */
  online(): boolean;
  /** True if the call is over, so that there is nothing to restore. */
  over(): boolean;
  began(): void;
  healed(): void;
  restartIce(): Promise<void>;
  openAnew(): Promise<void>;
  /** Returns true if opening failed because the call is over. */
  ends(error: unknown): boolean;
  giveUp(): void;
}

/**
 * Milliseconds. A lost connection may recover by itself for `patienceMs`; then ICE is restarted, and after
 * `restartMs` media is opened again.
 */
const patienceMs = 2_000;
const restartMs = 6_000;
const retryMs = 1_000;
/** After this many milliseconds without media the call is left. */
const giveUpMs = 60_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export class Healer {
  readonly #call: Healed;
  /** The last reported state of the media connection. */
  link: 'connected' | 'lost' | 'failed' = 'connected';
  healing = false;
  /** True if media, or a part of it, is known to be lost, so that it must be opened again. */
  #anew = false;

  constructor(call: Healed) {
    this.#call = call;
  }

  /** @param anew true: media is opened again without trying to restart ICE. */
  async heal(anew: boolean): Promise<void> {
    this.#anew ||= anew;
    if (this.healing || this.#call.over()) return;
    this.healing = true;
    this.#call.began();
    try {
      await this.#heal();
    } finally {
      this.healing = false;
    }
    if (!this.#call.over()) this.#call.healed();
  }

  async #heal(): Promise<void> {
    const call = this.#call;
    const well = (): boolean => !this.#anew && this.link === 'connected';
    const settle = async (): Promise<void> => {
      for (let waited = 0; waited < restartMs && !well() && !this.#anew && !call.over(); waited += 200)
        await pause(200);
    };
    const until = performance.now() + giveUpMs;
    if (!this.#anew) await pause(this.link === 'failed' ? 0 : patienceMs);
    if (!this.#anew && !well() && call.online()) {
      await call.restartIce().catch(() => undefined);
      await settle();
    }
    while (!well() && !call.over()) {
      if (performance.now() > until) return call.giveUp();
      if (!call.online()) {
        await pause(retryMs);
        continue;
      }
      try {
        this.link = 'lost';
        this.#anew = false;
        await call.openAnew();
        await settle();
        if (this.#anew) await pause(retryMs);
      } catch (e) {
        this.#anew = true;
        if (call.ends(e)) return;
        await pause(retryMs);
      }
    }
  }
}
