import { Value } from '../store.ts';
import type { PresenceItem } from '../types.ts';

export interface PresenceApi {
  /** The watched users with their presence. */
  readonly store: Value<ReadonlyMap<string, PresenceItem>>;
  watch(userIds: readonly string[]): Promise<void>;
}

/** sdk#watch: the watch set belongs to the socket, so it is sent again after every hello. */
export class Presence implements PresenceApi {
  readonly store = new Value<ReadonlyMap<string, PresenceItem>>(new Map());
  #request: (userIds: string[]) => Promise<{ presence: PresenceItem[] }>;
  #watched: string[] = [];
  constructor(request: (userIds: string[]) => Promise<{ presence: PresenceItem[] }>) {
    this.#request = request;
  }
  /** Replaces the watch set (at most 200 users). While offline, it takes effect with the next connection. */
  async watch(userIds: readonly string[]): Promise<void> {
    this.#watched = [...new Set(userIds)];
    await this.refresh();
  }
  async refresh(): Promise<void> {
    const watched = this.#watched;
    const { presence } = await this.#request(watched);
    if (watched === this.#watched) this.store.set(new Map(presence.map((item) => [item.userId, item])));
  }
  get watching(): boolean {
    return this.#watched.length > 0;
  }
  receive(item: PresenceItem): void {
    if (this.#watched.includes(item.userId)) this.store.set(new Map(this.store.get()).set(item.userId, item));
  }
}
