/**
 * Carries messages between the nodes of one service. At most once: a message published while a connection is down is lost,
 * and `restored` says so, whereupon clients are told to sync. A node never hears its own messages.
 */
export interface Bus {
  /** Fire and forget; messages of one publisher on one channel arrive in order. */
  publish(channel: string, payload: string): void;
  /** Resolves when messages published from now on will arrive. Subscribing twice is once. */
  subscribe(channels: readonly string[]): Promise<void>;
  unsubscribe(channels: readonly string[]): void;
  /** Before the first subscription. Several may listen; each hears every message. */
  listen(listener: BusListener): void;
  /** True when there is no other node: publishing is then a waste. */
  readonly alone: boolean;
  close(): Promise<void>;
}

export interface BusListener {
  message(channel: string, payload: string): void;
  /** The connection is back after a loss; messages in between are gone. */
  restored(): void;
}
