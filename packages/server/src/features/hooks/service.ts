import { Histogram } from 'prom-client';
import type { HookKind, HookVerdict } from '@parley/protocol';
import type { Config } from '../../config.ts';
import { tell } from '../../log/record.ts';
import type { Recorder as Log } from '../../log/record.ts';
import type { Clock, Ids, Timers } from '../../platform/clock.ts';
import { createBatcher } from '../../platform/flow/batcher.ts';
import { Circuit } from '../../platform/flow/circuit.ts';
import { Lines } from '../../platform/flow/lines.ts';
import { Places } from '../../platform/flow/places.ts';
import type { Logger } from '../../platform/logging.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { createOutbound } from '../../platform/outbound/outbound.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import type { NameResolver } from '../../platform/outbound/resolver.ts';
import type { Db } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import type { Environment } from '../context.ts';
import { createKeptVersions } from '../kept-versions.ts';
import type { Recorder } from '../logs/recorder.ts';
import { createCaller } from './call.ts';
import type { HookFailed, HookRequest, HookResult, LiveHook } from './call.ts';
import * as sql from './sql.ts';
import { lookAt } from './sql/look.ts';
import type { Looked, Question } from './sql/look.ts';
import type { HookRow } from './sql.ts';

declare module '../context.ts' {
  interface Services {
    hooks: Hooks;
  }
}

/** What operations use of the hooks. */
export interface Hooks {
  /** The hook of the environment; null if it has none. An environment that never had one is known without a look-up. */
  of(env: HookedEnvironment, kind: HookKind): Promise<LiveHook | null>;
  /** Asks the hook; throws HookFailed if it gave no answer that can be used. */
  call<T extends { verdict: HookVerdict }>(hook: LiveHook, asked: HookRequest<T>): Promise<T>;
  /** Asks once, whatever happened before, and counts nothing. */
  test<T extends { verdict: HookVerdict }>(
    env: HookedEnvironment,
    row: HookRow,
    asked: HookRequest<T>,
  ): Promise<HookResult>;
  /** What must be known of a message before its hook is asked; null if there is no such conversation. */
  look(question: Question): Promise<Looked | null>;
  /** The messages of one user to one conversation leave this line in the order in which they entered it. */
  readonly lines: Lines;
  readonly outbound: Pick<Outbound, 'checkUrl'>;
  /** Counts a message that was stored without an answer of the hook. */
  failedOpen(kind: HookKind): void;
}

type HookedEnvironment = Pick<Environment, 'no' | 'id' | 'hooks'>;

/** hooks#bounds */
const bounds = { inAll: 1_000, ofOne: 100, waiting: 500 };
/** Environments whose hooks are kept ready, those used last. */
const mostKept = 1_000;
const lookBounds = { batch: 100, waiting: 20_000, ofOne: 2_000 };

export const secretContext = (hook: number): string => `hook ${hook}`;

