import type { MentionsFeature, MentionsHost, MentionsSnapshot } from '../features/mentions.ts';
import { Value } from '../store.ts';
import type { Store } from '../store.ts';

/** The messages that name this user, of all conversations. Whoever first subscribes loads them. */
export class Mentions implements Store<MentionsSnapshot> {
  #store = new Value<MentionsSnapshot>({ items: [], hasMore: false, status: 'loading' });
  #host: Omit<MentionsHost, 'get' | 'set'>;
  #bound?: Promise<MentionsFeature>;
  get = this.#store.get;

  constructor(host: Omit<MentionsHost, 'get' | 'set'>) {
    this.#host = host;
  }
  subscribe = (listener: () => void): (() => void) => {
    if (!this.#bound) this.load().catch(() => (this.#bound = undefined));
    return this.#store.subscribe(listener);
  };
  /** Loads the newest ones again. */
  load = async (): Promise<void> => (await this.#bind()).load();
  loadMore = async (): Promise<void> => (await this.#bind()).loadMore();

  #bind(): Promise<MentionsFeature> {
    return (this.#bound ??= import('../features/mentions.ts').then(({ bindMentions }) =>
      bindMentions({ ...this.#host, get: this.get, set: (snapshot) => this.#store.set(snapshot) }),
    ));
  }
}
