import type { Client } from '@parley/client';
import { Value } from './store.ts';

const undoMs = 5_000;

/** Messages that are about to be deleted: for five seconds their sender may think again. */
export class Deletions {
  readonly pending = new Value<ReadonlySet<string>>(new Set());
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();
  readonly #client: Client;
  constructor(client: Client) {
    this.#client = client;
  }

  add = (conversationId: string, messageId: string): void => {
    if (this.#timers.has(messageId)) return;
    const timer = setTimeout(() => void this.#delete(conversationId, messageId), undoMs);
    this.#timers.set(messageId, timer);
    this.pending.set(new Set(this.#timers.keys()));
  };

  undo = (messageId: string): void => {
    clearTimeout(this.#timers.get(messageId));
    this.#timers.delete(messageId);
    this.pending.set(new Set(this.#timers.keys()));
  };

  async #delete(conversationId: string, messageId: string): Promise<void> {
    const chat = this.#client.conversations.open(conversationId);
    // Without a network it is not deleted, and is shown again.
    await chat.delete(messageId).catch(() => undefined);
    chat.close();
    this.undo(messageId);
  }
}
