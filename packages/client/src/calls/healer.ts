/**
 * Brings the media of a call back: waits a moment, restarts ICE, opens it anew, again and again as long as the call is worth it. One at
 * a time.
 */

export interface Healed {
  /** True while the chat socket is there, without which nothing can be asked. */
  online(): boolean;
  /** The call is over: there is nothing left to heal. */
  over(): boolean;
  began(): void;
  healed(): void;
  restartIce(): Promise<void>;
  openAnew(): Promise<void>;
  /** True where opening failed because the call is over. */
  ends(error: unknown): boolean;
  giveUp(): void;
}

/** A lost link may heal by itself for so long; then ICE is restarted, and then media is opened anew. */
const patienceMs = 2_000;
const restartMs = 6_000;
const retryMs = 1_000;
/** Without media for so long the call is left. */
const giveUpMs = 60_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export class Healer {
  readonly #call: Healed;
  /** Of the media, as it said last. */
  link: 'connected' | 'lost' | 'failed' = 'connected';
  healing = false;
  /** The media is known to be gone, or in part: nothing but opening it anew helps. */
  #anew = false;

  constructor(call: Healed) {
    this.#call = call;
  }

  /** @param anew it must be opened anew. */
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
    const until = Date.now() + giveUpMs;
    if (!this.#anew) await pause(this.link === 'failed' ? 0 : patienceMs);
    if (!this.#anew && !well() && call.online()) {
      await call.restartIce().catch(() => undefined);
      await settle();
    }
    while (!well() && !call.over()) {
      if (Date.now() > until) return call.giveUp();
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
