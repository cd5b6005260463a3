import type { Api } from '../api.ts';
import { Value } from '../store.ts';
import type { User } from '../types.ts';

export interface UsersApi {
  /** The users that were asked for, by id. */
  readonly store: Value<ReadonlyMap<string, User>>;
  /**
   * What is known about a user right now. Unknown users are fetched, all that are asked for at the same moment with
   * one request, and then `store` changes. Made for rendering: `client.users.find(message.senderId)?.name ??
   * message.senderId`.
   */
  find(id: string): User | undefined;
  /** Fetches one user. */
  get(id: string): Promise<User>;
}

const maxUsers = 5_000;
const atOnce = 200;

/**
 * Names and pictures for everything that the client shows. States of a user: unknown --find--> wanted --answer-->
 * fresh. `user.updated` keeps it fresh while connected; after a reconnect `store` changes, and the next `find` fetches it again.
 */
export class Users implements UsersApi {
  readonly store = new Value<ReadonlyMap<string, User>>(new Map());
  #api: Api;
  #asked = new Set<string>();
  #wanted: string[] = [];
  constructor(api: Api) {
    this.#api = api;
  }
  find = (id: string): User | undefined => {
    if (!this.#asked.has(id)) {
      if (this.#asked.size > maxUsers) this.#asked.clear();
      this.#asked.add(id);
      if (this.#wanted.push(id) === 1) void Promise.resolve().then(() => this.#fetch());
    }
    return this.store.get().get(id);
  };
  get = async (id: string): Promise<User> => {
    const user = await this.#api.user(id);
    this.receive([user]);
    return user;
  };
  receive(users: readonly User[]): void {
    const all = new Map(this.store.get());
    for (const user of users) (all.delete(user.id), all.set(user.id, user));
    for (const id of all.keys()) {
      if (all.size <= maxUsers) break;
      all.delete(id);
      this.#asked.delete(id);
    }
    this.store.set(all);
  }
  /** What is known may be outdated by now: what is drawn is fetched again. */
  stale(): void {
    this.#asked.clear();
    this.receive([]);
  }
  async #fetch(): Promise<void> {
    const wanted = this.#wanted.splice(0);
    for (let i = 0; i < wanted.length; i += atOnce) {
      const ids = wanted.slice(i, i + atOnce);
      try {
        this.receive((await this.#api.lookUp(ids)).data);
      } catch {
        for (const id of ids) this.#asked.delete(id); // The next `find` tries again.
      }
    }
  }
}
