import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import { addressRefusal } from './address.ts';
import type { Address, NameResolver } from './resolver.ts';

/** This service must not connect to the target. The message may be shown to the person who entered it. */
export class OutboundRefused extends Error {
  override name = 'OutboundRefused';
}

/**
 * The name has no address that may be connected to. Customers must not learn which names exist inside our network, so
 * the message is the same for a name that does not exist and one that is refused; `cause` is for our own use.
 */
export class OutboundUnresolved extends Error {
  override name = 'OutboundUnresolved';
  constructor(cause: unknown) {
    super('the name has no address that may be used', { cause });
  }
}

/** The exchange did not end in time; `status` is set if the answer had begun. */
export class OutboundTimeout extends Error {
  override name = 'OutboundTimeout';
  status: number | undefined;
  constructor(timeoutMs: number, status?: number) {
    super(`no complete answer within ${timeoutMs} ms`);
    this.status = status;
  }
}

export interface OutboundRequest {
  url: string;
  method?: string;
  headers?: Record<string, string>;
  body?: Uint8Array | string;
  /** Milliseconds for the whole exchange: queueing, connecting, sending, and reading the body to its end. */
  timeoutMs?: number;
  /** How many bytes of the body are kept; a longer one is cut and its connection destroyed. */
  maxBytes?: number;
  signal?: AbortSignal;
  /** The number of the environment that the request is for; names are looked up in its turn. */
  tenant?: number;
}

export interface OutboundResponse {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  truncated: boolean;
}

export interface Outbound {
  /** Throws OutboundRefused if the URL alone shows that it is not allowed. */
  checkUrl(url: string): URL;
  /** The same for a host name or an address literal (without brackets). */
  checkHost(host: string): void;
  /**
   * The addresses of a host, all of them checked; OutboundUnresolved if there are none. Connect to these, not to the
   * name.
   */
  resolve(host: string, tenant?: number): Promise<Address[]>;
  /**
   * For net.connect, tls.connect and drivers that accept a `lookup`. They do not call it for literals, so call
   * checkHost first.
   */
  lookup: LookupFunction;
  /** Why a request to this URL would fail at once: its name did not resolve a moment ago. Undefined if nothing is known. */
  failed(url: string): OutboundUnresolved | undefined;
  /** One HTTP exchange. Redirects are not followed. */
  request(request: OutboundRequest): Promise<OutboundResponse>;
  close(): void;
}

export interface OutboundOptions {
  /** CHAT_ALLOW_PRIVATE_TARGETS: allows any address, and http besides https. */
  allowPrivate: boolean;
  /** How names are looked up: by resolver.ts if strangers enter them. If unset, only addresses can be reached. */
  resolve?: NameResolver['resolve'];
  /** Which names failed a moment ago; if unset, `failed` knows nothing. */
  failed?: NameResolver['failed'];
  maxSocketsPerHost?: number;
  /** How many requests run at once, over all hosts; more are rejected. */
  maxInFlight?: number;
}

const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_MAX_BYTES = 64 * 1024;
const IDLE_SOCKET_MS = 30_000;

/** The system's own look-up, for names that the operator configured. */
export const systemLookup = (host: string): Promise<Address[]> =>
  lookup(host, { all: true, order: 'verbatim' });

/** Requests without a tenant take turns as one tenant. */
const nobody = 0;

