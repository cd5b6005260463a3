import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { Turns } from '../flow/turns.ts';

/**
 * Looks up names that strangers entered. The system's own look-up occupies one of a few threads until a name
 * resolves, so a handful of names that never resolve would block all files and all other names. This one asks the
 * name servers itself, gives up after 2 s, lets tenants take turns, and remembers for a while which names failed.
 */

export interface Address {
  address: string;
  family: number;
}

export interface NameResolver {
  /** @param tenant whose turn the look-up takes; at its bound it waits for its own look-ups only. */
  resolve(host: string, tenant: number): Promise<Address[]>;
  /** The error of a look-up of this name that failed a moment ago, which `resolve` would give at once; undefined if there is none. */
  failed(host: string): Error | undefined;
  /** Cancels open questions. */
  close(): void;
}

const resolverBounds = {
  timeoutMs: 2_000,
  /** How many look-ups run at once, of one tenant and in all. */
  perTenant: 16,
  inAll: 512,
  /** How many look-ups of one tenant may wait; more fail at once. */
  waiting: 200,
  /** For how many milliseconds a name that did not resolve in time keeps failing at once. */
  slowMs: 30_000,
  /** The same for a name that does not exist, or that the name server refused. */
  missingMs: 5_000,
  /** How many failed names are remembered. */
  remembered: 10_000,
};
export type ResolverBounds = typeof resolverBounds;

/** Milliseconds that the other address family still gets once one has answered. */
const otherFamilyMs = 250;
/** How many addresses of one name are used: an answer of 64 kB may hold thousands, and each is checked and tried. */
const mostAddresses = 32;
const hostsFileMs = 10_000;

export class NameTimeout extends Error {
  override name = 'NameTimeout';
  code = 'ETIMEOUT';
}

export function createResolver(options: {
  now: () => number;
  /** Name servers as `address` or `address:port`; if empty, those of the system. */
  servers?: readonly string[];
  bounds?: Partial<ResolverBounds>;
  hostsFile?: string;
}): NameResolver {
  const bounds = { ...resolverBounds, ...options.bounds };
  // It asks again within the time, because its own estimate of a server's speed may be far too short for one name.
  const dns = new Resolver({ timeout: bounds.timeoutMs, tries: 4, maxTimeout: bounds.timeoutMs });
  if (options.servers && options.servers.length > 0) dns.setServers(options.servers);
  const turns = new Turns({
    slots: bounds.inAll,
    lane: { slots: bounds.perTenant, cost: bounds.perTenant, waiting: bounds.waiting },
    waiting: Infinity,
    waitMs: 5 * bounds.timeoutMs,
    refuse: () => new NameTimeout('too many look-ups of this tenant are under way'),
  });
  const hosts = hostsReader(options.hostsFile ?? '/etc/hosts', options.now);
  const failed = new Map<string, { until: number; error: Error }>();

  function remembered(host: string): Error | undefined {
    const known = failed.get(host);
    if (known && known.until > options.now()) return known.error;
    failed.delete(host);
    return undefined;
  }

  function remember(host: string, error: Error): void {
    // The oldest entry goes: forgetting it costs only another question.
    if (failed.size >= bounds.remembered) failed.delete(failed.keys().next().value!);
    const ms = error instanceof NameTimeout ? bounds.slowMs : bounds.missingMs;
    failed.set(host, { until: options.now() + ms, error });
  }

  async function ask(host: string): Promise<Address[]> {
    try {
      return await bothFamilies(host);
    } catch (error) {
      remember(host, error as Error);
      throw error;
    }
  }

  /** IPv4 stands first, because more networks have it. */
  function bothFamilies(host: string): Promise<Address[]> {
    return new Promise((resolve, reject) => {
      const found: Address[] = [];
      let [pending, failure] = [2, undefined as Error | undefined];
      const finish = (): void => {
        clearTimeout(timer);
        if (found.length > 0) resolve(found.sort((x, y) => x.family - y.family).slice(0, mostAddresses));
        else reject(pending > 0 || !failure ? new NameTimeout(`${host} did not resolve in time`) : failure);
      };
      let timer = setTimeout(finish, bounds.timeoutMs);
      const answered = (): void => {
        pending -= 1;
        if (pending === 0) return finish();
        if (found.length === 0) return;
        clearTimeout(timer);
        timer = setTimeout(finish, otherFamilyMs);
      };
      for (const [family, answer] of [
        [4, dns.resolve4(host)],
        [6, dns.resolve6(host)],
      ] as const)
        answer.then(
          (addresses) => {
            found.push(...addresses.map((address) => ({ address, family })));
            answered();
          },
          (error: NodeJS.ErrnoException) => {
            failure = error.code === 'ETIMEOUT' ? new NameTimeout(error.message) : error;
            answered();
          },
        );
    });
  }

  return {
    resolve: async (host, tenant) => {
      const name = plain(host);
      if (isIP(name)) return [{ address: name, family: isIP(name) }];
      const written = hosts(name);
      if (written.length > 0) return written;
      const before = remembered(name);
      if (before) throw before;
      return turns.run(tenant, 1, () => ask(name));
    },
    failed: (host) => remembered(plain(host)),
    close: () => dns.cancel(),
  };
}

const plain = (host: string): string => host.toLowerCase().replace(/\.$/, '');

/** Reads the hosts file; localhost is this machine in any case (RFC 6761). */
function hostsReader(path: string, now: () => number): (name: string) => Address[] {
  let readAt = -Infinity;
  let table = new Map<string, Address[]>();
  return (name) => {
    if (now() - readAt >= hostsFileMs) {
      readAt = now();
      table = readHosts(path);
    }
    const written = table.get(name);
    if (written) return written;
    if (name !== 'localhost' && !name.endsWith('.localhost')) return [];
    return [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ];
  };
}

function readHosts(path: string): Map<string, Address[]> {
  const table = new Map<string, Address[]>();
  let text = '';
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    // There is no hosts file.
  }
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      table.set(key, [...(table.get(key) ?? []), { address, family }]);
    }
  }
  return table;
}
