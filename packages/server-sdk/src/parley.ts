import { randomUUID } from 'node:crypto';
import { methods } from './methods.ts';
import type { Methods } from './methods.ts';
import { keyIdOf, signToken } from './token.ts';
import type { TokenOptions } from './token.ts';
import { defaultSleep } from './transport.ts';
import type { TransportOptions } from './transport.ts';

export interface ParleyOptions {
  /** `sk_live_…`; it must stay on your server. */
  secretKey: string;
  /** The origin of the REST API, without `/v1`. */
  url: string;
  /** How often a call is tried in all; the default is 3. */
  tries?: number;
  /** Milliseconds that one try may take; the default is 30,000. */
  timeoutMs?: number;
  fetch?: typeof globalThis.fetch;
  now?: () => number;
  random?: () => number;
  uuid?: () => string;
  sleep?: TransportOptions['sleep'];
}

class Client {
  readonly #secretKey: string;
  readonly #now: () => number;

  constructor(options: ParleyOptions) {
    const { secretKey, url, now = Date.now, tries = 3, timeoutMs = 30_000 } = options;
    keyIdOf(secretKey);
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      throw new TypeError(`url must begin with http:// or https://; it is ${url}`);
    if (!Number.isInteger(tries) || tries < 1 || tries > 10) throw new RangeError('tries must be 1 to 10');
    this.#secretKey = secretKey;
    this.#now = now;
    const transport: TransportOptions = {
      url,
      authorization: `Bearer ${secretKey}`,
      fetch: options.fetch ?? globalThis.fetch,
      now,
      random: options.random ?? Math.random,
      uuid: options.uuid ?? randomUUID,
      sleep: options.sleep ?? defaultSleep,
      tries,
      timeoutMs,
    };
    Object.assign(this, methods(transport));
  }

  /** Mints a user token locally, without a request. */
  signToken(options: TokenOptions): string {
    return signToken({ now: this.#now, ...options, secretKey: this.#secretKey });
  }
}

/** The service as a customer's server calls it. Its methods come from the protocol's table. */
export type Parley = Client & Methods;
export const Parley = Client as new (options: ParleyOptions) => Parley;