/** The only way to connect to an address that a customer entered. It connects to exactly the address that was checked. */
export function createOutbound(options: OutboundOptions): Outbound {
  const { allowPrivate, maxInFlight = 8192 } = options;
  const resolveName = options.resolve ?? (() => Promise.reject(new Error('names cannot be looked up here')));
  const resolving = new Map<string, Promise<Address[]>>();
  let inFlight = 0;

  function checkHost(host: string): void {
    if (allowPrivate) return;
    const name = host.toLowerCase().replace(/\.$/, '');
    if (name === 'localhost' || name.endsWith('.localhost'))
      throw new OutboundRefused(`${host} is this machine`);
    // A literal also is an address with a zone id, or a number that a resolver would read as an address (127.1,
    // 0x7f000001).
    const literal = isIP(name) !== 0 || name.includes(':') || /(^|\.)(0x[0-9a-f]*|[0-9]+)$/.test(name);
    const reason = literal ? addressRefusal(name) : null;
    if (reason) throw new OutboundRefused(`${host} is ${reason}`);
  }

  function checkUrl(text: string): URL {
    // The URL parser drops line breaks silently, but what is stored, logged and mailed would still contain them.
    if (/[\p{Cc}\u2028\u2029]/u.test(text)) throw new OutboundRefused('the URL has a control character');
    const url = URL.parse(text);
    if (!url) throw new OutboundRefused('not a valid URL');
    if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:')) {
      throw new OutboundRefused('the URL must be https');
    }
    if (url.username || url.password) throw new OutboundRefused('the URL must not carry credentials');
    checkHost(bareHost(url));
    return url;
  }

  async function resolveChecked(host: string, tenant: number): Promise<Address[]> {
    if (isIP(host)) return [{ address: host, family: isIP(host) }];
    const addresses = await resolveName(host, tenant).catch((error: unknown) => {
      throw new OutboundUnresolved(error);
    });
    // One bad address among good ones refuses the name, because we do not choose which of them is connected to.
    const reasons = allowPrivate ? [] : addresses.map(({ address }) => addressRefusal(address));
    const reason = addresses.length === 0 ? 'no address' : reasons.find((r) => r !== null);
    if (reason) throw new OutboundUnresolved(new OutboundRefused(`${host} resolves to ${reason}`));
    return addresses;
  }

  // A running look-up of a name is shared only within a tenant, so that no tenant waits for another's turn.
  function resolve(host: string, tenant = nobody): Promise<Address[]> {
    const key = `${tenant} ${host}`;
    const running = resolving.get(key);
    if (running) return running;
    const started = (async () => {
      checkHost(host);
      return resolveChecked(host, tenant);
    })().finally(() => resolving.delete(key));
    resolving.set(key, started);
    return started;
  }

  const lookupFor =
    (tenant?: number): LookupFunction =>
    (host, lookupOptions, callback) => {
      resolve(host, tenant).then(
        (found) => {
          const family = { 4: 4, IPv4: 4, 6: 6, IPv6: 6 }[lookupOptions.family ?? 0] ?? 0;
          const addresses = family ? found.filter((a) => a.family === family) : found;
          const first = addresses[0];
          if (!first) callback(new OutboundUnresolved(`no address of family ${family}`), '', 0);
          else if (lookupOptions.all) callback(null, addresses);
          else callback(null, first.address, first.family);
        },
        (error: Error) => callback(error, '', 0),
      );
    };

  // A reused socket was checked when it connected. maxSockets is per host, so a slow host does not hold up others.
  const agentOptions = {
    keepAlive: true,
    maxSockets: options.maxSocketsPerHost ?? 64,
    maxFreeSockets: 32,
    scheduling: 'lifo' as const,
    timeout: IDLE_SOCKET_MS,
  };
  const httpAgent = new HttpAgent(agentOptions);
  const httpsAgent = new HttpsAgent(agentOptions);

  async function exchange(
    url: URL,
    o: OutboundRequest,
    signal: AbortSignal,
    fresh: boolean,
  ): Promise<OutboundResponse> {
    const { method = 'GET', headers, body, maxBytes = DEFAULT_MAX_BYTES } = o;
    const secure = url.protocol === 'https:';
    const req = (secure ? httpsRequest : httpRequest)(url, {
      method,
      headers:
        body === undefined ? headers : { ...headers, 'content-length': String(Buffer.byteLength(body)) },
      agent: fresh ? false : secure ? httpsAgent : httpAgent,
      lookup: lookupFor(o.tenant),
      signal,
    });
    // What goes wrong after the answer has begun is an error of the answer too.
    req.on('error', () => undefined);
    let status: number | undefined;
    try {
      req.end(body);
      const [res] = (await once(req, 'response')) as [IncomingMessage];
      status = res.statusCode ?? 0;
      const chunks: Buffer[] = [];
      let room = maxBytes;
      // To leave the loop destroys the connection.
      for await (const chunk of res as AsyncIterable<Buffer>) {
        chunks.push(chunk.subarray(0, room));
        room -= chunk.length;
        if (room < 0) break;
      }
      return { status, headers: res.headers, body: Buffer.concat(chunks), truncated: room < 0 };
    } catch (error) {
      if (signal.aborted) {
        const reason: unknown = signal.reason;
        if (reason instanceof OutboundTimeout) reason.status = status;
        throw reason instanceof Error ? reason : new Error('aborted');
      }
      // The other side closed an idle connection just when we reused it: try once more on a new one.
      const { code = '' } = error as NodeJS.ErrnoException;
      const stale = req.reusedSocket && status === undefined && ['ECONNRESET', 'EPIPE'].includes(code);
      if (stale && !fresh) return exchange(url, o, signal, true);
      throw error;
    }
  }

  async function request(o: OutboundRequest): Promise<OutboundResponse> {
    const url = checkUrl(o.url);
    if (inFlight >= maxInFlight) throw new Error(`${maxInFlight} outbound requests are under way already`);
    const timeoutMs = o.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(new OutboundTimeout(timeoutMs)), timeoutMs);
    inFlight += 1;
    try {
      const signal = o.signal ? AbortSignal.any([o.signal, controller.signal]) : controller.signal;
      return await exchange(url, o, signal, false);
    } finally {
      clearTimeout(timer);
      inFlight -= 1;
    }
  }

  return {
    checkUrl,
    checkHost,
    resolve,
    lookup: lookupFor(),
    failed(text) {
      const url = URL.parse(text);
      const error = url && options.failed?.(bareHost(url));
      return error ? new OutboundUnresolved(error) : undefined;
    },
    request,
    close() {
      httpAgent.destroy();
      httpsAgent.destroy();
    },
  };
}

const bareHost = (url: URL) => url.hostname.replace(/^\[(.*)\]$/, '$1');
