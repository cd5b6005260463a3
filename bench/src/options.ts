import { parseArgs } from 'node:util';
import { serverNames } from './servers/server.ts';
import type { ServerName } from './servers/server.ts';

/** Workloads that run only when they are named; they ask Parley alone. */
export const onRequest = [
  'analytics',
  'neighbours',
  'abuse',
  'requestlog',
  'reactions',
  'sink',
  'calls',
  'retention',
  'soak',
  'nodes',
] as const;
export const workloadNames = [
  'start',
  'send',
  'max',
  'light',
  'bigrooms',
  'direct',
  'idle',
  'storm',
  'rest',
  'list',
  'history',
  'growth',
  ...onRequest,
] as const;
export type WorkloadName = (typeof workloadNames)[number];

export interface Options {
  workloads: WorkloadName[];
  servers: ServerName[];
  quick: boolean;
  rounds: number;
  windowMs: number;
  warmMs: number;
  /** How long the soak takes, and the longest that a copy of the sink's memory run may take. */
  soakMs: number;
  /** Senders of the send workload; all other crowds follow from it. */
  users: number;
  /** The longest conversation, and the largest store; the two before are a tenth and a thousandth, or a tenth and a hundredth. */
  messages: number;
  /** The longest list. */
  conversations: number;
  /** Where the page goes; null: only printed. */
  out: string | null;
  /** What is measured goes into the results of earlier runs. */
  add: boolean;
  /** Parts of a workload (see `usage`); null: all. */
  only: string[] | null;
  /** The attacks of abuse hit a service of their own. */
  apart: boolean;
  /** Workloads begin no later than this. */
  deadlineMs: number;
}

export const usage = `npm run bench -- [workload …] [options]

Workloads: ${workloadNames.join(', ')} (by default all but ${onRequest.join(', ')};
  with --quick also without direct and growth)
  analytics: what counting costs on the send path, and how fast a year is reported (docs/analytics.md)
  neighbours: one tenant does to the service what it can, row by row, while another measures (docs/isolation.md)
  abuse: it does all of it at once, for as long as --seconds says; fails where the other felt too much
  requestlog: REST with and without the request log, in turns, and what the log costs of it
  reactions: to one message and to 1,000, sends into the same conversation beside them, and pages with and without
  sink: history in a customer's own database: writing, what it costs a send, cold pages (docs/storage.md)
  calls: participants on one media worker until it is full, joins, memory, chat beside it, and LiveKit's server; needs Go (docs/calls.md)
  retention: thirty days of traffic one after the other: what is kept, and what a message costs, must stay as it was
  soak: half of the maximum for an hour, or for --seconds, then ten reconnect storms: memory and descriptors must stay
  nodes: one process beside two processes and two nodes, which speak through Redis
  --quick              within 10 minutes: fewer servers, rounds, seconds and rows; prints and writes nothing
  --servers a,b        of ${serverNames.join(', ')}
  --rounds N           interleaved rounds (3)
  --seconds N          of each measured window (8)
  --users N            senders of the send workload; other crowds follow from it (1000)
  --messages N         the longest conversation (10000000)
  --conversations N    the longest list (10000)
  --only 3,9b          these rows of neighbours or abuse; of analytics: send or reports; of calls: parley or livekit; of sink: postgres, mysql, mongodb, http,
                       pages, send, and memory (which runs only when it is named: a copy of --messages rows, for at most --seconds)
  --apart              abuse hits another service, with a store of its own, on the same machine: what the victim then feels is the machine
  --add                keep earlier results of workloads that are not named, and write the page of all
  --out PATH           write the page there, its plots beside it and bench/results.json (docs/performance.md)
`;

const quickServers: ServerName[] = ['parley', 'ws', 'raw', 'socketio-group', 'ejabberd'];
const quickDeadlineMs = 8 * 60_000;
const fullDeadlineMs = 6 * 3_600_000;

export class UsageError extends Error {}

function names<T extends string>(given: string[], allowed: readonly T[]): T[] {
  for (const name of given)
    if (!(allowed as readonly string[]).includes(name))
      throw new UsageError(`"${name}" is none of ${allowed.join(', ')}.`);
  return given as T[];
}

export function parseOptions(args: string[]): Options {
  const text = { type: 'string' } as const;
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      add: { type: 'boolean', default: false },
      apart: { type: 'boolean', default: false },
      servers: text,
      rounds: text,
      seconds: text,
      users: text,
      messages: text,
      conversations: text,
      only: text,
      out: text,
    },
  });
  const { quick } = values;
  const whole = (
    name: 'rounds' | 'seconds' | 'users' | 'messages' | 'conversations',
    usual: number,
    min: number,
  ) => {
    const value = Number(values[name] ?? usual);
    if (!Number.isInteger(value) || value < min || value > 1e8)
      throw new UsageError(`--${name} must be a whole number from ${min}.`);
    return value;
  };
  const usual = workloadNames.filter(
    (name) =>
      !(onRequest as readonly WorkloadName[]).includes(name) &&
      (!quick || (name !== 'growth' && name !== 'direct')),
  );
  return {
    workloads: positionals.length === 0 ? [...usual] : names(positionals, workloadNames),
    servers:
      values.servers === undefined
        ? quick
          ? quickServers
          : [...serverNames]
        : names(values.servers.split(','), serverNames),
    quick,
    rounds: whole('rounds', quick ? 2 : 3, 1),
    windowMs: whole('seconds', quick ? 3 : 8, 1) * 1_000,
    warmMs: quick ? 1_000 : 2_000,
    soakMs: whole('seconds', quick ? 60 : 3_600, 1) * 1_000,
    users: whole('users', 1_000, 20),
    messages: whole('messages', quick ? 300_000 : 10_000_000, 10_000),
    conversations: whole('conversations', quick ? 1_000 : 10_000, 100),
    add: values.add,
    apart: values.apart,
    only: values.only?.split(',') ?? null,
    out: values.out ?? (quick || (positionals.length > 0 && !values.add) ? null : 'docs/performance.md'),
    deadlineMs: quick ? quickDeadlineMs : fullDeadlineMs,
  };
}
