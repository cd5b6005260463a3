import { valuesOf } from '../results.ts';
import type { ResultsFile } from '../results.ts';
import { format, median } from '../stats.ts';
import { table } from './tables.ts';

/** From the measured unit costs to machine counts. What is measured and what is assumed is kept apart. */

export interface UnitCosts {
  /** Seconds of CPU in the service for a message, whatever its deliveries; and in PostgreSQL. */
  message: number;
  database: number;
  delivery: number;
  /** Seconds of CPU, Redis's included, for a message that has to reach one more process. */
  relay: number;
  login: number;
  /** Bytes in a gateway for an open socket, and in the store for a message. */
  socketBytes: number;
  storedBytes: number;
  /** Rows per second that one PostgreSQL takes in, in large batches. */
  rows: number;
}

/** How people use it; docs/scaling.md says why. */
export interface Usage {
  dailyShare: number;
  peakOnlineShare: number;
  messagesPerDay: number;
  /** The busiest second to the day's mean. */
  peak: number;
  /** Sockets that a message reaches. */
  deliveries: number;
  /** Different gateways that they are on, at most. */
  spreadOver: number;
  /** All sockets were lost (a balancer, a network) and are back within this many seconds. */
  reconnectSeconds: number;
  yearsKept: number;
}

export interface Machine {
  cores: number;
  memoryBytes: number;
  /** Of cores, memory and sockets, to plan with. */
  fill: number;
  /** Sockets that one process, and so one core, is allowed to hold; assumed: 10,000 were measured. */
  socketsPerCore: number;
  /** Memory of the kernel for an open socket; assumed. */
  kernelBytes: number;
  /** Messages that one Redis forwards per second; assumed. */
  redis: number;
  /** Of PostgreSQL's rows per second, to plan with: indexes grow, vacuum runs, replicas copy. */
  databaseFill: number;
  /** Data that one PostgreSQL is allowed to hold. */
  databaseBytes: number;
}

export const usual: Usage = {
  dailyShare: 0.3,
  peakOnlineShare: 0.1,
  messagesPerDay: 40,
  peak: 4,
  deliveries: 6,
  spreadOver: 6,
  reconnectSeconds: 300,
  yearsKept: 1,
};
export const machine: Machine = {
  cores: 16,
  memoryBytes: 64 * 2 ** 30,
  fill: 0.5,
  socketsPerCore: 50_000,
  kernelBytes: 8 * 1_024,
  redis: 200_000,
  databaseFill: 0.25,
  databaseBytes: 4e12,
};
export const sizes = [10_000, 1_000_000, 100_000_000];

const micro = 1e-6;

export function unitCosts(file: ResultsFile): UnitCosts {
  const of = (workload: string, metric: string, server = 'parley'): number => {
    const value = median(valuesOf(file.rows, workload, server, metric).map((v) => v ?? NaN));
    if (Number.isNaN(value))
      throw new Error(`the results hold no "${metric}" of "${workload}": run the whole benchmark`);
    return value;
  };
  const largest = (workload: string, server: string, pattern: RegExp): string =>
    file.rows.filter((r) => r.workload === workload && r.server === server && pattern.test(r.metric)).at(-1)
      ?.metric ?? '';
  const delivery = of('bigrooms', 'CPU per delivery') * micro;
  const database = of('send', 'database CPU per message') * micro;
  const all = of('send', 'CPU per message') * micro;
  return {
    // The send workload's ten deliveries are not coalesced as those of big rooms are: what is left over counts as the message's.
    message: Math.max(0, all - database - 10 * delivery),
    database,
    delivery,
    relay:
      Math.max(0, of('nodes: two nodes', 'CPU per message') - of('nodes: one process', 'CPU per message')) *
      micro,
    // Both cores were busy meanwhile.
    login: 2 / of('storm', 'logins, 100 at a time'),
    socketBytes: of('idle', largest('idle', 'parley', /sockets, each/)) * 1_024,
    storedBytes: of('history', 'stored per message'),
    rows: of('store', '100 rows a commit', 'postgres'),
  };
}

export interface Needs {
  users: number;
  sockets: number;
  messages: number;
  deliveries: number;
  gateways: number;
  /** What decides the number of gateways. */
  limit: 'sockets' | 'memory' | 'processor' | 'reconnecting';
  databases: number;
  databaseLimit: 'processor' | 'commits' | 'storage';
  redis: number;
  storedBytes: number;
  /** Of the service without PostgreSQL, at the peak. */
  cores: number;
}