export function createHookService(options: {
  config: Pick<Config, 'allowPrivateTargets'>;
  db: Db;
  log: Pick<Log, 'committed'>;
  names: NameResolver;
  vault: Vault;
  ids: Ids;
  clock: Clock;
  timers: Timers;
  logger: Logger;
  metrics: Metrics;
  recorder: Pick<Recorder, 'add'>;
}): Hooks & { close(): Promise<void> } {
  const { db, clock, logger, vault } = options;
  const outbound = createOutbound({
    allowPrivate: options.config.allowPrivateTargets,
    // The places are the bound: two environments with the same receiver must not wait for each other's sockets.
    maxSocketsPerHost: bounds.inAll,
    resolve: options.names.resolve,
    failed: options.names.failed,
  });
  const places = new Places(bounds);
  const measure = measures(options.metrics, places);
  const telling = new Set<Promise<void>>();

  const caller = createCaller({
    ...options,
    outbound,
    places,
    attempted: measure.attempt,
    changed: (hook, failure) => {
      const told = note(hook, failure)
        .catch((error: unknown) =>
          logger.warn({ err: error, env: hook.env.no }, 'a hook’s change was not told'),
        )
        .finally(() => telling.delete(told));
      telling.add(told);
    },
  });

  /** hooks#changes: of several processes that see the same change, the one that writes it down tells of it. */
  async function note(hook: LiveHook, failure: HookFailed | null): Promise<void> {
    const { kind } = hook;
    const since = new Date(clock.now()).toISOString();
    hook.failingSince = failure ? (hook.failingSince ?? since) : null;
    await db.tx(async (tx) => {
      const [env, no] = [hook.env.no, hook.no];
      const changed = failure ? await sql.markFailing(tx, env, no, since) : await sql.markWell(tx, env, no);
      if (!changed) return;
      if (failure)
        await tell(options.log, tx, env, 'hook.failing', {
          data: { kind, since, errorClass: failure.errorClass },
        });
      else await tell(options.log, tx, env, 'hook.recovered', { data: { kind } });
    });
  }

  async function live(env: HookedEnvironment, rows: readonly HookRow[]): Promise<LiveHook[]> {
    if (rows.length === 0) return [];
    const secrets = await sql.secrets.live(
      db,
      rows.map(({ no }) => no),
    );
    return rows.map((row) => ({
      ...row,
      env: { no: env.no, id: env.id },
      secrets: secrets
        .filter(({ owner }) => owner === row.no)
        .map(({ secret, expiresAt }) => ({
          key: vault.open(secret, secretContext(row.no)),
          until: expiresAt === null ? null : Date.parse(expiresAt),
        })),
      circuit: new Circuit(() => options.timers.monotonic()),
    }));
  }

  /** A hook that was set again begins anew; one whose secret alone changed keeps its circuit. */
  const hooksOf = createKeptVersions(mostKept, async (env: HookedEnvironment, before: LiveHook[] = []) => {
    const hooks = await live(env, await sql.findHooks(db, env.no));
    for (const hook of hooks) {
      const same = before.find(({ no, updatedAt }) => no === hook.no && updatedAt === hook.updatedAt);
      if (same) hook.circuit = same.circuit;
    }
    return hooks;
  });

  // Messages of all environments together, so that those with a hook take few connections from the others.
  const { add: look } = createBatcher<Question, Looked | null>({
    run: (questions) => lookAt(db, questions),
    maxBatch: lookBounds.batch,
    maxWaiting: lookBounds.waiting,
    turns: { groupOf: ({ env }) => env, maxWaiting: lookBounds.ofOne },
    wholeTurns: true,
  });

  return {
    outbound,
    look,
    lines: new Lines(),
    of: async (env, kind) =>
      env.hooks === 0 ? null : ((await hooksOf(env, env.hooks)).find((hook) => hook.kind === kind) ?? null),
    call: (hook, asked) => caller.call(hook, asked),
    async test(env, row, asked) {
      const [hook] = await live(env, [row]);
      return caller.test(hook!, asked);
    },
    failedOpen: measure.failedOpen,
    close: async () => {
      // Changes that were seen are told first.
      await Promise.all(telling);
      outbound.close();
    },
  };
}

function measures(metrics: Metrics, places: Places) {
  const calls = metrics.counter('parley_hook_calls_total', 'Calls of synchronous hooks, by kind and result', [
    'kind',
    'result',
  ]);
  const open = metrics.counter(
    'parley_hook_failed_open_total',
    'Messages that were stored without an answer of the hook',
    ['kind'],
  );
  const seconds = new Histogram({
    name: 'parley_hook_seconds',
    help: 'Time of one call of a synchronous hook',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3],
    registers: [metrics.registry],
  });
  metrics.gauge('parley_hook_calls', 'Calls of synchronous hooks under way', () => places.running);
  return {
    failedOpen: (kind: HookKind): void => open.inc({ kind }),
    attempt: ({ hook, verdict, failure, ms }: HookResult): void => {
      calls.inc({ kind: hook.kind, result: failure?.errorClass ?? verdict ?? 'unknown' });
      seconds.observe(ms / 1000);
    },
  };
}
