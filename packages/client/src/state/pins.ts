import type { PinsFeature, PinsHost, PinsSnapshot } from '../features/pins.ts';
import { Value } from '../store.ts';
import type { Store } from '../store.ts';

/** The pinned messages of an open conversation. They are loaded when somebody first looks, and kept from then on. */
export class Pins implements Store<PinsSnapshot> {
  /** What is loaded with them. */
  feature?: PinsFeature;
  #host: PinsHost;
  #value = new Value<PinsSnapshot>({ items: [], status: 'loading' });
  #followed = false;
  constructor(host: PinsHost) {
    this.#host = host;
  }
  get = (): PinsSnapshot => {
    this.#follow();
    return this.#value.get();
  };
  subscribe = (listener: () => void): (() => void) => {
    this.#follow();
    return this.#value.subscribe(listener);
  };
  set = async (messageId: string, on: boolean): Promise<void> => (await this.#bind()).set(messageId, on);

  #follow(): void {
    if (this.#followed) return;
    this.#followed = true;
    this.#bind().then(
      (feature) => feature.follow(),
      () => (this.#followed = false),
    );
  }
  async #bind(): Promise<PinsFeature> {
    const { bindPins } = await import('../features/pins.ts');
    return (this.feature ??= bindPins(this.#host, (snapshot) => this.#value.set(snapshot)));
  }
}
