/**
 * Carries messages between the nodes of one service, at most once: a message published while a connection is down is
 * lost. `restored` reports that, and clients are then told to sync. A node does not receive its own messages.
 */
export interface Bus {
  /** Does not wait for delivery. Messages of one publisher on one channel arrive in order. */
  publish(channel: string, payload: string): void;
  /** Resolves when messages published from now on will arrive. A second subscription to the same channel changes nothing. */
  subscribe(channels: readonly string[]): Promise<void>;
  unsubscribe(channels: readonly string[]): void;
  /** Must be called once, before the first subscription. */
  listen(listener: BusListener): void;
  /** True if there is no other node, so that nothing needs to be published. */
  readonly alone: boolean;
  close(): Promise<void>;
}

export interface BusListener {
  message(channel: string, payload: string): void;
  /** The connection is back after a loss; messages sent in between are lost. */
  restored(): void;
}
