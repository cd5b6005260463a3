import type { Clock } from '../clock.ts';
import { Timer } from '../clock.ts';
import type { Conversations } from '../conversations.ts';
import { asError } from '../errors.ts';
import type { ParleyError } from '../errors.ts';
import type { Storage } from '../outbox/storage.ts';
import type { ConversationList } from '../state/conversation-list.ts';
import type { Followers } from './followers.ts';
import type { Syncer } from './syncer.ts';

export interface SavedListOptions {
  storage: Storage;
  env: string | undefined;
  clock: Clock;
  list: ConversationList;
  syncer: Syncer;
  followers: Followers | null;
  conversations(): Conversations;
  onError(error: ParleyError): void;
}

type Saved = ReturnType<ConversationList['save']> & {
  cursor: string | null;
  epoch: string | undefined;
  at: [string, number][];
};

const saveMs = 2_000;
const maxSaved = 1_000;

/**
 * Stores the list together with its sync cursor (sdk#saved-list): the next launch shows it at
 * once and asks only for changes. It is written at most every 2 s, and when the connection is lost.
 */
export class SavedList {
  #o: SavedListOptions;
  #key: string | null = null;
  #timer: Timer;
  #dirty = false;
  #opened: Promise<void> | null = null;
  constructor(options: SavedListOptions) {
    this.#o = options;
    this.#timer = new Timer(options.clock);
    options.list.store.subscribe(() => {
      this.#dirty = true;
      if (!this.#timer.pending && this.#key && options.syncer.cursor)
        this.#timer.set(saveMs, () => void this.flush());
    });
  }

  open(user: string): Promise<void> {
    return (this.#opened ??= this.#open(user));
  }

  async #open(user: string): Promise<void> {
    const { storage, env, list, syncer, followers, conversations, onError } = this.#o;
    this.#key = `list/${env ?? ''}/${user}/`;
    try {
      const [saved] = (await storage.list(this.#key)) as Saved[];
      if (!saved) return;
      list.restore(saved);
      syncer.cursor = saved.cursor;
      syncer.epoch = saved.epoch;
      conversations().reset(saved.cursor !== null);
      if (followers) followers.stored = new Map(saved.at);
    } catch (e) {
      onError(asError(e));
    }
  }

  async flush(): Promise<void> {
    const { storage, list, syncer, followers, onError } = this.#o;
    this.#timer.clear();
    if (!this.#key || !this.#dirty || !syncer.cursor) return;
    this.#dirty = false;
    const state = list.save(maxSaved);
    // An incomplete list is stored without a cursor: with one, the missing conversations would never be loaded.
    const saved: Saved = {
      ...state,
      cursor: state.whole ? syncer.cursor : null,
      epoch: syncer.epoch,
      at: followers?.positions() ?? [],
    };
    await storage.set(this.#key, saved).catch((e: unknown) => onError(asError(e)));
  }
}