/** The largest share decides, and names itself. */
function most<T extends string>(parts: Record<T, number>): { count: number; limit: T } {
  const [limit, share] = (Object.entries(parts) as [T, number][]).reduce((a, b) => (b[1] > a[1] ? b : a));
  return { count: Math.max(1, Math.ceil(share)), limit };
}

export function needs(users: number, costs: UnitCosts, usage: Usage = usual, on: Machine = machine): Needs {
  const sockets = users * usage.peakOnlineShare;
  const messages = (users * usage.dailyShare * usage.messagesPerDay * usage.peak) / 86_400;
  const deliveries = messages * usage.deliveries;
  const storedBytes =
    users * usage.dailyShare * usage.messagesPerDay * 365 * usage.yearsKept * costs.storedBytes;
  const alone = messages * costs.message + deliveries * costs.delivery;
  // A machine has a process on every core: as soon as one core is not enough, members are on several processes.
  const processes = Math.max(
    1,
    Math.ceil(Math.max(alone / on.fill, sockets / (on.socketsPerCore * on.fill))),
  );
  const copies = Math.min(processes, usage.spreadOver);
  const cores = alone + messages * (copies - 1) * costs.relay;
  const gateways = most({
    sockets: sockets / (on.socketsPerCore * on.cores * on.fill),
    memory: (sockets * (costs.socketBytes + on.kernelBytes)) / (on.memoryBytes * on.fill),
    processor: cores / (on.cores * on.fill),
    reconnecting: (sockets * costs.login) / (usage.reconnectSeconds * on.cores * on.fill),
  });
  const databases = most({
    processor: (messages * costs.database) / (on.cores * on.fill),
    commits: messages / (costs.rows * on.databaseFill),
    storage: storedBytes / on.databaseBytes,
  });
  const redis = copies === 1 ? 0 : Math.ceil((messages * (1 + copies)) / on.redis);
  return {
    users,
    sockets,
    messages,
    deliveries,
    gateways: gateways.count,
    limit: gateways.limit,
    databases: databases.count,
    databaseLimit: databases.limit,
    redis,
    storedBytes,
    cores,
  };
}

const bytes = (value: number): string =>
  value >= 1e12
    ? `${format(value / 1e12)} TB`
    : value >= 1e9
      ? `${format(value / 1e9)} GB`
      : `${format(value / 1e6)} MB`;

export function renderScaling(file: ResultsFile): string {
  const costs = unitCosts(file);
  const us = (seconds: number): string => `${format(seconds / micro)} µs`;
  const measured = table(
    ['Measured', 'Cost'],
    [
      ['a message, in the service without its deliveries', us(costs.message)],
      ['a message, in PostgreSQL', us(costs.database)],
      ['a delivery', us(costs.delivery)],
      ['the way of a message to one more process, with Redis', us(costs.relay)],
      ['a login with its first sync, service and PostgreSQL', us(costs.login)],
      ['an open socket in a group, in a gateway', `${format(costs.socketBytes / 1_024)} KB`],
      ['a message in the store, with its indexes', `${format(costs.storedBytes)} bytes`],
      ['rows into one PostgreSQL, 100 a commit', `${format(costs.rows)}/s`],
    ],
  );
  const all = sizes.map((users) => needs(users, costs));
  const row = (what: string, value: (n: Needs) => string): string[] => [what, ...all.map(value)];
  const machines = table(
    ['Monthly users', ...all.map((n) => format(n.users))],
    [
      row('sockets at the peak', (n) => format(n.sockets)),
      row('messages/s at the peak', (n) => format(n.messages)),
      row('deliveries/s at the peak', (n) => format(n.deliveries)),
      row('cores that the service is busy with', (n) => format(n.cores)),
      row(`service machines of ${machine.cores} cores`, (n) => `${format(n.gateways)} (${n.limit})`),
      row('PostgreSQL machines, each with a standby', (n) => `${format(n.databases)} (${n.databaseLimit})`),
      row('Redis', (n) => format(n.redis)),
      row('messages of a year', (n) => bytes(n.storedBytes)),
    ],
  );
  return `${measured}\n\n${machines}`;
}
