import type { ClientOptions } from '@parley/client';

/** A frame as it went over the socket. `none`: the socket closed. */
export interface WireFrame {
  no: number;
  /** Milliseconds, as of `Date.now`. */
  at: number;
  way: 'out' | 'in' | 'none';
  /** The frame without its token. */
  data: Readonly<Record<string, unknown>>;
}

type SocketClass = NonNullable<ClientOptions['WebSocket']>;

const maxFrames = 1_000;

const parsed = (text: unknown): Record<string, unknown> => {
  try {
    const frame: unknown = JSON.parse(String(text));
    return typeof frame === 'object' && frame !== null ? (frame as Record<string, unknown>) : { t: '?' };
  } catch {
    return { t: '?' };
  }
};
const withoutToken = (frame: Readonly<Record<string, unknown>>): WireFrame['data'] => {
  const { d } = frame;
  const has = typeof d === 'object' && d !== null && 'token' in d;
  return has ? { ...frame, d: { ...d, token: '…' } } : frame;
};

/**
 * The frames of a client, the last 1,000: `createClient({ …, WebSocket: wire.WebSocket })`. States: running <--pause-->
 * paused, in which frames go by without being kept.
 */
export class Wire {
  #frames: readonly WireFrame[] = [];
  #paused = false;
  #count = 0;
  #now: () => number;
  #listeners = new Set<() => void>();

  constructor({ now = Date.now }: { now?: () => number } = {}) {
    this.#now = now;
  }

  get = (): readonly WireFrame[] => this.#frames;
  isPaused = (): boolean => this.#paused;
  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };
  pause = (paused: boolean): void => {
    this.#paused = paused;
    this.#changed();
  };
  clear = (): void => {
    this.#frames = [];
    this.#changed();
  };

  /** Keeps a frame, given as its text or as what it says: for a socket that is not of `WebSocket`. */
  note = (way: WireFrame['way'], frame: unknown): void => {
    if (this.#paused) return;
    const data = withoutToken(typeof frame === 'string' ? parsed(frame) : (frame as WireFrame['data']));
    this.#frames = [...this.#frames.slice(1 - maxFrames), { no: ++this.#count, at: this.#now(), way, data }];
    this.#changed();
  };

  /** For `createClient`: the browser's class, watched. */
  get WebSocket(): SocketClass {
    const { note } = this;
    return class extends WebSocket {
      constructor(url: string, protocols: string[]) {
        super(url, protocols);
        this.addEventListener('message', ({ data }) => note('in', data));
        this.addEventListener('close', ({ code, reason }) =>
          note('none', { t: 'closed', code, why: reason }),
        );
      }
      override send(data: string): void {
        note('out', data);
        super.send(data);
      }
    };
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

export const createWire = (options?: { now?: () => number }): Wire => new Wire(options);
